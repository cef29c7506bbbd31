//! The folder that one daemon has to itself.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use tidegate_api::{Error, Result, code};

/// A locked data_dir. The kernel lets the lock go with the process, however that ends.
#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Makes the folder where it is missing, and locks it.
    pub(crate) fn lock(path: &Path) -> Result<Self> {
        let unusable = |error: io::Error| Error::new(&code::DATA_DIR_UNUSABLE, "open data_dir").with("path", path.display()).because(error);
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(unusable)?;
        let mut options = OpenOptions::new();
        let lock = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path.join("lock")).map_err(unusable)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::new(&code::DATA_DIR_LOCKED, "lock data_dir").with("path", path.display())),
            Err(error) => Err(unusable(error.into())),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
