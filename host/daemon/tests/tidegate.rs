//! The binary as a child.

use std::path::Path;
use std::process::{Command, Output};

/// What a run of the binary gave.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs the binary in `folder`, with an environment that holds nothing of the user's.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Ran {
    run_with(folder, arguments, &[])
}

pub(crate) fn run_with(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(arguments).current_dir(folder).env_clear().envs(environment.iter().copied());
    // Compiled guests are shared by all tests: only the first one compiles.
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    ran(command.output().unwrap())
}

fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
