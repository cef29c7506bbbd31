//! Folders of our own: entered by capability, closed to others, written atomically.

use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};

/// An unfinished file of this age is nobody's any more.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Opens the folder, after making it where it is missing. Nobody but its owner may look in.
pub(crate) fn open(path: &Path) -> io::Result<Dir> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let dir = Dir::open_ambient_dir(path, ambient_authority())?;
    close_to_others(&dir)?;
    sweep(&dir)?;
    Ok(dir)
}

/// The same for a folder inside `parent`.
pub(crate) fn open_inside(parent: &Dir, name: &str) -> io::Result<Dir> {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    match parent.create_dir_with(name, &builder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let dir = parent.open_dir(name)?;
    close_to_others(&dir)?;
    sweep(&dir)?;
    Ok(dir)
}

fn close_to_others(dir: &Dir) -> io::Result<()> {
    if dir.dir_metadata()?.permissions().mode() & 0o077 != 0 {
        dir.set_permissions(".", Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Takes away what a process that was killed in [`write`] has left: unfinished files that nobody has touched for an hour.
fn sweep(dir: &Dir) -> io::Result<()> {
    for entry in dir.entries()? {
        let entry = entry?;
        let unfinished = entry.file_name().as_encoded_bytes().starts_with(b".");
        let age = entry.metadata().ok().and_then(|metadata| metadata.modified().ok()?.into_std().elapsed().ok());
        if unfinished && age.is_some_and(|age| age > ABANDONED) {
            let _ = entry.remove_file();
        }
    }
    Ok(())
}

/// The bytes of a file, at most `limit`; `None` where there is no such file.
pub(crate) fn read(dir: &Dir, name: &str, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match dir.open(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("{name} has more than {limit} bytes")));
    }
    Ok(Some(bytes))
}

/// Puts the file in its place, whole and durable, or leaves what was there. Readable by its owner alone.
pub(crate) fn write(dir: &Dir, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let unfinished = format!(".{name}.{}", hex::encode(random));
    let written = write_new(dir, &unfinished, bytes).and_then(|()| dir.rename(&unfinished, dir, name));
    if written.is_err() {
        let _ = dir.remove_file(&unfinished);
        return written;
    }
    dir.open(".")?.sync_all()
}

fn write_new(dir: &Dir, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = dir.open_with(name, OpenOptions::new().write(true).create_new(true).mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()
}
