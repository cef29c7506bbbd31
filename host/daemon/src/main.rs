//! The binary `tidegate`: reads configuration, wires sources, relay, pipelines and destinations, and forwards signals.
//!
//! `run` is the daemon. Every other command that needs one is its client over the unix socket in `data_dir`; the rest
//! (`validate`, `doctor`, `transform`, `schema`, `version`, `explain`) works without it.
//!
//! Exit codes: 0 ok, 1 something failed while running, 2 the configuration, a program or an argument is wrong, 3 the
//! surroundings are (a server, a right, a file), 130 and 143 cut short by a signal.

#![deny(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod cli;
mod client;
mod command;
mod config;
mod daemon;
mod output;
mod program;
mod registry;
mod suggest;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
