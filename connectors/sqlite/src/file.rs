//! The database file as the file system has it: whose it is, before SQLite touches it, and whether it is still there.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tidegate_api::{Error, Result, code};

use crate::encode::APPLICATION_ID;

/// What is at the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing, or a file of no bytes.
    Nothing,
    /// A database of ours.
    Ours,
}

/// Looks at the file's first bytes without SQLite, which would already write beside (and sometimes into) the file.
///
/// # Errors
/// [`code::DESTINATION_UNUSABLE`] for anything that is not ours.
pub(crate) fn look(path: &Path, operation: &'static str) -> Result<Found> {
    let unusable = |why: String| Error::new(&code::DESTINATION_UNUSABLE, operation).with("path", path.display()).because(why);
    let mut header = Vec::with_capacity(100);
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(unusable(error.to_string())),
        Ok(file) => file.take(100).read_to_end(&mut header).map_err(|error| unusable(error.to_string()))?,
    };
    if header.is_empty() {
        return Ok(Found::Nothing);
    }
    if !header.starts_with(b"SQLite format 3\0") || header.len() < 100 {
        return Err(unusable("the file is not a sqlite database".to_owned()).fix("give the destination a path of its own"));
    }
    if header.get(68..72) != Some(&APPLICATION_ID.to_be_bytes()) {
        return Err(unusable("the file is another application's database".to_owned()).fix("give the destination a path of its own"));
    }
    Ok(Found::Ours)
}

/// Which file a path names now: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64);

impl Identity {
    /// # Errors
    /// [`code::DESTINATION_UNUSABLE`] when nothing is there.
    pub(crate) fn of(path: &Path, operation: &'static str) -> Result<Self> {
        let metadata = fs::metadata(path).map_err(|error| lost(path, operation).with("found", error))?;
        Ok(Self(metadata.dev(), metadata.ino()))
    }

    /// Whether the path still names this file. A file that was unlinked takes every write without an error, and forgets it.
    ///
    /// # Errors
    /// [`code::DESTINATION_UNUSABLE`] when it does not.
    pub(crate) fn check(self, path: &Path, operation: &'static str) -> Result<()> {
        if Self::of(path, operation)? == self { Ok(()) } else { Err(lost(path, operation)) }
    }
}

fn lost(path: &Path, operation: &'static str) -> Error {
    Error::new(&code::DESTINATION_UNUSABLE, operation)
        .with("path", path.display())
        .because("the file was removed or replaced")
        .fix("put the file back, or `tidegate pipeline reset`")
}
