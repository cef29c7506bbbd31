//! What the capture asks the database on an ordinary session while changes are on the way.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_api::table::quote;
use tidegate_api::{Error, Result, TableName, code};

use super::assemble::RelationMessage;
use super::row::{Fill, Missing};
use crate::source::relation::Relation;
use crate::source::wire::{Mode, Row, Wire, literal};
use crate::source::{Inner, catalogue, shape};

/// The ordinary session, and the keys that the capture began with.
pub(crate) struct Lookup {
    inner: Arc<Inner>,
    wire: Wire,
    keys: HashMap<TableName, Vec<String>>,
}

impl Lookup {
    pub(crate) fn new(inner: Arc<Inner>, wire: Wire, keys: HashMap<TableName, Vec<String>>) -> Self {
        Self { inner, wire, keys }
    }

    /// Makes a relation of what the stream announced.
    ///
    /// # Errors
    /// [`KEY_MOVED`](code::KEY_MOVED) where the replica identity has other columns than when the capture began: documents
    /// are kept by the old ones. [`TYPE_MOVED`](code::TYPE_MOVED) where a type is gone.
    pub(crate) async fn relation(&mut self, message: &RelationMessage) -> Result<Relation> {
        let table = &message.table;
        let moved = |now: &[String]| Error::new(&code::KEY_MOVED, "read relation").with("table", table).with("key now", now.join(", "));
        let key = self.keys.get(table).cloned().ok_or_else(|| moved(&[]))?;
        if message.identity == b'f' {
            let now = self.again(async |wire| catalogue::key(wire, table).await).await?;
            // A table that is dropped by now has no key any more; its changes had the one that we know.
            if !now.is_empty() && now != key {
                return Err(moved(&now));
            }
        } else {
            let mut now = message.identity_columns.clone();
            let mut known = key.clone();
            now.sort_unstable();
            known.sort_unstable();
            if now != known {
                return Err(moved(&message.identity_columns));
            }
        }
        let asked: Vec<u32> = message.columns.iter().map(|(_, oid)| *oid).filter(|oid| shape::built_in(*oid).is_none()).collect();
        let described = self.again(async |wire| catalogue::describe(wire, &asked).await).await?;
        let unchanged = self.inner.policies.get(table).copied().unwrap_or_default();
        Relation::new(table.clone(), &message.columns, &key, &described, unchanged)
    }

    /// Reads values that were not sent, by the row's key.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub(crate) async fn reselect(&mut self, missing: &Missing) -> Result<Fill> {
        let columns: Vec<_> = missing.columns.iter().map(|(name, _)| quote(name)).collect();
        let key: Vec<_> = missing.key.iter().map(|(name, text)| format!("{} = {}", quote(name), literal(text))).collect();
        let sql = format!("SELECT {} FROM {} WHERE {}", columns.join(", "), missing.table.quoted(), key.join(" AND "));
        let operation = "read unchanged values";
        let answer = self.again(async |wire| wire.try_query(&sql, operation).await).await?;
        let mut rows: Vec<Row> = match answer {
            Ok(rows) => rows,
            Err(refusal) => {
                let table = &missing.table;
                tracing::warn!(%table, sqlstate = refusal.state, "unchanged values cannot be read from the table");
                return Ok(Fill::Unreadable);
            }
        };
        let Some(row) = rows.pop() else { return Ok(Fill::Gone) };
        let places = missing.columns.iter().map(|(_, place)| *place);
        Ok(Fill::Values(places.zip(row.into_iter().map(|text| text.map(String::into_bytes))).collect()))
    }

    /// Asks; where the session was lost meanwhile, once more on a new one.
    async fn again<T>(&mut self, mut ask: impl AsyncFnMut(&mut Wire) -> Result<T>) -> Result<T> {
        match ask(&mut self.wire).await {
            Err(error) if error.is_transient() => {
                self.wire = Wire::open(&self.inner.settings, Mode::Ordinary).await?;
                ask(&mut self.wire).await
            }
            answer => answer,
        }
    }
}
