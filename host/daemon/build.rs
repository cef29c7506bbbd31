//! What `tidegate version` says about how it was built.

use std::path::Path;
use std::process::Command;

fn main() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let version = version.as_deref().and_then(|text| text.split(' ').nth(1)).unwrap_or("unknown").trim().to_owned();
    println!("cargo::rustc-env=TIDEGATE_RUSTC={version}");

    let root = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let lock = Path::new(&root).join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    println!("cargo::rerun-if-changed=build.rs");
    let lock = std::fs::read_to_string(lock).unwrap_or_default();
    println!("cargo::rustc-env=TIDEGATE_WASMTIME={}", locked(&lock, "wasmtime").unwrap_or("unknown"));
}

/// The version of a package in Cargo.lock.
fn locked<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let behind = lock.split(&format!("name = \"{package}\"\nversion = \"")).nth(1)?;
    behind.split('"').next()
}
