//! The folder with every source's log.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_api::{Error, Result, code};

use crate::disk::Disk;
use crate::error::write_failed;
use crate::groups::GroupStatus;
use crate::log::Log;
use crate::metadata::{Metadata, StoredGroup};
use crate::options::Options;

/// A relay: one folder, one process. Logs stay open until it and everything that was lent of them is dropped.
#[derive(Debug)]
pub struct Relay {
    folder: PathBuf,
    disk: Arc<dyn Disk>,
    options: Options,
    metadata: Arc<Metadata>,
    logs: Mutex<BTreeMap<String, Arc<Log>>>,
}

impl Relay {
    /// Opens the relay in `folder`, and makes it where it is new. Segments go through `disk`; the metadata is a SQLite file
    /// and does not.
    ///
    /// # Errors
    /// [`RELAY_FORMAT`](code::RELAY_FORMAT) where another release wrote it; else what the disk or SQLite says.
    pub fn open(folder: &Path, disk: Arc<dyn Disk>, options: Options) -> Result<Self> {
        let failed = |error| write_failed("make relay folder", &folder.display().to_string(), error);
        crate::disk::RealDisk.make_folder(folder).map_err(failed)?;
        let metadata = Arc::new(Metadata::open(&folder.join("relay.db"))?);
        Ok(Self { folder: folder.to_owned(), disk, options, metadata, logs: Mutex::default() })
    }

    /// The log of a source; the same one for the same name.
    ///
    /// # Errors
    /// What is stored cannot be read, or is not of this source.
    pub fn log(&self, source: &str) -> Result<Arc<Log>> {
        if source.is_empty() || source.len() > 64 {
            return Err(Error::new(&code::CONFIG_VALUE, "open source in relay").with("source", source).with("allowed", "1 to 64 bytes"));
        }
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(log) = logs.get(source) {
            return Ok(Arc::clone(log));
        }
        let folder = self.folder.join(folder_name(source));
        let log = Arc::new(Log::open(Arc::clone(&self.metadata), source, folder, Arc::clone(&self.disk), self.options.clone())?);
        logs.insert(source.to_owned(), Arc::clone(&log));
        Ok(log)
    }

    /// Every group that is remembered, with its source's name, as it was when it was last written: also of sources whose log
    /// nobody has opened.
    ///
    /// # Errors
    /// The metadata cannot be read.
    pub fn groups(&self) -> Result<Vec<(String, GroupStatus)>> {
        let groups = self.metadata.all_groups()?.into_iter();
        let status = |group: StoredGroup| GroupStatus { name: group.name, checkpoint: group.checkpoint, fence: group.fence };
        Ok(groups.map(|(source, group)| (source, status(group))).collect())
    }
}

/// A source's name as a folder: letters, digits, `-` and `_` stay, everything else is `%` and two hexadecimal digits a byte.
fn folder_name(source: &str) -> String {
    let mut name = String::new();
    for byte in source.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02x}"));
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::folder_name;

    #[test]
    fn no_name_of_a_source_leaves_the_folder() {
        assert_eq!(folder_name("shop-1_A"), "shop-1_A");
        assert_eq!(folder_name("../ä"), "%2e%2e%2f%c3%a4");
    }
}
