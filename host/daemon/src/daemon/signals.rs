//! SIGTERM and SIGINT.

use tidegate_api::{Error, Result, code};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for signals that end the daemon.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// One that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Terminate,
    Interrupt,
}

impl Ending {
    /// What a process exits with that was cut short by it.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

impl Signals {
    /// From here on the signals no longer end the process by themselves.
    pub(crate) fn listen() -> Result<Self> {
        let failed = |error: std::io::Error| Error::new(&code::INTERNAL, "listen for signals").because(error);
        Ok(Self {
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
        })
    }

    /// The next one. Safe to drop and call again.
    pub(crate) async fn next(&mut self) -> Ending {
        tokio::select! {
            _ = self.terminate.recv() => Ending::Terminate,
            _ = self.interrupt.recv() => Ending::Interrupt,
        }
    }
}
