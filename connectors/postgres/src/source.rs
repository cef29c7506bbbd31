//! PostgreSQL as a source: a publication, a replication slot, a snapshot, and a capture that reads them.
//!
//! # Documents
//!
//! A document is `row_to_json` of the row's published columns, without insignificant white space, as a session with
//! `TimeZone` UTC and otherwise default settings gives it: same members in column order, same digits, same text. No
//! user-defined cast to json is run, but hstore is an object. Snapshot (`COPY` as text) and stream (pgoutput as text) go
//! through the same encoder and give the same bytes. This is document format 1.
//!
//! Keys are the columns of the replica identity: the primary key under `DEFAULT` and `FULL`, the index's columns under
//! `USING INDEX`. The key text is the document's own value: a string's content, else the JSON text; several columns are a
//! compact JSON array in the key's order.
//!
//! # Large values that an update did not touch
//!
//! The server does not send them. Under `REPLICA IDENTITY FULL` they are taken from the row before the change. Otherwise
//! [`Unchanged::Refuse`] hands the change on without its document, with the names of the missing columns: it is poison.
//! [`Unchanged::Reselect`] reads them by key from the table while the change is captured: the values are those of now, so
//! a document may be ahead of its transaction in these columns; the transactions behind it bring the rest. A row that is
//! gone by then is handed on as deleted, as a later transaction says.
//!
//! # What is created
//!
//! First the publication (where it is missing and the role may; it carries the comment `created by tidegate`), then the
//! slot. Tables that lack a key are refused before either. Every snapshot has a temporary slot of its own.

pub(crate) mod capture;
pub(crate) mod catalogue;
pub(crate) mod checks;
pub mod pgoutput;
mod preflight;
pub(crate) mod publication;
pub(crate) mod relation;
pub(crate) mod render;
pub(crate) mod shape;
pub mod slot;
pub(crate) mod snapshot;
pub(crate) mod wire;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use tidegate_api::{
    BoxFuture, Capture, Error, Finding, Lsn, Result, Resume, Snapshot, SnapshotSource, Source, SourceStatus, TableName, code,
};
use tokio::sync::Mutex;

use crate::connect::{Role, Settings};
use slot::Slot;
use wire::{Mode, Wire, text};

/// What to do where an update comes without a large value that it did not touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unchanged {
    /// The change is handed on without its document, which is poison.
    #[default]
    Refuse,
    /// The value is read from the table.
    Reselect,
}

/// Where a source is and what it reads by.
#[derive(Clone)]
pub struct SourceConfig {
    /// `postgres://user:password@host:port/database?sslmode=…`
    pub url: String,
    /// The publication that chooses tables, columns and rows.
    pub publication: String,
    /// The replication slot: lower-case letters, digits and underscores.
    pub slot: String,
    /// What to do about unchanged large values, where it is not the default.
    pub tables: HashMap<TableName, Unchanged>,
}

/// A database whose committed changes are read.
pub struct PostgresSource {
    pub(crate) inner: Arc<Inner>,
    status: Mutex<Option<Wire>>,
}

/// What every part of a source knows.
pub(crate) struct Inner {
    pub(crate) settings: Settings,
    pub(crate) publication: String,
    pub(crate) slot: String,
    pub(crate) policies: HashMap<TableName, Unchanged>,
    /// Whether what may go wrong later was told, by a look or by an opening: it is told once.
    pub(crate) warned: AtomicBool,
}

impl PostgresSource {
    /// A source with these settings; nothing is connected yet.
    ///
    /// # Errors
    /// [`SOURCE_SETTING`](code::SOURCE_SETTING) names the part that is wrong.
    pub fn new(config: SourceConfig) -> Result<Self> {
        let settings = Settings::parse(&config.url, Role::Source)?;
        let wrong = |part: &'static str, value: &str, rule: &'static str| {
            Err(Error::new(&code::SOURCE_SETTING, "read source").with(part, value).because(rule))
        };
        let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if config.slot.is_empty() || config.slot.len() > 63 || !config.slot.bytes().all(letters) {
            return wrong("slot", &config.slot, "a slot's name is 1 to 63 lower-case letters, digits and underscores");
        }
        if config.publication.is_empty() || config.publication.len() > 63 || config.publication.contains('\0') {
            return wrong("publication", &config.publication, "a publication's name is 1 to 63 bytes long");
        }
        let inner =
            Inner { settings, publication: config.publication, slot: config.slot, policies: config.tables, warned: AtomicBool::new(false) };
        Ok(Self { inner: Arc::new(inner), status: Mutex::new(None) })
    }

