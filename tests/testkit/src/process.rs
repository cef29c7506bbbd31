//! A child process that ends with the test: when the value is dropped, and also when the test process is killed.

use std::ffi::OsStr;
use std::process::{Command, ExitStatus};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

pub mod alone;
pub mod user;

/// A command whose process is sent `signal` when the thread that started it ends; as `user` where one is given.
///
/// `setpriv` sets the signal after it has changed the user: a change of user would clear it.
pub fn bound_command(program: impl AsRef<OsStr>, signal: &str, user: Option<&user::User>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", signal]);
    if let Some(user) = user {
        command.args(["--clear-groups", "--reuid", &user.uid.to_string(), "--regid", &user.gid.to_string()]);
    }
    command.arg("--").arg(program);
    command
}

/// A running child. Dropping it kills the process and waits for its end.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    waiter: Option<JoinHandle<ExitStatus>>,
    status: Option<ExitStatus>,
}

impl Child {
    /// Starts a command that [`bound_command`] made.
    ///
    /// The process lives on a thread of its own: the death signal is sent when the *thread* that started it ends, and a
    /// test's thread ends earlier than a server that several tests share.
    ///
    /// # Panics
    /// When the program cannot be started.
    pub fn spawn(mut command: Command) -> Self {
        let (started, pid) = mpsc::channel();
        let waiter = std::thread::spawn(move || {
            let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
            started.send(child.id()).expect("the starter waits");
            child.wait().expect("a child of ours can be waited for")
        });
        let pid = pid.recv().expect("the child has started");
        let pid = Pid::from_raw(pid.try_into().expect("a process id")).expect("a process id is not 0");
        Self { pid, waiter: Some(waiter), status: None }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Sends a signal; a process that has ended is left in peace.
    pub fn signal(&mut self, signal: Signal) {
        if self.ended().is_none() {
            let _ = kill_process(self.pid, signal); // it may end at this very moment
        }
    }

    /// The status it ended with; `None` while it runs.
    ///
    /// # Panics
    /// When it could not be waited for.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.waiter.as_ref().is_some_and(JoinHandle::is_finished) {
            self.status = self.waiter.take().map(|waiter| waiter.join().expect("the waiting thread does not panic"));
        }
        self.status
    }

    /// Waits for its end; `None` when it still runs after `patience`.
    pub fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + patience;
        loop {
            let status = self.ended();
            if status.is_some() || Instant::now() > end {
                return status;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGKILL, and waits until the process is gone.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.wait(crate::wait::PATIENCE);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}
