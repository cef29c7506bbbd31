//! Program files.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use tidegate_api::{Error, Result, code};
use tidegate_program::Program;

/// A program file is at most this long.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Reads and checks a program.
pub(crate) fn load(file: &Path) -> Result<Program> {
    let unreadable =
        |error: std::io::Error| Error::new(&code::PROGRAM_UNREADABLE, "read program").with("file", file.display()).because(error);
    let mut text = Vec::new();
    File::open(file).map_err(unreadable)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        let error = Error::new(&code::PROGRAM_SYNTAX, "read program").with("file", file.display());
        return Err(error.because(format!("longer than {MAX_FILE_BYTES} bytes")));
    }
    Program::parse(&text).map_err(|refused| {
        let code = if refused.syntax { &code::PROGRAM_SYNTAX } else { &code::PROGRAM_INVALID };
        Error::new(code, "read program").with("file", file.display()).with("path", refused.path).because(refused.reason)
    })
}
