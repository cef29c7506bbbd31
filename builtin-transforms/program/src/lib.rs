//! Programs: finite lists of instructions that edit JSON documents.
//!
//! A program is a JSON file (its schema: [`schema`]):
//!
//! ```
//! let text = br#"{"name": "public-orders", "version": "v4", "instructions": [
//!   {"op": "require-equals", "path": "kind", "value": "order"},
//!   {"op": "copy", "from": "customer.name", "to": "displayName"},
//!   {"op": "remove", "path": "customer.email"},
//!   {"op": "set", "path": "metadata.source", "value": "cdc"},
//!   {"op": "route", "path": "tenant.id"},
//!   {"op": "drop-when-equals", "path": "status", "value": "cancelled"}]}"#;
//! use tidegate_program::{Executor, Input, InputKind, Program, Verdict};
//! let mut executor = Executor::new(Program::parse(text)?);
//! let document = br#"{"kind":"order","customer":{"name":"Ada","email":"a@x"},"tenant":{"id":7},"total":19.90}"#;
//! let input = Input { kind: InputKind::Upsert, document, partition_key: None, content_type: None };
//! let mut out = Vec::new();
//! let Verdict::Keep { partition_key: Some(key) } = executor.run(&input, &mut out) else { panic!() };
//! assert_eq!(key.as_ref(), "7");
//! let expected = r#"{"kind":"order","customer":{"name":"Ada"},"tenant":{"id":7},"total":19.90,"displayName":"Ada","metadata":{"source":"cdc"}}"#;
//! assert_eq!(out, expected.as_bytes());
//! # Ok::<(), tidegate_program::ProgramError>(())
//! ```

#![deny(missing_docs, unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod arena;
mod canonical;
mod change;
mod compare;
mod decimal;
mod decode;
mod edit;
mod error;
mod executor;
mod lanes;
mod limits;
mod literal;
mod measure;
mod overlay;
mod parse;
mod path;
mod plan;
mod poison;
mod program;
mod run;
mod scan;
mod strip;
mod track;
mod tree;
mod walk;
mod write;

pub use change::{Input, InputKind, PartitionKey, Spent, Verdict};
pub use error::ProgramError;
pub use executor::Executor;
pub use limits::Limits;
pub use program::Program;

/// The JSON Schema (draft 2020-12) of a program file.
///
/// What it cannot say: lengths of paths are counted in UTF-16 units there and in characters here; a literal may be at most as
/// deep as the limit of depth; no member may be repeated, also inside a literal.
#[must_use]
pub fn schema() -> &'static str {
    include_str!("schema.json")
}
