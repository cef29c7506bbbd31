//! One source at work: its capture is started, watched and started again, and how it is doing is remembered.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tidegate_api::{Class, Code, Error, Result, SourceStatus, code};
use tidegate_control::{Failure, status};
use tidegate_relay::{CaptureEvent, Log};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::registry::{BuiltSource, Sources};

/// How often a source is asked how it is doing.
const POLL_EVERY: Duration = Duration::from_secs(5);

/// A source that says nothing for so long is not asked further.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Faults that only a new slot and new snapshots cure: what was captured so far cannot be continued.
const CURED_BY_RESET: &[&Code] = &[
    &code::SLOT_MISSING,
    &code::SLOT_LOST,
    &code::SOURCE_AHEAD_OF_RELAY,
    &code::SOURCE_IDENTITY,
    &code::TYPE_MOVED,
    &code::KEY_MOVED,
    &code::PROTOCOL,
    &code::RELAY_CORRUPT,
    &code::CHUNK_MALFORMED,
    &code::FILE_CHANGED,
    &code::FILE_ORDER,
];

/// A source and its capture.
pub(crate) struct Worker {
    pub(crate) built: BuiltSource,
    pub(crate) log: Arc<Log>,
    state: Mutex<State>,
    task: tokio::sync::Mutex<Option<JoinHandle<()>>>,
    fatal: mpsc::UnboundedSender<Error>,
}

struct State {
    phase: Phase,
    /// Whether it has worked, or at least been tried again, in this process: from then on it no longer ends the daemon.
    settled: bool,
    polled: SourceStatus,
}

