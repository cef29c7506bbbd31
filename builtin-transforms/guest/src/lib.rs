//! The guest that runs programs.
//!
//! Its configuration is the canonical text of a program (see `tidegate-program`), its frames are those of `tidegate-frame`.
//! It names the guilty record itself, so that a host need not search for it.
//!
//! It is built for `wasm32-unknown-unknown` by `tidegate-builtin-transforms`. Everything but the way in (`component`) and the
//! memory (`arena`) also builds for the host, where its tests run.

#![deny(missing_docs)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod answer;
#[cfg(target_arch = "wasm32")]
mod arena;
#[cfg(target_arch = "wasm32")]
mod component;

pub use answer::{answer, executor};
