//! One transaction at a time: transform, pace, apply, acknowledge.
//!
//! ```text
//! Lease::next_run ──Delivery──▶ prepare (transform, map, spool) ──Batch──▶ apply with retry ──▶ Delivery::ack
//! ```
//!
//! [`start`] runs a pipeline's worker on the current runtime and gives a [`Handle`] to watch it and to act on it. What a
//! pipeline may do next is one table, in [`state`]. A pipeline never knows the sandbox or a connector: it is given a
//! [`Transform`](tidegate_api::Transform), a [`Destination`](tidegate_api::Destination) and a relay log.
//!
//! * A source transaction becomes one immutable batch (Invariant 4). Several waiting ones are applied as one run.
//! * The destination's answer must be the batch's own position, in every attempt; only then is the delivery acknowledged
//!   (Invariant 2).
//! * A change that the transform refuses pauses the pipeline with a [`PoisonReport`]: what came before it is applied, nothing
//!   behind it is.

#![deny(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod apply;
mod commands;
mod ending;
mod failpoints;
pub mod fingerprint;
mod handle;
mod lag;
mod mapping;
mod prepare;
mod retry;
mod session;
mod settings;
mod snapshot;
mod spool;
pub mod state;
mod status;
mod worker;

pub use fingerprint::fingerprint;
pub use handle::{Handle, Parts, Stored, start};
pub use settings::{MaxTransaction, RetryPolicy, Settings};
pub use state::State;
pub use status::{PoisonReport, Problem, Status};
