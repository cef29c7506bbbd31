//! A database file in a folder of its own, and a plain reader of it.

use std::path::PathBuf;

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;
use tidegate_api::{BoxFuture, Destination, Fingerprint, Ownership, SourceIdentity};
use tidegate_conformance::destination::{Harness, StoredDocument};
use tidegate_sqlite::{Config, SqliteDestination};

pub(crate) struct Files {
    folder: TempDir,
}

impl Files {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("out.db")
    }

    pub(crate) fn destination(&self) -> SqliteDestination {
        SqliteDestination::new(Config { path: self.path() }).unwrap()
    }

    /// The file as any other program reads it.
    pub(crate) fn reader(&self) -> Connection {
        Connection::open_with_flags(self.path(), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
    }

    pub(crate) fn count(&self) -> i64 {
        self.reader().query_row("SELECT count(*) FROM documents", [], |row| row.get(0)).unwrap()
    }

    /// Every file in the folder and its content.
    pub(crate) fn content(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut all: Vec<_> = entries.map(|path| (path.clone(), std::fs::read(&path).unwrap())).collect();
        all.sort();
        all
    }
}

impl Harness for Files {
    fn open(&self) -> BoxFuture<'_, Box<dyn Destination>> {
        Box::pin(async { Box::new(self.destination()) as Box<dyn Destination> })
    }

    fn documents<'a>(&'a self, pipeline: &'a str) -> BoxFuture<'a, Vec<StoredDocument>> {
        Box::pin(async move {
            if !self.path().exists() {
                return Vec::new();
            }
            let reader = self.reader();
            let query = "SELECT collection, key, partition_key, CAST(document AS BLOB), change_id FROM documents WHERE pipeline = ?1";
            let mut statement = reader.prepare(query).unwrap();
            let rows = statement.query_map([pipeline], |row| {
                let (collection, key, partition_key) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok(StoredDocument { collection, key, partition_key, document: row.get(3)?, change_id: row.get(4)? })
            });
            rows.unwrap().map(Result::unwrap).collect()
        })
    }
}

pub(crate) fn owner(fence: u64) -> Ownership {
    let source = SourceIdentity { system: "7301".into(), timeline: 1, database: "shop".into(), epoch: "0/1500000".into() };
    Ownership { pipeline: "all".into(), source, fingerprint: Fingerprint([0x11; 32]), fence }
}
