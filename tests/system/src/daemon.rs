//! The daemon as a child, and its command line beside it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
pub use tidegate_testkit::process::Signal;
use tidegate_testkit::process::{Child, bound_command};
use tidegate_testkit::wait::{self, PATIENCE};

use crate::binary;

/// A daemon that is started, killed and started again on the same data.
#[derive(Debug)]
pub struct Daemon {
    config: PathBuf,
    log: PathBuf,
    child: Option<Child>,
}

impl Daemon {
    /// For this configuration; not started.
    pub fn new(config: &Path) -> Self {
        Self { config: config.to_owned(), log: config.with_extension("log"), child: None }
    }

    /// Starts it.
    pub fn start(&mut self) {
        self.start_with(&[]);
    }

    /// Starts it with a failpoint: `relay.before-fsync=kill`, or `…=5*off->kill` for the sixth time.
    pub fn start_failing(&mut self, failpoints: &str) {
        self.start_with(&[("TIDEGATE_FAILPOINTS", failpoints)]);
    }

    /// Starts it with more of an environment.
    ///
    /// # Panics
    /// When the binary cannot be started.
    pub fn start_with(&mut self, environment: &[(&str, &str)]) {
        let log = fs::OpenOptions::new().append(true).create(true).open(&self.log).expect("the log can be written");
        // A write beyond the limit of file sizes, which a test may set, is an error like a full disk, not the end.
        let mut command = bound_command("bash", "KILL", None);
        command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(binary::path());
        command.args(["run", "-c"]).arg(&self.config).current_dir(self.folder());
        command.envs(environment.iter().copied());
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a second handle")).stderr(log);
        self.child = Some(Child::spawn(command));
    }

    /// SIGKILL, and waits until it is gone.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill();
        }
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// When it does not run.
    pub fn signal(&mut self, signal: Signal) {
        self.child.as_mut().expect("the daemon runs").signal(signal);
    }

    /// SIGTERM; the exit code, or `None` where it was ended by a signal.
    ///
    /// # Panics
    /// When it does not run, or does not end.
    pub fn terminate(&mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.wait().code()
    }

    /// Waits until it ends by itself.
    ///
    /// # Panics
    /// When it does not.
    pub fn wait(&mut self) -> std::process::ExitStatus {
        let mut child = self.child.take().expect("the daemon was started");
        child.wait(PATIENCE).unwrap_or_else(|| panic!("the daemon does not end\n{}", self.tail()))
    }

    /// The daemon's process id.
    ///
    /// # Panics
    /// When it does not run.
    pub fn id(&self) -> u32 {
        self.child.as_ref().expect("the daemon runs").id()
    }

    /// # Panics
    /// When the daemon has ended by itself.
    pub fn assert_running(&mut self) {
        if let Some(status) = self.child.as_mut().and_then(Child::ended) {
            panic!("the daemon ended by itself with {status}\n{}", self.tail());
        }
    }

    /// Runs a command of the CLI with `-c` of this daemon.
    ///
    /// # Panics
    /// When the binary cannot be started.
    pub fn cli(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(binary::path());
        command.args(arguments).arg("-c").arg(&self.config).stdin(Stdio::null());
        command.output().expect("the binary can be started")
    }

    /// Runs a command of the CLI that must succeed, and gives its `result`.
    ///
    /// # Panics
    /// When it fails.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.cli(&[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{arguments:?}: {}{}\n{}", text(&output.stdout), text(&output.stderr), self.tail());
        envelope(&output)["result"].take()
    }

    /// What `status` says; `None` where the daemon does not answer (yet).
    pub fn status(&self) -> Option<Value> {
        let output = self.cli(&["status", "--json"]);
        output.status.success().then(|| envelope(&output)["result"].take())
    }

    /// What `status` says of a pipeline; `None` where the daemon does not answer (yet), or has no such pipeline.
    pub fn pipeline(&self, name: &str) -> Option<Value> {
        self.status()?["pipelines"].as_array()?.iter().find(|pipeline| pipeline["name"] == name).cloned()
    }

    /// What `status` says of a source that is in this state.
    pub fn source(&self, state: &str) -> Option<Value> {
        self.status()?["sources"].as_array()?.iter().find(|source| source["state"] == state).cloned()
    }

    /// The socket in `data_dir`; `None` where the daemon has not made it (yet).
    pub fn socket(&self) -> Option<PathBuf> {
        let data = fs::read_dir(self.folder().join("data")).ok()?;
        data.map(|entry| entry.expect("an entry").path()).find(|path| path.extension().is_some_and(|extension| extension == "sock"))
    }

    /// The answer to a GET on the socket, head and body; `None` where nobody answers (yet).
    pub fn get(&self, path: &str) -> Option<String> {
        let mut stream = UnixStream::connect(self.socket()?).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: tidegate\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    /// Waits until a pipeline is in this state, and gives its status.
    ///
    /// # Panics
    /// When it does not get there, or the daemon ends.
    pub async fn reaches(&mut self, pipeline: &str, state: &str) -> Value {
        let what = format!("pipeline {pipeline} is {state}");
        for_ever_unless(self, &what, async |daemon| daemon.pipeline(pipeline).filter(|status| status["state"] == state)).await
    }

    /// The end of what it has logged.
    pub fn tail(&self) -> String {
        let log = self.log();
        let start = log.floor_char_boundary(log.len().saturating_sub(4000));
        format!("--- the daemon's log:\n{}", &log[start..])
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read(&self.log).map(|bytes| text(&bytes)).unwrap_or_default()
    }

    fn folder(&self) -> &Path {
        self.config.parent().expect("the configuration lies in a folder")
    }
}

/// Waits until `condition` gives something.
///
/// # Panics
/// After the usual patience, or when the daemon ends by itself meanwhile; with its log.
pub async fn for_ever_unless<T>(daemon: &mut Daemon, what: &str, condition: impl AsyncFn(&Daemon) -> Option<T>) -> T {
    let end = std::time::Instant::now() + PATIENCE;
    loop {
        if let Some(value) = condition(daemon).await {
            return value;
        }
        daemon.assert_running();
        assert!(std::time::Instant::now() < end, "not within {} s: {what}\n{}", PATIENCE.as_secs(), daemon.tail());
        tokio::time::sleep(wait::EVERY).await;
    }
}

/// Runs the binary alone, without a configuration.
///
/// # Panics
/// When it cannot be started.
pub fn tidegate(arguments: &[&str]) -> Output {
    Command::new(binary::path()).args(arguments).stdin(Stdio::null()).output().expect("the binary can be started")
}

/// The envelope that a command with `--json` has printed.
///
/// # Panics
/// When the output is not one JSON object.
pub fn envelope(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)))
}

/// Bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
