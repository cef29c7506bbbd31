//! The relay's errors, each made in one place.

use std::io;

use tidegate_api::{CommitPosition, Error, code};

use crate::record::Place;

/// A write or a sync failed. It may pass: space is freed, a disk comes back.
pub(crate) fn write_failed(operation: &'static str, file: &str, error: io::Error) -> Error {
    let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let failed = Error::new(&code::RELAY_WRITE, operation).with("file", file).because(error).transient();
    if full { failed.with("disk", "full") } else { failed }
}

/// Whether a write failed because there is no space.
pub(crate) fn disk_is_full(error: &Error) -> bool {
    error.code() == &code::RELAY_WRITE && error.context().any(|(name, _)| name == "disk")
}

/// Reading failed, which says nothing about what is stored.
pub(crate) fn read_failed(operation: &'static str, file: &str, error: io::Error) -> Error {
    Error::new(&code::RELAY_READ, operation).with("file", file).because(error).transient()
}

/// What is stored is not what was written. `after` is the last position that is whole.
pub(crate) fn corrupt(operation: &'static str, after: CommitPosition, place: Place, what: &'static str) -> Error {
    Error::new(&code::RELAY_CORRUPT, operation)
        .with("after_position", after)
        .with("segment", format!("{:016x}", place.sequence))
        .with("offset", place.offset)
        .with("found", what)
}

/// SQLite refused. It may pass: the disk was full, or the file is being copied.
pub(crate) fn metadata(operation: &'static str) -> impl Fn(rusqlite::Error) -> Error {
    move |error| Error::new(&code::RELAY_METADATA, operation).because(error.to_string()).transient()
}

/// Another worker holds the group.
pub(crate) fn fenced(operation: &'static str, group: &str, fence: u64) -> Error {
    Error::new(&code::RELAY_FENCED, operation).with("group", group).with("fence", fence)
}

/// The caller broke a rule of this crate.
pub(crate) fn internal(operation: &'static str, rule: &'static str) -> Error {
    Error::new(&code::INTERNAL, operation).with("rule", rule)
}
