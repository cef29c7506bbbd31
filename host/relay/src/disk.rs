//! What the files store needs of a disk, and the real one.
//!
//! As small as possible, because the double that cuts the power ([`power_cut`](crate::power_cut)) has to do all of it too.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;

/// A disk with folders of files. Nothing is durable before it was synced: bytes by [`DiskFile::sync`], names by
/// [`sync_folder`](Self::sync_folder).
pub trait Disk: Send + Sync + std::fmt::Debug {
    /// Makes a folder and those above it, durably; one that is there already is fine.
    ///
    /// # Errors
    /// As the system says.
    fn make_folder(&self, folder: &Path) -> io::Result<()>;

    /// The names of the files in a folder, in any order.
    ///
    /// # Errors
    /// As the system says.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// Makes an empty file for writing and reading, in place of what the name stood for.
    ///
    /// # Errors
    /// As the system says.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// As the system says; [`io::ErrorKind::NotFound`] where there is none.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Removes a file.
    ///
    /// # Errors
    /// As the system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable: those that were created and those that were removed.
    ///
    /// # Errors
    /// As the system says.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// An open file.
pub trait DiskFile: Send + Sync + std::fmt::Debug {
    /// Its length, bytes that are not synced included.
    ///
    /// # Errors
    /// As the system says.
    fn size(&self) -> io::Result<u64>;

    /// Reads up to `buffer.len()` bytes; 0 only at the end of the file.
    ///
    /// # Errors
    /// As the system says.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `bytes`. After an error any part of them may be there.
    ///
    /// # Errors
    /// As the system says.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts the file to `length` bytes.
    ///
    /// # Errors
    /// As the system says.
    fn cut(&self, length: u64) -> io::Result<()>;

    /// Makes bytes and length durable. After an error nothing is known of what was written since the last success, and
    /// a later success says nothing about it either.
    ///
    /// # Errors
    /// As the system says.
    fn sync(&self) -> io::Result<()>;
}

/// The disk of this machine. Files and folders are for their owner alone: they hold rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        let above = folder.parent().filter(|above| !above.as_os_str().is_empty());
        if let Some(above) = above {
            self.make_folder(above)?;
        }
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        above.map_or(Ok(()), |above| self.sync_folder(above))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let names = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)?;
        Ok(Box::new(file))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

impl DiskFile for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn cut(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Fills `buffer` from `offset` on as far as the file goes; gives how far that is.
pub(crate) fn fill(file: &dyn DiskFile, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
