//! Compiling in a child process: whatever a module does to the compiler, it does it there.

pub(crate) mod worker;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tidegate_api::{Error, Result, code};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::cache::MAX_COMPILED_BYTES;

/// What one compilation may take. The processor time and the memory are kept to by the child itself, the elapsed time here.
pub(crate) struct Bounds {
    pub(crate) cpu_seconds: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) elapsed: Duration,
}

/// For guests in a language without a runtime of its own: a hundred times what the built-in guest takes.
pub(crate) const NATIVE: Bounds = Bounds { cpu_seconds: 20, memory_bytes: 4 << 30, elapsed: Duration::from_secs(60) };

/// The longest message of a worker that is shown.
const MAX_MESSAGE_BYTES: u64 = 4096;

/// Compiles `module` in a child process that runs `worker compile-worker …`.
///
/// # Errors
/// [`code::MODULE_REFUSED`] when the module is not valid here, [`code::MODULE_COMPILE`] when it was not compiled in bounds.
pub(crate) async fn compile(worker: &Path, module: &[u8], bounds: &Bounds) -> Result<Vec<u8>> {
    let failed = || Error::new(&code::MODULE_COMPILE, "compile module");
    let mut child = Command::new(worker)
        .arg("compile-worker")
        .arg(bounds.cpu_seconds.to_string())
        .arg(bounds.memory_bytes.to_string())
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed().with("worker", worker.display()).because(error))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        return Err(Error::new(&code::INTERNAL, "compile module"));
    };
    let (mut compiled, mut message) = (Vec::new(), Vec::new());
    let talk = async {
        let send = async {
            // A worker that ends before it has read everything says why by other means.
            let _ = stdin.write_all(module).await;
            drop(stdin);
            Ok(0)
        };
        let receive = async { stdout.take(MAX_COMPILED_BYTES + 1).read_to_end(&mut compiled).await };
        let listen = async { stderr.take(MAX_MESSAGE_BYTES).read_to_end(&mut message).await };
        tokio::try_join!(send, receive, listen)?;
        child.wait().await
    };
    let status = match tokio::time::timeout(bounds.elapsed, talk).await {
        Ok(status) => status.map_err(|error| failed().because(error))?,
        Err(_) => {
            return Err(failed().with("limit_seconds", bounds.elapsed.as_secs()).because("the compiler took too long and was killed"));
        }
    };
    let message = String::from_utf8_lossy(&message).trim().to_owned();
    match status.code() {
        Some(0) if compiled.len() as u64 > MAX_COMPILED_BYTES => {
            Err(failed().with("limit_bytes", MAX_COMPILED_BYTES).because("the compiled module is too large"))
        }
        Some(0) => Ok(compiled),
        Some(worker::REFUSED) => Err(Error::new(&code::MODULE_REFUSED, "compile module").because(message)),
        _ => Err(failed()
            .with("status", status)
            .with("limit_cpu_seconds", bounds.cpu_seconds)
            .with("limit_bytes", bounds.memory_bytes)
            .because(message)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn a_compiler_that_does_not_end_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let (worker, pid) = (folder.path().join("worker"), folder.path().join("pid"));
        std::fs::write(&worker, format!("#!/bin/sh\necho $$ > {}\nexec sleep 1000\n", pid.display())).unwrap();
        std::fs::set_permissions(&worker, std::fs::Permissions::from_mode(0o700)).unwrap();
        let bounds = Bounds { cpu_seconds: 1, memory_bytes: 1 << 30, elapsed: Duration::from_millis(300) };
        let error = compile(&worker, b"module", &bounds).await.unwrap_err();
        assert_eq!(error.code(), &code::MODULE_COMPILE);
        assert!(error.message().contains("took too long"), "{error}");
        let process = std::fs::read_to_string(pid).unwrap();
        while std::fs::read_to_string(format!("/proc/{}/cmdline", process.trim())).is_ok_and(|line| line.contains("sleep")) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
