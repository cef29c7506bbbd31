//! A file as a source: one committed transaction a line, read as it grows.
//!
//! It is what the quickstart runs on where there is no PostgreSQL, and a way to feed a pipeline by hand.
//!
//! # Format
//! UTF-8, one JSON object a line (NDJSON), each line ended by `\n`; a last line without it is waited for. At most 64 MiB a line.
//!
//! ```json
//! {"position": "0/1A0", "xid": 731, "time": "2026-01-31T09:00:00.5Z", "changes": [
//!   {"relation": "public.orders", "op": "insert", "key": "42", "new": {"id": 42, "total": 1.10}},
//!   {"relation": "public.orders", "op": "update", "key": "42", "old": {"id": 42, "total": 1.10}, "new": {"id": 42, "total": 2.50}},
//!   {"relation": "public.orders", "op": "update", "key": "43", "old_key": "42", "new": {"id": 43, "total": 2.50}},
//!   {"relation": "public.orders", "op": "delete", "key": "43"},
//!   {"relation": "public.side", "op": "truncate"}]}
//! ```
//!
//! (shown on several lines here; it is one.)
//!
//! | member | meaning |
//! |---|---|
//! | `position` | where the transaction ends: an integer from 1, or text as PostgreSQL shows an LSN; grows from line to line |
//! | `xid` | its id, 0 to 4294967295; 0 when absent |
//! | `time` | when it was committed, RFC 3339 in UTC (`Z`), up to microseconds; 1970-01-01 when absent |
//! | `changes` | in order; may be empty |
//! | `relation` | `schema.table`, quoted as SQL does where needed |
//! | `op` | `insert`, `update`, `delete` or `truncate` |
//! | `key` | the row's key after the change; not with `truncate` |
//! | `old_key` | with `update` only: the key before, where it was another |
//! | `old`, `new` | JSON objects; `new` with insert and update; `old` may come with update and delete |
//!
//! Documents keep their bytes; only white space between tokens is removed. Unknown members are refused.
//!
//! # Guarantee
//! A line that is not a transaction ([`FILE_MALFORMED`](tidegate_api::code::FILE_MALFORMED)), or whose position does not
//! grow ([`FILE_ORDER`](tidegate_api::code::FILE_ORDER)), is told with its number once everything before it was handed over.
//! Nothing is skipped; the source goes on by itself when somebody has corrected the line.
//!
//! The file's identity is its canonical path and the SHA-256 of its first line. After a restart the lines up to the last
//! durable position are read again, for their positions alone, and passed over. A file that was replaced, has become shorter
//! or does not hold that position any more is refused for good ([`FILE_CHANGED`](tidegate_api::code::FILE_CHANGED)).
//!
//! What stood in the file before a pipeline began is its snapshot: the lines are replayed in order, with their updates,
//! deletes and truncates.

#![deny(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod capture;
mod config;
mod error;
mod line;
mod lines;
mod snapshot;
mod source;
mod time;

pub use config::Config;
pub use source::FileSource;
