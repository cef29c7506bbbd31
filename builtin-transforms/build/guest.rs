//! Building one guest: the way from source to a component. Used by the build script and by the test that does it elsewhere.
//!
//! An inner cargo builds it: with a profile of its own and a target folder of its own, because the outer cargo holds the lock
//! on its own; without anything in the environment that would change the bytes (the wrapper of clippy, the flags of the user
//! or of the outer build); and with paths remapped, so that the bytes do not tell where they were built.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use wit_component::ComponentEncoder;

const TARGET: &str = "wasm32-unknown-unknown";

/// What the inner cargo may see of the environment: where tools, registries and proxies are.
const KEPT: &[&str] = &["PATH", "HOME", "TMPDIR", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "LD_LIBRARY_PATH"];
const KEPT_PREFIXES: &[&str] = &["CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTRIES_", "CARGO_SOURCE_", "SSL_CERT_", "GIT_SSL_"];
const KEPT_SUFFIXES: &[&str] = &["_PROXY", "_proxy"];

/// The component of `package`, a member of `workspace`. What cargo makes on the way stays in `target_dir`.
pub(crate) fn build(workspace: &Path, target_dir: &Path, package: &str) -> Result<Vec<u8>, String> {
    encode(&compile(workspace, target_dir, package)?)
}

/// Gives the core module that the inner cargo built.
fn compile(workspace: &Path, target_dir: &Path, package: &str) -> Result<Vec<u8>, String> {
    let mut cargo = Command::new(env::var_os("CARGO").ok_or("no CARGO")?);
    cargo.current_dir(workspace).env_clear().envs(env::vars_os().filter(|(name, _)| is_kept(name)));
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(workspace, target_dir));
    cargo.args(["build", "--quiet", "--locked", "--lib", "--profile", "guest", "--package", package, "--target", TARGET]);
    cargo.arg("--target-dir").arg(target_dir);
    let output = cargo.output().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        if errors.contains("can't find crate for `core`") || errors.contains("can't find crate for `std`") {
            return Err(format!(
                "the built-in guest needs the target {TARGET}, which is not installed; install it with\n\n    rustup target add {TARGET}\n"
            ));
        }
        return Err(format!("the built-in guest cannot be built ({}):\n{errors}", output.status));
    }
    let file = target_dir.join(TARGET).join("guest").join(package.replace('-', "_")).with_extension("wasm");
    fs::read(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))
}

fn is_kept(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        KEPT.contains(&name)
            || KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || KEPT_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
    })
}

/// Compiler flags, in the form of `CARGO_ENCODED_RUSTFLAGS`, which has precedence over every configuration file.
fn flags(workspace: &Path, target_dir: &Path) -> String {
    let mut flags = vec!["-Ctarget-feature=+simd128".to_owned()];
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let paths = [(Some(workspace.to_owned()), "/tidegate"), (cargo_home, "/cargo"), (Some(target_dir.to_owned()), "/target")];
    // The last that fits is taken: the target folder may lie in the workspace.
    flags.extend(paths.into_iter().filter_map(|(path, name)| Some(format!("--remap-path-prefix={}={name}", path?.display()))));
    flags.join("\u{1f}")
}

fn encode(module: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = ComponentEncoder::default();
    let encoded = encoder.validate(true).module(module).and_then(ComponentEncoder::encode);
    encoded.map_err(|error| format!("the built-in guest is no component: {error:#}"))
}
