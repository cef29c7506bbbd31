//! Why a program is refused.

use std::fmt;

/// A program file that is no program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramError {
    /// The place in the file, as a JSON path such as `$.instructions[2].path`.
    pub path: String,
    /// What is wrong there.
    pub reason: String,
    /// True where the file is not even JSON.
    pub syntax: bool,
}

impl ProgramError {
    pub(crate) fn syntax(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { path: path.into(), reason: reason.into(), syntax: true }
    }

    pub(crate) fn meaning(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { path: path.into(), reason: reason.into(), syntax: false }
    }
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.reason)
    }
}

impl std::error::Error for ProgramError {}
