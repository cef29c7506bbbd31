//! One transaction's changes, as a source hands them over.

use std::fmt;

use crate::{CommitPosition, Lsn};

/// What happened to a row, or to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A new row: `new` is its document.
    Insert,
    /// A changed row whose key stayed the same: `new` is its document, `old` the one before it where the source sends it.
    ///
    /// A change *of the key* arrives as [`Delete`](Self::Delete) of the old key, then [`Insert`](Self::Insert) of the new one.
    Update,
    /// A deleted row: `old` is its document where the source sends it.
    Delete,
    /// Every row of the table is gone. The key is empty and there are no documents.
    Truncate,
    /// A row that a snapshot found: `new` is its document.
    Row,
}

/// One change of one row, borrowed from the [`Chunk`](crate::Chunk) that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// Its number within the transaction (or the snapshot), from 0, growing; gaps are allowed.
    pub ordinal: u32,
    /// The table, as [`TableName`](crate::TableName) shows it.
    pub relation: &'a str,
    /// What happened.
    pub operation: Operation,
    /// The document's own value of the key column: a string's content, else the JSON text; several columns: a compact JSON
    /// array in the key's order. Empty for [`Operation::Truncate`].
    pub key: &'a str,
    /// What the destination may place the document by, where the source knows it.
    pub partition_key: Option<&'a str>,
    /// The row's document before the change, where the source sends it.
    pub old: Option<&'a [u8]>,
    /// The row's document after the change.
    pub new: Option<&'a [u8]>,
    /// The content type of the documents. `None` is `application/json`, which is all that sources produce.
    pub content_type: Option<&'a str>,
    /// Set where the source could not render `new`: the columns that are missing (an unchanged TOAST value without an old
    /// image). Such a change is poison of kind `unchanged-toast`.
    pub unavailable: Option<&'a str>,
}

/// The identity of a change: never made by a transform, the same on every attempt in every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeId {
    /// The end of its transaction's commit record.
    pub position: CommitPosition,
    /// Its number within the transaction.
    pub ordinal: u32,
}

impl fmt::Display for ChangeId {
    /// 16 hexadecimal digits of the position, a colon, 8 of the ordinal: as text it sorts as it does as a value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CommitPosition(Lsn(position)) = self.position;
        write!(f, "{position:016X}:{:08X}", self.ordinal)
    }
}

/// What is known of a transaction beside its changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionMeta {
    /// The source's transaction id; 0 where the source has none.
    pub xid: u32,
    /// The end of its commit record.
    pub position: CommitPosition,
    /// When it was committed, in microseconds since 1970-01-01 00:00:00 UTC, by the source's clock.
    pub commit_time_us: i64,
    /// How many changes it holds.
    pub changes: u64,
}
