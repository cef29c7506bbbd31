//! `tidegate version`.

use serde_json::json;
use tidegate_api::Result;

use crate::output::Answer;

pub(crate) fn run() -> Result<Answer> {
    let guest = tidegate_builtin_transforms::program_guest().sha256;
    let (version, rustc, wasmtime) = (env!("CARGO_PKG_VERSION"), env!("TIDEGATE_RUSTC"), env!("TIDEGATE_WASMTIME"));
    let result = json!({"version": version, "rustc": rustc, "wasmtime": wasmtime, "program_guest": guest});
    let text = format!("tidegate {version}\nrustc {rustc}\nwasmtime {wasmtime}\nprogram guest {guest}\n");
    Ok(Answer::new("version", format!("tidegate {version}"), result, text))
}
