//! The one form of every answer, on the socket and behind `--json`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_api::{Class, Code, Error, code};

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// The command, as it is typed: `pipeline pause`.
    pub command: String,
    /// Whether it did what was asked.
    pub ok: bool,
    /// One line for people.
    pub summary: String,
    /// What was asked for; null where it failed.
    pub result: Value,
    /// Why it failed; null where it did not.
    pub error: Option<Failure>,
}

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The stable code, `TG0015`.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub fix: String,
    /// The place that is at fault: in the configuration, or in a program.
    pub path: Option<String>,
}

impl Envelope {
    /// The command did what was asked.
    pub fn success(command: &str, summary: impl Into<String>, result: Value) -> Self {
        Self { command: command.to_owned(), ok: true, summary: summary.into(), result, error: None }
    }

    /// The command failed.
    pub fn failure(command: &str, error: &Error) -> Self {
        let error = Failure::from(error);
        Self { command: command.to_owned(), ok: false, summary: error.message.clone(), result: Value::Null, error: Some(error) }
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self {
            code: error.code().to_string(),
            message: error.message(),
            fix: error.advice().to_owned(),
            path: error.context().find(|(name, _)| *name == "path").map(|(_, path)| path.to_owned()),
        }
    }
}

impl Failure {
    /// The code, where this release knows it.
    pub fn known_code(&self) -> Option<&'static Code> {
        code::ALL.iter().copied().find(|known| known.to_string() == self.code)
    }

    /// What a process that ends with this failure exits with.
    pub fn exit_code(&self) -> u8 {
        self.known_code().map_or(Class::Runtime, |code| code.class).exit_code()
    }
}
