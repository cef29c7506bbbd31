//! `tidegate run`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use tidegate_api::{Class, Error, Result, code};

use crate::cli::LogFormat;
use crate::config;
use crate::daemon;
use crate::output;

/// What still runs on threads of the runtime after an orderly stop gets this long.
const MAX_WAIT_FOR_THREADS: Duration = Duration::from_secs(2);

pub(crate) fn run(file: &Path, log: &str, format: LogFormat) -> ExitCode {
    match start(file, log, format) {
        Ok(code) => code,
        Err(error) => {
            output::fail(&error);
            // Whatever it is, it stands in the way of the start: the configuration is wrong, or the surroundings are.
            ExitCode::from(if error.code().class == Class::Invalid { 2 } else { 3 })
        }
    }
}

fn start(file: &Path, log: &str, format: LogFormat) -> Result<ExitCode> {
    daemon::set_up_logging(log, format)?;
    daemon::set_up_failpoints()?;
    let config = config::load(file)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::new(&code::INTERNAL, "start runtime").because(error))?;
    let outcome = runtime.block_on(daemon::run(config));
    runtime.shutdown_timeout(MAX_WAIT_FOR_THREADS);
    outcome
}
