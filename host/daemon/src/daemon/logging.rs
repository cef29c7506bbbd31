//! The log on standard error: for people on a terminal, else one JSON object a line.

use std::io::IsTerminal as _;

use tidegate_api::{Error, Result, code};
use tracing_subscriber::EnvFilter;

use crate::cli::LogFormat;

/// Starts logging. `filter` is what is logged, in the form of `RUST_LOG`.
pub(crate) fn set_up(filter: &str, format: LogFormat) -> Result<()> {
    let refused = |error: &dyn std::fmt::Display| Error::new(&code::USAGE, "read log filter").because(error.to_string());
    let filter = EnvFilter::builder().parse(filter).map_err(|error| refused(&error))?;
    let terminal = std::io::stderr().is_terminal();
    let people = match format {
        LogFormat::Auto => terminal,
        LogFormat::Human => true,
        LogFormat::Json => false,
    };
    // A log that cannot be written (its disk is full, its reader is gone) is not told on standard error, where it could be
    // written as little: that would be a panic in the middle of the work.
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).log_internal_errors(false);
    let set = if people {
        builder.with_ansi(terminal).with_target(false).try_init()
    } else {
        builder.json().flatten_event(true).with_current_span(false).with_span_list(false).try_init()
    };
    set.map_err(|error| refused(&error))
}
