//! A SQLite file as a destination: documents and checkpoint move in one transaction.
//!
//! **Guarantee**: [`Guarantee::AtomicCheckpoint`](tidegate_api::Guarantee::AtomicCheckpoint). A run of source transactions is
//! one transaction of the file, committed with `synchronous=FULL` in WAL mode: when [`apply`] answers, an fsync has been done.
//!
//! **What recovery finds**: after a crash of the process or the machine, at any moment, the file holds exactly the
//! transactions up to the checkpoint. A run whose answer was lost is there whole (and answered "already applied") or not at all.
//!
//! **Limits**: a document of 256 MiB; pipeline, collection and key together 2,600 bytes; a local disk (WAL mode does not work
//! over a network). Several pipelines may share a file; their transactions take turns. Readers never block the writer.
//! The file must be ours from the start: one that belongs to another application is refused and left as it is.
//!
//! The tables are specified in [`encode`](mod@encode). They may be read at any time:
//!
//! ```sql
//! SELECT key, document ->> '$.status' FROM documents WHERE pipeline = 'all' AND collection = 'public.orders';
//! ```
//!
//! [`apply`]: tidegate_api::Destination::apply
//!
//! # Example
//!
//! ```
//! use tidegate_api::Destination;
//! use tidegate_sqlite::{Config, SqliteDestination};
//!
//! # async fn example() -> tidegate_api::Result<()> {
//! let folder = std::env::temp_dir();
//! let destination = SqliteDestination::new(Config { path: folder.join("out.db") })?;
//! for finding in destination.preflight().await? {
//!     println!("{}: {}", finding.subject, finding.detail);
//! }
//! # Ok(())
//! # }
//! ```

#![deny(missing_docs, unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod client;
mod config;
mod destination;
pub mod encode;
mod error;
mod file;
mod preflight;

pub use config::Config;
pub use destination::SqliteDestination;
