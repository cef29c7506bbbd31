//! `data_dir/control.db`: the audit log, and what an operator decided.
//!
//! # Format 1
//!
//! SQLite with `synchronous=FULL`; `PRAGMA user_version` is the format.
//!
//! * `audit(id, of, at_us, actor, act, object, outcome, detail)`: append-only, triggers refuse UPDATE and DELETE. Each act has
//!   a row with outcome `begun` before anything is changed (Invariant 10), and one behind it with outcome `done` or `failed`:
//!   `of` is the id of the first, `detail` the error.
//! * `pipeline(name, paused, module)`: whether the operator paused it, and the SHA-256 of the module that it is pinned to.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension as _, params};
use tidegate_api::{Error, Result, code};

const FORMAT: i64 = 1;

const TABLES: &str = "
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    of INTEGER REFERENCES audit (id),
    at_us INTEGER NOT NULL,
    actor TEXT NOT NULL,
    act TEXT NOT NULL,
    object TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('begun', 'done', 'failed')),
    detail TEXT
) STRICT;
CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_is_never_shortened BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TABLE pipeline (
    name TEXT PRIMARY KEY,
    paused INTEGER NOT NULL DEFAULT 0,
    module TEXT
) STRICT, WITHOUT ROWID;
";

/// The open store. One daemon has it open at a time: the lock on `data_dir` sees to that.
#[derive(Debug)]
pub struct Store {
    connection: Mutex<Connection>,
}

/// An act that was written down and has no outcome yet.
#[derive(Debug)]
#[must_use = "an act has an outcome"]
pub struct Audit<'a> {
    store: &'a Store,
    id: i64,
    actor: String,
    act: String,
    object: String,
}

impl Store {
    /// Opens `folder/control.db`, and makes it where it is missing.
    ///
    /// # Errors
    /// When it cannot be read or written, or a later release wrote it.
    pub fn open(folder: &Path) -> Result<Self> {
        let file = folder.join("control.db");
        let failed =
            |error: rusqlite::Error| Error::new(&code::DATA_DIR_UNUSABLE, "open control store").with("file", file.display()).because(error);
        let mut connection = Connection::open(&file).map_err(failed)?;
        connection.busy_timeout(std::time::Duration::from_secs(5)).map_err(failed)?;
        connection.pragma_update(None, "journal_mode", "wal").map_err(failed)?;
        connection.pragma_update(None, "synchronous", "full").map_err(failed)?;
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(failed)?;
        let format: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
        match format {
            0 => {
                transaction.execute_batch(TABLES).map_err(failed)?;
                transaction.pragma_update(None, "user_version", FORMAT).map_err(failed)?;
            }
            FORMAT => {}
            _ => {
                let error = Error::new(&code::DATA_DIR_UNUSABLE, "open control store").with("file", file.display()).with("format", format);
                return Err(error.fix("use the release that wrote it, or a new data_dir"));
            }
        }
        transaction.commit().map_err(failed)?;
        Ok(Self { connection: Mutex::new(connection) })
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an act down, durably, before it happens.
    ///
    /// # Errors
    /// [`AUDIT_FAILED`](code::AUDIT_FAILED): then it must not happen.
    pub fn audit(&self, actor: &str, act: &str, object: &str) -> Result<Audit<'_>> {
        let connection = self.connection();
        // Invariant 10
        let id = connection
            .query_row(
                "INSERT INTO audit (at_us, actor, act, object, outcome) VALUES (?1, ?2, ?3, ?4, 'begun') RETURNING id",
                params![now_us(), actor, act, object],
                |row| row.get(0),
            )
            .map_err(|error| Error::new(&code::AUDIT_FAILED, "write audit log").with("act", act).with("object", object).because(error))?;
        Ok(Audit { store: self, id, actor: actor.to_owned(), act: act.to_owned(), object: object.to_owned() })
    }

    /// Whether the operator paused this pipeline.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn paused(&self, pipeline: &str) -> Result<bool> {
        let found = self
            .connection()
            .query_row("SELECT paused FROM pipeline WHERE name = ?1", [pipeline], |row| row.get(0))
            .optional()
            .map_err(unreadable)?;
        Ok(found.unwrap_or(false))
    }

    /// Remembers whether the operator paused this pipeline.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn set_paused(&self, pipeline: &str, paused: bool) -> Result<()> {
        let statement = "INSERT INTO pipeline (name, paused) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET paused = ?2";
        self.connection().execute(statement, params![pipeline, paused]).map_err(unwritable).map(|_| ())
    }

    /// The module that this pipeline is pinned to.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn module(&self, pipeline: &str) -> Result<Option<String>> {
        let found = self
            .connection()
            .query_row("SELECT module FROM pipeline WHERE name = ?1", [pipeline], |row| row.get(0))
            .optional()
            .map_err(unreadable)?;
        Ok(found.flatten())
    }

    /// Pins this pipeline to a module.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn pin_module(&self, pipeline: &str, sha256: &str) -> Result<()> {
        let statement = "INSERT INTO pipeline (name, module) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET module = ?2";
        self.connection().execute(statement, params![pipeline, sha256]).map_err(unwritable).map(|_| ())
    }

    /// Forgets what is remembered of this pipeline; the audit log stays.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn forget(&self, pipeline: &str) -> Result<()> {
        self.connection().execute("DELETE FROM pipeline WHERE name = ?1", [pipeline]).map_err(unwritable).map(|_| ())
    }
}

impl Audit<'_> {
    /// Writes down what came of it.
    pub fn finish<T>(self, outcome: &Result<T>) {
        let (word, detail) = match outcome {
            Ok(_) => ("done", None),
            Err(error) => ("failed", Some(error.to_string())),
        };
        let written = self.store.connection().execute(
            "INSERT INTO audit (of, at_us, actor, act, object, outcome, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![self.id, now_us(), self.actor, self.act, self.object, word, detail],
        );
        if let Err(error) = written {
            // The act itself is on record; only its outcome is not.
            tracing::error!(code = %code::AUDIT_FAILED, act = self.act, object = self.object, %error, "the outcome of an act is not in the audit log");
        }
    }
}

fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

fn unreadable(error: rusqlite::Error) -> Error {
    Error::new(&code::DATA_DIR_UNUSABLE, "read control store").because(error)
}

fn unwritable(error: rusqlite::Error) -> Error {
    Error::new(&code::DATA_DIR_UNUSABLE, "write control store").because(error)
}
