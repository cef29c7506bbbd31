//! The byte layout of one call to a guest: the world `framed` of the package `tidegate:transform`.
//!
//! A call carries a *request* frame in and a *response* frame out. Both are one flat buffer, because that is what crosses the
//! boundary of a sandbox at the price of a copy; typed lists would cost ten times more per record.
//!
//! # Version 1
//!
//! Numbers are little-endian. `text` is `bytes` that are UTF-8. An optional field is there when its bit in the `present` byte
//! in front is set; fields follow in the order of their bits; every bit that is not named is 0.
//!
//! ```text
//! bytes    = length:u32 and that many bytes
//!
//! request  = version:u8 (1) present:u8 count:u32 operations:u64 batch_bytes:u64 header_fields record{count}
//!   header_fields: 1 position:u64      the end of the transaction's commit record
//!                  2 commit_time:i64   microseconds since 1970-01-01 00:00:00 UTC
//!
//! record   = kind:u8 present:u8 record_fields
//!   kind           1 upsert, 2 delete, 3 delete of the whole collection
//!   record_fields: 1 document:bytes        an upsert always has one
//!                  2 partition_key:text    where the change itself places the document
//!                  4 content_type:text     absent: application/json
//!                  8 relation:text         the table, quoted as SQL does where needed
//!                 16 key:text              the row's key
//!                 32 old:bytes             the document before the change
//!
//! response = outcomes | poison
//! outcomes = version:u8 (1) 1:u8 count:u32 operations:u64 batch_bytes:u64 outcome{count}
//! outcome  = kind:u8 present:u8 outcome_fields
//!   kind           1 keep, 2 delete, 3 drop; only a keep has fields
//!   outcome_fields: 1 document:bytes       for an upsert always, for deletes never
//!                   2 partition_key:text   absent: as it came
//!                   4 collection:text      one of those that the pipeline declares; absent: the table's own
//!
//! poison   = version:u8 (1) 2:u8 index:u32 kind:bytes reason:bytes
//!   index          the guilty record of the request, from 0; 0xffffffff where no single one is
//!   kind           1 to 64 bytes: lower-case letters, digits and hyphens
//!   reason         at most 8,192 bytes of text; names paths, limits and sizes, never values
//! ```
//!
//! `operations` and `batch_bytes` are budgets over a whole transaction: the request says what earlier calls have used, the
//! response what is used now. A guest that counts neither gives them back as they came.
//!
//! A frame ends with its last item; nothing may follow. A request holds 1 to [`MAX_RECORDS`] records, a response as many
//! outcomes as the request has records, or fewer, but at least one.
//!
//! Whoever reads refuses what it does not know: another version, an unknown kind, a bit without a name. A host therefore
//! sends a guest nothing that is newer than the version of the world that the guest exports.

#![deny(missing_docs, unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod read;
mod request;
mod response;

use std::fmt;

pub use request::{Record, RecordKind, Records, Request, RequestHeader, RequestWriter};
pub use response::{Item, Outcome, Outcomes, Place, PoisonFrame, Response, ResponseWriter, write_poison};

/// The version of the layout, the first byte of every frame.
pub const VERSION: u8 = 1;

/// The most records that a request may hold.
pub const MAX_RECORDS: u32 = 4096;

/// The longest kind of a poison, in bytes.
pub const MAX_KIND_BYTES: usize = 64;

/// The longest reason of a poison, in bytes.
pub const MAX_REASON_BYTES: usize = 8192;

/// What a transaction has used of its budgets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Instructions started.
    pub operations: u64,
    /// Bytes of documents taken in and given out.
    pub batch_bytes: u64,
}

/// Bytes that are no frame of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameError {
    /// Which rule they break.
    pub rule: &'static str,
    /// How many bytes were left to read when that was seen.
    pub bytes_left: usize,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed frame: {} ({} bytes before its end)", self.rule, self.bytes_left)
    }
}

impl std::error::Error for FrameError {}
