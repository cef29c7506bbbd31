//! Builds the guests for WebAssembly, makes components of them and takes their digests.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use sha2::{Digest, Sha256};

#[path = "build/guest.rs"]
mod guest;

/// What the guest's bytes depend on, from the workspace's folder.
const INPUTS: &[&str] = &[
    "builtin-transforms/build.rs",
    "builtin-transforms/build",
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
    "builtin-transforms/guest/Cargo.toml",
    "builtin-transforms/guest/src",
    "builtin-transforms/program/Cargo.toml",
    "builtin-transforms/program/src",
    "guest-sdk/frame/Cargo.toml",
    "guest-sdk/frame/src",
    "wit/transform.wit",
];

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("no CARGO_MANIFEST_DIR")?);
    let workspace = package.parent().ok_or("the package is not in a workspace")?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    for input in INPUTS {
        println!("cargo::rerun-if-changed={}", workspace.join(input).display());
    }
    let component = guest::build(workspace, &out.join("guest"), "tidegate-program-guest")?;
    fs::write(out.join("program.wasm"), &component).map_err(|error| format!("cannot write the guest: {error}"))?;
    println!("cargo::rustc-env=TIDEGATE_PROGRAM_GUEST_SHA256={}", hex::encode(Sha256::digest(&component)));
    Ok(())
}
