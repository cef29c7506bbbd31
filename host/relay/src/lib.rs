//! The durable log between a source and its pipelines.
//!
//! ```text
//! Source ──capture──▶ Log::append ──one write, one fdatasync──▶ segments ──Lease::next_run──▶ Delivery
//!    ◀──confirm(head)──┘                                           ▲                             │
//!                                          checkpoint (SQLite) ────┴──────────── ack ◀───────────┘
//! ```
//!
//! * [`Relay`] is a folder, [`Log`] one source's part of it: [segment files](segment) of [records](record), and a small
//!   [SQLite file](metadata) for what the source is and how far its groups have come.
//! * [`capture()`] is the only writer. It tells the source a position only after the segments hold it (Invariant 1).
//! * A [`Group`] is a named reader with a checkpoint; a [`Lease`] the right to read for it, under a fencing token; a
//!   [`Delivery`] one transaction on loan. Dropping a delivery gives it back, acknowledging it moves the checkpoint.
//! * Nothing is read before it is durable, and nothing goes before every group has passed it.
//! * A transaction of any size passes in chunks: while it arrives its parts are appended, and they count once its commit
//!   is there.
//!
//! After a crash the torn end of the last write does not count; a damaged record further up stops the groups that still
//! need it, with its position, and no others. [`power_cut`] is a disk that a test can take the power from.

#![deny(unsafe_code, missing_docs)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod capture;
mod delivery;
pub mod disk;
mod error;
mod failpoints;
mod group;
mod groups;
mod keeper;
mod lease;
mod log;
pub mod metadata;
mod options;
pub mod power_cut;
mod reader;
pub mod record;
mod record_file;
mod recovery;
mod relay;
mod retention;
pub mod segment;
mod segments;
mod writer;

pub use capture::{CaptureEvent, capture};
pub use delivery::Delivery;
pub use disk::{Disk, DiskFile, RealDisk};
pub use group::Group;
pub use groups::GroupStatus;
pub use lease::Lease;
pub use log::Log;
pub use options::{Clock, Options};
pub use relay::Relay;
