//! Destinations, read back by their own clients.

use std::path::PathBuf;

use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use tidegate_testkit::Postgres;

use crate::compare::Documents;

/// Where a pipeline writes.
#[derive(Clone, Debug)]
pub enum Target {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A database with the schema `tidegate`.
    Postgres(&'static Postgres, String),
}

/// Rows of text values.
type Rows = Vec<Vec<Option<String>>>;

impl Target {
    /// A new database on this server.
    pub async fn postgres(server: &'static Postgres) -> Self {
        Self::Postgres(server, server.create_database("target").await)
    }

    /// The destination's part of the configuration.
    pub fn config(&self) -> Value {
        match self {
            Self::Sqlite(path) => json!({"kind": "sqlite", "path": path}),
            Self::Postgres(server, database) => json!({"kind": "postgres", "url": server.url(database), "schema": "tidegate"}),
        }
    }

    /// Whether the document is there.
    pub async fn has(&self, pipeline: &str, collection: &str, key: &str) -> bool {
        let query = format!("SELECT 1 FROM documents WHERE pipeline = '{pipeline}' AND collection = '{collection}' AND key = '{key}'");
        !self.query(&query).await.is_empty()
    }

    /// How many documents a pipeline has there.
    pub async fn count(&self, pipeline: &str) -> u64 {
        let rows = self.query(&format!("SELECT count(*) FROM documents WHERE pipeline = '{pipeline}'")).await;
        rows.first().and_then(|row| row.first()?.as_deref()?.parse().ok()).unwrap_or(0)
    }

    /// The sum of all balances: not 0 where half a transaction can be seen.
    pub async fn balance(&self, pipeline: &str) -> i64 {
        let balance = match self {
            Self::Sqlite(_) => "json_extract(CAST(document AS TEXT), '$.balance')",
            Self::Postgres(..) => "(document_text::json ->> 'balance')::bigint",
        };
        let query =
            format!("SELECT coalesce(sum({balance}), 0) FROM documents WHERE pipeline = '{pipeline}' AND collection = 'shop.orders'");
        self.query(&query).await.first().and_then(|row| row.first()?.as_deref()?.parse().ok()).unwrap_or(0)
    }

    /// Every document of a pipeline.
    ///
    /// # Panics
    /// When a row has no key or no document.
    pub async fn documents(&self, pipeline: &str) -> Documents {
        let mut found = Documents::new();
        let query = format!("SELECT collection, key, document_text FROM documents WHERE pipeline = '{pipeline}'");
        for row in self.query(&query).await {
            let [Some(collection), Some(key), Some(document)] = &row[..] else { panic!("a row without key or document") };
            found.entry(collection.clone()).or_default().insert(key.clone(), document.clone());
        }
        found
    }

    /// Rows of a query over `documents`, `document_text` standing for the document as text; none while there is no such table.
    ///
    /// # Panics
    /// When the query fails for another reason.
    pub async fn query(&self, query: &str) -> Rows {
        match self {
            Self::Sqlite(path) => {
                let Ok(connection) = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY) else { return Vec::new() };
                connection.busy_timeout(std::time::Duration::from_secs(20)).expect("a time limit can be set");
                match sqlite_rows(&connection, &query.replace("document_text", "CAST(document AS TEXT)")) {
                    Err(error) if error.to_string().contains("no such table") => Vec::new(),
                    rows => rows.unwrap_or_else(|error| panic!("{query}: {error}")),
                }
            }
            Self::Postgres(server, database) => {
                let kind = "SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = to_regclass('tidegate.documents') AND attname = 'document'";
                let document = match server.value(database, kind).await.as_str() {
                    "" => return Vec::new(),
                    "bytea" => "convert_from(document, 'UTF8')",
                    _ => "document::text",
                };
                server.rows(database, &query.replace("document_text", document).replace("FROM documents", "FROM tidegate.documents")).await
            }
        }
    }
}

pub(crate) fn sqlite_rows(connection: &Connection, query: &str) -> rusqlite::Result<Rows> {
    let mut statement = connection.prepare(query)?;
    let columns = statement.column_count();
    let value = |row: &rusqlite::Row<'_>, column| {
        Ok(match row.get_ref(column)? {
            rusqlite::types::ValueRef::Null => None,
            rusqlite::types::ValueRef::Integer(number) => Some(number.to_string()),
            rusqlite::types::ValueRef::Real(number) => Some(number.to_string()),
            rusqlite::types::ValueRef::Text(text) | rusqlite::types::ValueRef::Blob(text) => {
                Some(String::from_utf8_lossy(text).into_owned())
            }
        })
    };
    statement.query_map((), |row| (0..columns).map(|column| value(row, column)).collect())?.collect()
}
