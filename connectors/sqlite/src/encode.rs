//! The durable format, number 1.
//!
//! The file's `application_id` (SQLite's own header field) is `0x54444754`, the letters `TDGT`. Tables:
//!
//! * `metadata (name, value)`: one row `format` = `1`. A file with a higher number is refused and left as it is.
//! * `pipelines`: one row a pipeline. `source_system source_timeline source_database source_epoch` are the parts of the source
//!   identity; `fingerprint` 64 hexadecimal digits; `fence` the highest fencing token in decimal digits (64 bits without sign, which
//!   SQLite's integers do not hold); `checkpoint` as PostgreSQL shows a position (`16/B374D848`), null before there is one;
//!   `snapshot_epoch` null before the first snapshot, `snapshot_complete` 0 or 1.
//! * `documents`: primary key `(pipeline, collection, key)`, compared as bytes (`BINARY`). `document` holds exactly the bytes that
//!   the transform gave, as text where they are UTF-8 (so that SQLite's JSON functions read it), else as a blob.
//!   `content_hash` is the 32 bytes of [`tidegate_api::hash::content_hash`]; `change_id` what wrote the document last.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Row, ToSql};
use tidegate_api::{Fingerprint, PipelineRecord, SnapshotEpoch, SourceIdentity};

/// The header's `application_id`.
pub const APPLICATION_ID: u32 = 0x5444_4754;

/// The number of this format.
pub const FORMAT: u32 = 1;

/// A document as SQLite stores it.
pub(crate) struct Document<'a>(pub(crate) &'a [u8]);

impl ToSql for Document<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = if std::str::from_utf8(self.0).is_ok() { ValueRef::Text(self.0) } else { ValueRef::Blob(self.0) };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

/// A row of `read_record.sql`.
pub(crate) fn read_record(row: &Row<'_>) -> rusqlite::Result<PipelineRecord> {
    let source = SourceIdentity { system: row.get(0)?, timeline: row.get(1)?, database: row.get(2)?, epoch: row.get(3)? };
    let checkpoint: Option<String> = row.get(6)?;
    Ok(PipelineRecord {
        source,
        fingerprint: parse::<Fingerprint>(row.get(4)?, 4)?,
        fence: parse::<u64>(row.get(5)?, 5)?,
        checkpoint: checkpoint.map(|text| parse(text, 6)).transpose()?,
        epoch: row.get::<_, Option<String>>(7)?.map(SnapshotEpoch),
        complete: row.get(8)?,
    })
}

fn parse<T: std::str::FromStr>(text: String, column: usize) -> rusqlite::Result<T> {
    text.parse().map_err(|_| rusqlite::Error::InvalidColumnType(column, "pipelines".to_owned(), rusqlite::types::Type::Text))
}