enum Phase {
    Starting,
    Capturing,
    Waiting(Failure),
    Faulted { failure: Failure, code: &'static Code },
    Stopped,
}

impl Worker {
    /// A worker that does nothing yet. An error that makes the start of the daemon as a whole pointless goes to `fatal`.
    pub(crate) fn new(built: BuiltSource, log: Arc<Log>, fatal: mpsc::UnboundedSender<Error>) -> Arc<Self> {
        let state = State { phase: Phase::Starting, settled: false, polled: SourceStatus::default() };
        Arc::new(Self { built, log, state: Mutex::new(state), task: tokio::sync::Mutex::new(None), fatal })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts capturing, unless it captures already.
    pub(crate) async fn start(self: &Arc<Self>) {
        let mut task = self.task.lock().await;
        if task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        self.state().phase = Phase::Starting;
        let worker = Arc::clone(self);
        *task = Some(tokio::spawn(async move {
            // What a panic said goes to standard error; it may hold anything (Invariant 12).
            let error = AssertUnwindSafe(worker.work()).catch_unwind().await.unwrap_or_else(|_| panicked());
            worker.ended(error);
        }));
    }

    /// Stops capturing. What was not durable yet comes again.
    pub(crate) async fn stop(&self) {
        if let Some(task) = self.task.lock().await.take() {
            task.abort();
            let _ = task.await;
        }
        self.state().phase = Phase::Stopped;
    }

    /// Captures for as long as it may, and gives the error after which it may not.
    async fn work(&self) -> Error {
        let report = |event: CaptureEvent<'_>| self.heard(event);
        let capture = tidegate_relay::capture(&*self.built.source, &self.log, &self.built.tables, &report);
        tokio::select! {
            error = capture => error,
            never = self.poll() => match never {},
        }
    }

    /// A capture that is over says so, however it ended: nobody else would notice.
    fn ended(&self, error: Error) {
        let name = &self.built.name;
        tracing::error!(origin = %name, code = %error.code(), fix = error.advice(), "source {name} has stopped: {}", error.message());
        let mut state = self.state();
        state.phase = Phase::Faulted { failure: Failure::from(&error), code: error.code() };
        if !state.settled && !cured_by_reset(error.code()) {
            let _ = self.fatal.send(error);
        }
        state.settled = true;
    }

    fn heard(&self, event: CaptureEvent<'_>) {
        let name = &self.built.name;
        let mut state = self.state();
        match event {
            CaptureEvent::Connected { .. } => {
                if !matches!(state.phase, Phase::Capturing) {
                    tracing::info!(origin = %name, "source {name} is being captured");
                }
                state.phase = Phase::Capturing;
                state.settled = true;
            }
            CaptureEvent::Waiting { error, .. } => {
                let failure = Failure::from(error);
                // The same trouble is told once, not at every attempt.
                let known = matches!(&state.phase, Phase::Waiting(before) if before.code == failure.code);
                if !known {
                    tracing::warn!(origin = %name, code = %error.code(), fix = error.advice(), "source {name} is tried again: {}", error.message());
                }
                state.phase = Phase::Waiting(failure);
                state.settled = true;
            }
            _ => {}
        }
    }

    async fn poll(&self) -> std::convert::Infallible {
        loop {
            let polled = tokio::time::timeout(MAX_WAIT, self.built.source.status()).await;
            if let Ok(Ok(polled)) = polled {
                self.state().polled = polled;
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    /// The operator resumes a pipeline of this source: a capture that stopped on an error is tried again. Says whether it had.
    pub(crate) async fn resume(self: &Arc<Self>) -> bool {
        let faulted = matches!(self.state().phase, Phase::Faulted { .. });
        if faulted {
            self.start().await;
        }
        faulted
    }

    /// The operator resets a pipeline of this source. Where the capture stopped on an error that nothing else cures, what it
    /// holds at its server and what the relay holds of it are removed, and it begins anew; the other pipelines of the source
    /// must be reset, too.
    pub(crate) async fn reset(self: &Arc<Self>) -> Result<()> {
        let fault = match &self.state().phase {
            Phase::Faulted { code, .. } => Some(*code),
            _ => None,
        };
        match fault {
            None => Ok(()),
            Some(code) if code.class == Class::Environment && !cured_by_reset(code) => {
                self.start().await;
                Ok(())
            }
            Some(_) => {
                self.stop().await;
                self.built.source.remove().await?;
                self.log.forget()?;
                self.start().await;
                Ok(())
            }
        }
    }

    /// Removes what the source holds at its server.
    pub(crate) async fn remove(&self) -> Result<()> {
        self.stop().await;
        self.built.source.remove().await?;
        let error = Error::new(&code::SLOT_MISSING, "capture").because("removed by the operator");
        self.state().phase = Phase::Faulted { failure: Failure::from(&error), code: error.code() };
        Ok(())
    }

    /// How it is, without asking.
    pub(crate) fn status(&self) -> status::Source {
        let state = self.state();
        let (word, error) = match &state.phase {
            Phase::Starting => ("starting", None),
            Phase::Capturing => ("capturing", None),
            Phase::Waiting(failure) => ("waiting", Some(failure.clone())),
            Phase::Faulted { failure, .. } => ("faulted", Some(failure.clone())),
            Phase::Stopped => ("stopped", None),
        };
        status::Source {
            position: Some(self.log.head().to_string()),
            identity: self.log.identity().map(|identity| identity.to_string()),
            relay_bytes: self.log.bytes(),
            error,
            ..described(&self.built, word, &state.polled)
        }
    }

    /// How it is, asked now.
    pub(crate) async fn ask(&self) -> status::Source {
        match tokio::time::timeout(MAX_WAIT, self.built.source.status()).await {
            Ok(Ok(polled)) => {
                self.state().polled = polled;
                self.status()
            }
            Ok(Err(error)) => status::Source { error: Some(Failure::from(&error)), ..self.status() },
            Err(_) => self.status(),
        }
    }
}

/// A defect, but the source says so, and the operator can act on it.
fn panicked() -> Error {
    Error::new(&code::INTERNAL, "capture")
        .because("the capture panicked")
        .fix("report it with the log; `tidegate pipeline resume` of a pipeline of this source starts the capture again")
}

fn described(built: &BuiltSource, state: &str, polled: &SourceStatus) -> status::Source {
    status::Source {
        name: built.name.clone(),
        kind: built.kind.to_owned(),
        state: state.to_owned(),
        head: polled.head.map(|head| head.to_string()),
        retained_bytes: polled.retained_bytes,
        slot_state: polled.slot_state.clone(),
        ..status::Source::default()
    }
}

/// How sources are, asked without a daemon.
pub(crate) async fn states(sources: &Sources) -> Vec<status::Source> {
    let asked = sources.all().map(async |built| match tokio::time::timeout(MAX_WAIT, built.source.status()).await {
        Ok(Ok(polled)) => described(built, "stopped", &polled),
        Ok(Err(error)) => status::Source { error: Some(Failure::from(&error)), ..described(built, "stopped", &SourceStatus::default()) },
        Err(_) => described(built, "stopped", &SourceStatus::default()),
    });
    futures_util::future::join_all(asked).await
}

/// Whether only a reset helps against this fault: the daemon must live so that the operator can ask for one.
pub(crate) fn cured_by_reset(code: &'static Code) -> bool {
    CURED_BY_RESET.contains(&code)
}
