//! The child's side of compiling.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::engine;
use crate::store::MAX_MODULE_BYTES;

/// Ends with this when the module is not valid here.
pub(crate) const REFUSED: i32 = 2;

const FAILED: u8 = 3;

/// What the hidden command `compile-worker CPU_SECONDS MEMORY_BYTES` does: gives itself these limits, reads a module from its
/// standard input and writes the compiled form to its standard output. `args` are those behind the command's name.
///
/// It says why it fails on its standard error, and ends with 2 where the module is to blame.
pub fn compile_worker(args: impl Iterator<Item = OsString>) -> ExitCode {
    match work(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err((status, message)) => {
            let _ = writeln!(io::stderr(), "{message}");
            ExitCode::from(status)
        }
    }
}

fn work(args: impl Iterator<Item = OsString>) -> Result<(), (u8, String)> {
    let failed = |what: &str, error: &dyn std::fmt::Display| (FAILED, format!("{what}: {error}"));
    let mut numbers = args.map(|arg| arg.to_str().and_then(|text| text.parse::<u64>().ok()));
    let (Some(Some(cpu_seconds)), Some(Some(memory_bytes)), None) = (numbers.next(), numbers.next(), numbers.next()) else {
        return Err((FAILED, "this command is for the daemon's own use: compile-worker CPU_SECONDS MEMORY_BYTES".to_owned()));
    };
    for (resource, limit) in [(Resource::Cpu, cpu_seconds), (Resource::As, memory_bytes), (Resource::Core, 0)] {
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })
            .map_err(|error| failed("cannot limit itself", &error))?;
    }
    let mut module = Vec::new();
    io::stdin().take(MAX_MODULE_BYTES + 1).read_to_end(&mut module).map_err(|error| failed("cannot read the module", &error))?;
    let refused = |message: String| (u8::try_from(REFUSED).unwrap_or(FAILED), message);
    if module.len() as u64 > MAX_MODULE_BYTES {
        return Err(refused(format!("it has more than {MAX_MODULE_BYTES} bytes")));
    }
    let engine = engine::compiler().map_err(|error| failed("cannot start the compiler", &error))?;
    let compiled = engine.precompile_component(&module).map_err(|error| refused(format!("{error:#}")))?;
    io::stdout().write_all(&compiled).and_then(|()| io::stdout().flush()).map_err(|error| failed("cannot write", &error))
}
