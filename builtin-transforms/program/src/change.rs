//! What goes into a program, and what comes out.

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// Puts a document.
    Upsert,
    /// Takes a document away.
    Delete,
    /// Takes all documents of a collection away.
    DeleteCollection,
}

/// One change, as it comes to a program.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// What it does.
    pub kind: InputKind,
    /// The document of an upsert; not looked at for the others.
    pub document: &'a [u8],
    /// Where the change itself places the document.
    pub partition_key: Option<&'a str>,
    /// None means `application/json`.
    pub content_type: Option<&'a str>,
}

/// Budgets over a whole batch that were used already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Instructions started.
    pub operations: u64,
    /// Bytes of documents taken in and given out.
    pub batch_bytes: u64,
}

/// A partition key that a program gave.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionKey(pub(crate) String);

impl AsRef<str> for PartitionKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// What becomes of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Keep {
        /// None: as it came.
        partition_key: Option<PartitionKey>,
    },
    /// It goes no further.
    Drop,
    /// It cannot be: and with it its whole batch.
    Poison {
        /// Its kind, a stable name.
        kind: &'static str,
        /// What is wrong: names paths, limits and sizes, never a value of the document.
        reason: String,
    },
}
