//! The durable format, number 1. All tables are in the schema that the configuration names.
//!
//! * `metadata (name, value)`: one row `format` = `1`. A schema with a higher number is refused and left as it is.
//! * `pipelines`: one row a pipeline. `source_system source_timeline source_database source_epoch` are the parts of the source
//!   identity; `fingerprint` 64 hexadecimal digits; `fence` the highest fencing token; `checkpoint` a `pg_lsn`, which is 64 bits
//!   without sign, null before there is one; `snapshot_epoch` null before the first snapshot; `snapshot_complete`.
//! * `documents`: primary key `(pipeline, collection, key)`, all `COLLATE "C"`, so that they are ordered as bytes. `document` is text,
//!   exactly the bytes that the transform gave: readers cast it to `json` or `jsonb` as they like, which would change it if it
//!   were stored so. `content_hash` is the 32 bytes of [`tidegate_api::hash::content_hash`]; `change_id` what wrote the
//!   document last.
//!
//! A destination transaction locks the pipeline's row first; the row and the documents always agree.

use tidegate_api::{CommitPosition, Error, Fingerprint, PipelineRecord, Result, SnapshotEpoch, SourceIdentity, code};
use tokio_postgres::Row;
use tokio_postgres::types::PgLsn;

/// The number of this format.
pub const FORMAT: u32 = 1;

/// A row of `read_record.sql`.
pub(super) fn read_record(row: &Row) -> Result<PipelineRecord> {
    let record = || -> Option<PipelineRecord> {
        let source = SourceIdentity {
            system: row.try_get(0).ok()?,
            timeline: u32::try_from(row.try_get::<_, i64>(1).ok()?).ok()?,
            database: row.try_get(2).ok()?,
            epoch: row.try_get(3).ok()?,
        };
        let checkpoint: Option<PgLsn> = row.try_get(6).ok()?;
        Some(PipelineRecord {
            source,
            fingerprint: row.try_get::<_, &str>(4).ok()?.parse::<Fingerprint>().ok()?,
            fence: row.try_get::<_, &str>(5).ok()?.parse().ok()?,
            checkpoint: checkpoint.map(|position| CommitPosition::new(position.into())),
            epoch: row.try_get::<_, Option<String>>(7).ok()?.map(SnapshotEpoch),
            complete: row.try_get(8).ok()?,
        })
    };
    let strange =
        || Error::new(&code::DESTINATION_UNUSABLE, "read record").because("the pipelines table holds what no release of tidegate wrote");
    record().ok_or_else(strange)
}
