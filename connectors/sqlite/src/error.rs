//! What SQLite's errors mean.

use rusqlite::ffi::ErrorCode;
use tidegate_api::{Error, code};

/// The error for what SQLite reports while doing `operation`.
///
/// Transient: another connection holds the lock, the disk is full or failed for now. SQLite's messages are not shown, because
/// some of them quote what was written (Invariant 12); its result code names the cause.
pub(crate) fn of_sqlite(operation: &'static str, error: &rusqlite::Error) -> Error {
    let Some(failure) = error.sqlite_error() else {
        return Error::new(&code::DESTINATION_UNUSABLE, operation).because("the pipelines table holds what no release of tidegate wrote");
    };
    let (code, transient) = match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::DiskFull | ErrorCode::SystemIoFailure => {
            (&code::DESTINATION_FAILED, true)
        }
        ErrorCode::NotADatabase
        | ErrorCode::DatabaseCorrupt
        | ErrorCode::CannotOpen
        | ErrorCode::ReadOnly
        | ErrorCode::PermissionDenied
        | ErrorCode::FileLockingProtocolFailed => (&code::DESTINATION_UNUSABLE, false),
        _ => (&code::DESTINATION_FAILED, false),
    };
    let told = Error::new(code, operation).with("sqlite", failure.extended_code).because(rusqlite::ffi::code_to_str(failure.extended_code));
    if transient { told.transient() } else { told }
}
