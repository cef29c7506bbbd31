//! Settings.

use std::path::PathBuf;

use tidegate_api::{Error, Result, code};

/// Settings of a SQLite destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The database file; created at the first provisioning where it is missing. Its folder must exist.
    pub path: PathBuf,
}

impl Config {
    /// Looks at the settings alone, without touching the disk.
    ///
    /// # Errors
    /// [`code::DESTINATION_SETTING`] for a path that names no file.
    pub fn validate(&self) -> Result<()> {
        if self.path.file_name().is_none() {
            return Err(Error::new(&code::DESTINATION_SETTING, "read settings").with("path", self.path.display()));
        }
        Ok(())
    }
}
