//! What the user sees: text for people, one envelope behind `--json`, errors on standard error.

use std::io::{self, Write as _};
use std::process::ExitCode;

use serde_json::Value;
use tidegate_api::{Error, Result, code};
use tidegate_control::{Envelope, Failure};

/// How a command answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
}

/// What a command found.
pub(crate) struct Answer {
    pub(crate) envelope: Envelope,
    /// The same for people; may be empty.
    pub(crate) text: String,
    /// What the process exits with, where that does not follow from the error.
    pub(crate) exit: Option<u8>,
}

impl Answer {
    pub(crate) fn new(command: &str, summary: impl Into<String>, result: Value, text: impl Into<String>) -> Self {
        Self { envelope: Envelope::success(command, summary, result), text: text.into(), exit: None }
    }
}

/// Prints what came of a command and says how the process ends.
pub(crate) fn finish(outcome: Result<Answer>, command: &str, format: Format) -> ExitCode {
    let answer = outcome.unwrap_or_else(|error| Answer { envelope: Envelope::failure(command, &error), text: String::new(), exit: None });
    let written = match format {
        Format::Json => serde_json::to_string(&answer.envelope).map_err(io::Error::from).and_then(|line| print(&(line + "\n"))),
        Format::Text => print(&answer.text),
    };
    if let Err(error) = written {
        return fail(&Error::new(&code::OUTPUT_FAILED, "write output").because(error));
    }
    match &answer.envelope.error {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            if format == Format::Text {
                show(failure);
            }
            ExitCode::from(answer.exit.unwrap_or_else(|| failure.exit_code()))
        }
    }
}

/// Prints an error and gives its exit code.
pub(crate) fn fail(error: &Error) -> ExitCode {
    show(&Failure::from(error));
    ExitCode::from(error.code().class.exit_code())
}

fn show(failure: &Failure) {
    eprintln!("error[{}]: {}\n  fix: {}", failure.code, failure.message, failure.fix);
}

/// Writes to standard output. A reader that has gone away is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// Rows in columns, each as wide as its widest cell.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:width$}", width = *width)).collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    let mut out = line(&mut head.iter().copied());
    for row in rows {
        out.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    out
}
