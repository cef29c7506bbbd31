//! The compile worker of this package's tests and benchmarks: what a host's executable does with the hidden command.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidegate_sandbox::compile_worker(std::env::args_os().skip(2))
}
