//! What goes into a program, and what comes out.

use std::borrow::Cow;

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
pub struct PartitionKey<'a>(pub(crate) Cow<'a, str>);

impl AsRef<str> for PartitionKey<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// What becomes of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// It goes on.
    Keep {
        /// None: as it came.
        partition_key: Option<PartitionKey<'a>>,
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

impl Verdict<'_> {
    /// The same, without a hold on the change.
    pub(crate) fn into_owned(self) -> Verdict<'static> {
        match self {
            Self::Keep { partition_key } => {
                Verdict::Keep { partition_key: partition_key.map(|PartitionKey(key)| PartitionKey(Cow::Owned(key.into_owned()))) }
            }
            Self::Drop => Verdict::Drop,
            Self::Poison { kind, reason } => Verdict::Poison { kind, reason },
        }
    }
}
