//! The module store: `modules/<sha256>`, one file for each module that a pipeline may be pinned to.
//!
//! A file never changes and its name is the SHA-256 of its bytes, which is checked whenever it is read. A file that does not
//! fit its name (half of it was lost, or it was tampered with) is no module; adding the same bytes again replaces it.

use std::path::Path;

use cap_std::fs::Dir;
use sha2::{Digest, Sha256};
use tidegate_api::{Error, Result, code};

use crate::folder;

/// The largest module.
pub(crate) const MAX_MODULE_BYTES: u64 = 4 << 20;

pub(crate) struct ModuleStore {
    dir: Dir,
}

impl ModuleStore {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let dir = folder::open(path).map_err(|error| failed("open module store", error).with("folder", path.display()))?;
        Ok(Self { dir })
    }

    /// A folder inside the store, for what belongs to its modules.
    pub(crate) fn folder(&self, name: &str) -> Result<Dir> {
        folder::open_inside(&self.dir, name).map_err(|error| failed("open module store", error).with("folder", name))
    }

    /// Stores the bytes, unless they are there already. Gives their digest.
    pub(crate) fn add(&self, bytes: &[u8]) -> Result<String> {
        let digest = digest(bytes);
        let store = || {
            if self.read(&digest)?.is_none() {
                folder::write(&self.dir, &digest, bytes)?;
            }
            Ok(())
        };
        store().map_err(|error| failed("store module", error).with("module", &digest))?;
        Ok(digest)
    }

    /// The module of this digest.
    ///
    /// # Errors
    /// [`code::MODULE_MISSING`] where there is none, or only a damaged one.
    pub(crate) fn get(&self, digest: &str) -> Result<Vec<u8>> {
        let missing = || Error::new(&code::MODULE_MISSING, "load module").with("module", digest);
        if digest.len() != 64 || !digest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return Err(missing());
        }
        let bytes = self.read(digest).map_err(|error| failed("load module", error).with("module", digest))?;
        bytes.ok_or_else(missing)
    }

    fn read(&self, digest_: &str) -> std::io::Result<Option<Vec<u8>>> {
        let bytes = folder::read(&self.dir, digest_, MAX_MODULE_BYTES)?;
        Ok(bytes.filter(|bytes| digest(bytes) == digest_))
    }
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn failed(operation: &'static str, error: std::io::Error) -> Error {
    Error::new(&code::MODULE_STORE, operation).because(error)
}
