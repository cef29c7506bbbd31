//! What can be wrong with a file.

use std::io;
use std::path::Path;

use tidegate_api::{CommitPosition, Error, code};

/// The file cannot be read; it may be there again later.
pub(crate) fn unreadable(path: &Path, error: io::Error) -> Error {
    Error::new(&code::FILE_UNREADABLE, "read source file").with("path", path.display()).because(error).transient()
}

/// The file is not the one that was read before: nothing of it can be trusted to follow what was.
pub(crate) fn changed(path: &Path, what: &'static str) -> Error {
    Error::new(&code::FILE_CHANGED, "read source file").with("path", path.display()).with("what", what)
}

/// A line is not a transaction. `reason` names members and places, never values. It passes once somebody has corrected it.
pub(crate) fn malformed(path: &Path, line: u64, reason: impl ToString) -> Error {
    let error = Error::new(&code::FILE_MALFORMED, "read source file").with("path", path.display()).with("line", line);
    error.because(reason.to_string()).transient()
}

/// A line's position is not behind the one before. It passes once somebody has corrected it.
pub(crate) fn backwards(path: &Path, line: u64, position: CommitPosition, before: CommitPosition) -> Error {
    let error = Error::new(&code::FILE_ORDER, "read source file").with("path", path.display()).with("line", line);
    error.with("position", position).with("before", before).transient()
}
