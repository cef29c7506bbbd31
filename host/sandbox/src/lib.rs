//! Runs transforms: WebAssembly guests that have no capabilities, under limits.
//!
//! This is the only crate that knows the engine. To its users a transform is a [`tidegate_api::Transform`]:
//!
//! ```no_run
//! # async fn example(program: tidegate_program::Program) -> tidegate_api::Result<()> {
//! use tidegate_sandbox::{Sandbox, Settings};
//!
//! let sandbox = Sandbox::open(Settings { modules: "data/modules".into(), worker: std::env::current_exe().unwrap(), threads: None })?;
//! let module = sandbox.provision_program_guest()?;
//! let transform = sandbox.program(program, &module).await?;
//! println!("{}", transform.definition());
//! # Ok(())
//! # }
//! ```
//!
//! # Where things happen
//!
//! * A module is verified and compiled in a child process (`compile-worker`) that has bounds of its own; this process only loads
//!   what came of it, from a cache that nobody else can write ([`cache`](crate) in the folder of modules).
//! * Guest code runs on the sandbox's own threads. It is interrupted every million units of fuel, some hundred microseconds
//!   apart: there the time limit and cancellation are seen and the next pipeline gets its turn.
//! * An instance that has answered is used again: the built-in guest keeps nothing between calls. After a trap it is thrown away.
//!
//! # Limits
//!
//! The guest counts document bytes, batch bytes, operations and depth. The host counts mutations and processor time over a
//! transaction, and memory and fuel of each call. A call that ends for want of memory or fuel is made again in new instances
//! with fewer records until the guilty one is found; a transaction that takes too long is refused when it does so twice.

#![deny(missing_docs, unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod cache;
mod chain;
mod compile;
mod engine;
mod folder;
mod frames;
mod instance;
mod limiter;
mod module;
mod pool;
mod program;
mod run;
mod sandbox;
mod store;

pub use chain::chain;
pub use compile::worker::compile_worker;
pub use sandbox::{Sandbox, Settings};
