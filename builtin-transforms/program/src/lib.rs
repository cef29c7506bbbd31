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
//!
//! # What a program does to a document
//!
//! The document must be one JSON object in UTF-8 of a content type that begins with `application/json`. All of it is checked,
//! whether an instruction looks there or not. Then the instructions run from the first to the last, each on what the earlier
//! ones have left. What no instruction touches comes out as it came, digits and escapes too, without insignificant white space.
//!
//! | instruction | effect |
//! |---|---|
//! | `remove` *path* | The member goes; the order of the others stays. Nothing happens where it is not there. |
//! | `set` *path* *value* | The literal takes the place of the value that is there, else it becomes the last member. Parents that are missing or null become objects. |
//! | `copy` *from* *to* | The value at *from*, in its text as it came, is put at *to* as `set` would. Later changes of either do not touch the other. |
//! | `route` *path* | The text, number, `true` or `false` becomes the partition key. The last one holds. |
//! | `drop-when-equals` *path* *value* | If equal, the document is dropped, and nothing more runs. |
//! | `require-equals` *path* *value* | If not equal, the document is poison. |
//!
//! A path goes through objects only, by the exact names: what is null, in an array or under a scalar is missing, and what is
//! missing equals null. Equality is deep: numbers by their exact decimal value, texts by what they say, arrays in their order,
//! objects in any.
//!
//! A delete runs no instruction. Where the program has a `route`, a delete must have a partition key that is not blank (unless
//! `require_partitioned_deletes` is false), and a collection cannot be deleted. Blank is what has only Unicode's white space.
//!
//! # Poison
//!
//! | kind | when |
//! |---|---|
//! | `limit-document-bytes` | the document is larger than the limit, on the way in or out |
//! | `content-type` | the content type does not begin with `application/json`, in any case |
//! | `limit-batch-bytes` | all documents of the batch, in and out, are larger than the limit |
//! | `invalid-json` | not exactly one JSON text in UTF-8 |
//! | `limit-depth` | more containers are open at once than the limit, on the way in or out |
//! | `not-an-object` | the JSON text is not an object |
//! | `limit-operations` | one instruction more is to run than the limit, over the batch |
//! | `duplicate-name` | a name that an instruction looks for is there twice, or any name of an object that is compared with an object |
//! | `parent-not-object` | `set` or `copy` would go through a scalar or an array |
//! | `copy-source-missing` | there is nothing at *from*, or null |
//! | `route-missing` | there is nothing at *path*, or null, or a blank text |
//! | `route-not-scalar` | there is an object or array at *path* |
//! | `route-not-text` | there is a text with half of a surrogate pair at *path*: no partition key can say that |
//! | `required-value-differs` | `require-equals` is not met |
//! | `number-exponent` | a number with an exponent of more than 18 digits is compared with a number |
//! | `delete-without-partition`, `collection-delete-with-route` | see above |
//!
//! The checks come in this order for one document; size and depth of the output are looked at once, after the last
//! instruction. The limits of mutations, time and memory are kept by the host that runs an [`Executor`].

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
mod learn;
mod limits;
mod literal;
mod measure;
mod outline;
mod overlay;
mod parse;
mod path;
mod plan;
mod poison;
mod program;
mod recipe;
mod run;
mod scan;
mod shape;
mod shapes;
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
