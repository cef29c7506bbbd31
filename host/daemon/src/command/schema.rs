//! `tidegate schema`: JSON Schema of the formats that people write.

use std::process::ExitCode;

use tidegate_api::{Error, code};

use crate::config::Settings;
use crate::output;

pub(crate) fn config() -> ExitCode {
    let schema = schemars::schema_for!(Settings);
    print(serde_json::to_string_pretty(&schema))
}

pub(crate) fn program() -> ExitCode {
    print(Ok(tidegate_program::schema().trim_end().to_owned()))
}

fn print(text: serde_json::Result<String>) -> ExitCode {
    let written = text.map_err(std::io::Error::from).and_then(|text| output::print(&(text + "\n")));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output::fail(&Error::new(&code::OUTPUT_FAILED, "write schema").because(error)),
    }
}