    /// The logical slots of the database, ours among them, with what they cost.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn slots(&self) -> Result<Vec<Slot>> {
        let mut wire = Wire::open(&self.inner.settings, Mode::Ordinary).await?;
        let slots = slot::list(&mut wire, &self.inner.slot).await;
        wire.close().await;
        slots
    }

    /// Drops a slot of this database by its name; one that is not there is no error.
    ///
    /// # Errors
    /// [`SLOT_IN_USE`](code::SLOT_IN_USE) when somebody reads it.
    pub async fn drop_slot(&self, name: &str) -> Result<()> {
        let mut wire = Wire::open(&self.inner.settings, Mode::Ordinary).await?;
        let dropped = slot::remove(&mut wire, name).await;
        wire.close().await;
        dropped
    }

    async fn clear(&self) -> Result<()> {
        let mut wire = Wire::open(&self.inner.settings, Mode::Ordinary).await?;
        slot::remove(&mut wire, &self.inner.slot).await?;
        publication::remove(&mut wire, &self.inner.publication).await?;
        wire.close().await;
        Ok(())
    }

    async fn ask(&self) -> Result<SourceStatus> {
        // One session is kept for all questions; where it was lost meanwhile, another is tried once.
        let mut kept = self.status.lock().await;
        let again = kept.is_some();
        let mut wire = match kept.take() {
            Some(wire) => wire,
            None => Wire::open(&self.inner.settings, Mode::Ordinary).await?,
        };
        let mut answer = status(&mut wire, &self.inner.slot).await;
        if again && answer.as_ref().is_err_and(Error::is_transient) {
            wire = Wire::open(&self.inner.settings, Mode::Ordinary).await?;
            answer = status(&mut wire, &self.inner.slot).await;
        }
        if answer.is_ok() {
            *kept = Some(wire);
        }
        answer
    }
}

async fn status(wire: &mut Wire, name: &str) -> Result<SourceStatus> {
    let rows = wire.query("SELECT pg_catalog.pg_current_wal_flush_lsn()", "read status").await?;
    let head: Option<Lsn> = rows.first().and_then(|row| text(row, 0).parse().ok());
    let slot = slot::find(wire, name).await?;
    let retained_bytes = slot.as_ref().and_then(|slot| slot.retained_bytes);
    Ok(SourceStatus { head, retained_bytes, slot_state: slot.map(|slot| slot.state) })
}

impl Source for PostgresSource {
    fn preflight<'a>(&'a self, tables: &'a [TableName]) -> BoxFuture<'a, Result<Vec<Finding>>> {
        Box::pin(preflight::run(&self.inner, tables))
    }

    fn open<'a>(&'a self, resume: &'a Resume, tables: &'a [TableName]) -> BoxFuture<'a, Result<Box<dyn Capture>>> {
        Box::pin(capture::open(Arc::clone(&self.inner), resume.clone(), tables.to_vec()))
    }

    fn remove(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.clear())
    }

    fn status(&self) -> BoxFuture<'_, Result<SourceStatus>> {
        Box::pin(self.ask())
    }

    fn snapshots(&self) -> Option<&dyn SnapshotSource> {
        Some(self)
    }
}

impl SnapshotSource for PostgresSource {
    fn begin<'a>(&'a self, tables: &'a [TableName]) -> BoxFuture<'a, Result<Box<dyn Snapshot>>> {
        Box::pin(snapshot::begin(&self.inner, tables))
    }
}
