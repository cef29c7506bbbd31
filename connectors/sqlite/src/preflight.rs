//! Whether the file can be used, without leaving anything behind.

use std::path::Path;

use rustix::fs::{Access, access};
use tidegate_api::{Error, Finding, Result, code};

use crate::client::Client;
use crate::file::{self, Found};

/// Looks at the file, or at the folder that it will be made in.
pub(crate) fn look(path: &Path) -> Vec<Finding> {
    let subject = format!("sqlite file {}", path.display());
    let found = file::look(path, "preflight").and_then(|found| match found {
        Found::Nothing => folder(path).map(|()| "will be created"),
        Found::Ours => writable(path).map(|()| "writable"),
    });
    vec![match found {
        Ok(detail) => Finding::passed(subject, detail),
        Err(error) => Finding::failed(error.code(), subject, error.message(), error.advice()),
    }]
}

fn folder(path: &Path) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| {
        Error::new(&code::DESTINATION_UNUSABLE, "preflight")
            .with("folder", folder.display())
            .because(errno)
            .fix(format!("mkdir -p {} and make it writable for the daemon", folder.display()))
    })
}

/// Takes the write lock and gives it back.
fn writable(path: &Path) -> Result<()> {
    Client::open(path, "preflight")?.transaction("preflight", |_| Ok(()))
}
