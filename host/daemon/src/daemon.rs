//! The daemon: what `tidegate run` does between a valid configuration and the last signal.

mod data_dir;
mod failpoints;
mod host;
mod logging;
mod pipelines;
mod preflight;
mod recipe;
mod removed;
mod signals;
mod source;
mod startup;

pub(crate) use self::data_dir::DataDir;
pub(crate) use self::failpoints::set_up as set_up_failpoints;
pub(crate) use self::logging::set_up as set_up_logging;
pub(crate) use self::preflight::{Found, look};
pub(crate) use self::source::states as source_states;
pub(crate) use self::startup::run;
