//! What can be wrong with a file.

use std::io;
use std::path::Path;

use tidegate_api::{Error, code};

/// The file cannot be read; it may be there again later.
pub(crate) fn unreadable(path: &Path, error: io::Error) -> Error {
    Error::new(&code::FILE_UNREADABLE, "read source file").with("path", path.display()).because(error).transient()
}

/// The file is not the one that was read before.
pub(crate) fn changed(path: &Path, what: &'static str) -> Error {
    Error::new(&code::FILE_CHANGED, "read source file").with("path", path.display()).with("what", what)
}

/// A line is not a transaction. `reason` names members and places, never values.
pub(crate) fn malformed(path: &Path, line: u64, reason: impl ToString) -> Error {
    Error::new(&code::FILE_MALFORMED, "read source file").with("path", path.display()).with("line", line).because(reason.to_string())
}
