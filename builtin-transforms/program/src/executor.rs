//! Running a program on documents.

use crate::model::{self, Answer, Model, Step};
use crate::path::Path;
use crate::program::{Instruction, Program};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionKey(String);

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
        /// What is wrong, without a value of the document.
        reason: String,
    },
}

/// Runs one program on one change after the other.
pub struct Executor {
    program: Program,
    model: Model,
}

impl Executor {
    /// An executor of `program`, with nothing spent.
    #[must_use]
    pub fn new(program: Program) -> Self {
        let limits = program.limits();
        let limits = model::Limits {
            document_bytes: limits.document_bytes,
            batch_bytes: limits.batch_bytes,
            operations: limits.operations,
            depth: usize::try_from(limits.depth).unwrap_or(256),
        };
        let path = |path: &Path| path.segments().map(str::to_owned).collect();
        let literal = |text: &str| model::parse(text.as_bytes(), 64).unwrap_or(model::Node::Null);
        let steps = program
            .instructions
            .iter()
            .map(|instruction| match instruction {
                Instruction::Remove { path: p } => Step::Remove(path(p)),
                Instruction::Set { path: p, value } => Step::Set(path(p), literal(&value.text)),
                Instruction::Copy { from, to } => Step::Copy(path(from), path(to)),
                Instruction::Route { path: p } => Step::Route(path(p)),
                Instruction::DropWhenEquals { path: p, value } => Step::DropWhenEquals(path(p), literal(&value.text)),
                Instruction::RequireEquals { path: p, value } => Step::RequireEquals(path(p), literal(&value.text)),
            })
            .collect();
        Self { program, model: Model { steps, limits, operations: 0, bytes: 0 } }
    }

    /// Starts a batch, or its next part: `spent` is what its earlier parts have used.
    pub fn begin(&mut self, spent: Spent) {
        self.model.operations = spent.operations;
        self.model.bytes = spent.batch_bytes;
    }

    /// What the batch has used up to now.
    #[must_use]
    pub fn spent(&self) -> Spent {
        Spent { operations: self.model.operations, batch_bytes: self.model.bytes }
    }

    /// Runs the program on one change. The document that comes of an upsert is appended to `out`; in all other cases `out`
    /// stays as it is.
    pub fn run(&mut self, input: &Input<'_>, out: &mut Vec<u8>) -> Verdict {
        let poison = |kind: &'static str| Verdict::Poison { kind, reason: kind.to_owned() };
        match input.kind {
            InputKind::Upsert => {
                let content_type = input.content_type.unwrap_or("application/json");
                let json = content_type.get(..16).is_some_and(|start| start.eq_ignore_ascii_case("application/json"));
                if !json && input.document.len() as u64 <= self.program.limits().document_bytes {
                    return poison("content-type");
                }
                match self.model.run(input.document) {
                    Answer::Keep(key, text) => {
                        out.extend_from_slice(text.as_bytes());
                        Verdict::Keep { partition_key: key.map(PartitionKey) }
                    }
                    Answer::Drop => Verdict::Drop,
                    Answer::Poison(kind) => poison(kind),
                }
            }
            InputKind::DeleteCollection if self.program.routes() => poison("collection-delete-with-route"),
            InputKind::Delete
                if self.program.routes()
                    && self.program.require_partitioned_deletes()
                    && input.partition_key.is_none_or(|key| key.trim().is_empty()) =>
            {
                poison("delete-without-partition")
            }
            InputKind::Delete | InputKind::DeleteCollection => Verdict::Keep { partition_key: None },
        }
    }
}
