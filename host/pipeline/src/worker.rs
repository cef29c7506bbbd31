//! The worker of one pipeline: sessions, and what the operator says between them.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tidegate_api::{Error, Fingerprint, code};
use tidegate_relay::Lease;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::commands::Commands;
use crate::ending::Ending;
use crate::failpoints;
use crate::handle::Parts;
use crate::lag::LOOK_EVERY;
use crate::retry::Backoff;
use crate::session;
use crate::snapshot::SNAPSHOT;
use crate::state::{Event, State};
use crate::status::{Problem, Status};

/// What a session is tried again for, unless it is something more exact.
const WORK: &str = "work";

pub(crate) struct Worker {
    pub(crate) parts: Parts,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) relations: Vec<String>,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) commands: Commands,
    /// The operator wants a new snapshot.
    pub(crate) fresh: bool,
    /// When the newest applied transaction was committed, where that is known.
    pub(crate) newest: Option<i64>,
    /// The lease of the last session: nobody works by it, the lag is read from it.
    pub(crate) resting: Option<Lease>,
    /// What is being tried again.
    trouble: Option<&'static str>,
}

impl Worker {
    pub(crate) fn new(parts: Parts, fingerprint: Fingerprint, status: watch::Sender<Status>, commands: Commands) -> Self {
        let relations = parts.settings.tables.iter().map(ToString::to_string).collect();
        Self { parts, fingerprint, relations, status, commands, fresh: false, newest: None, resting: None, trouble: None }
    }

    /// Works until it is told to stop. A defect outside of a session is told and survived, too: a worker that just ended
    /// would be a silent stall.
    pub(crate) async fn run(mut self) {
        while caught(self.work()).await.is_none() {
            self.stopped_by(Event::Fail, &panicked());
            sleep(LOOK_EVERY).await; // it may panic again at once
        }
    }

    async fn work(&mut self) {
        let policy = self.parts.settings.retry;
        let mut backoff = Backoff::new(&policy);
        loop {
            match self.state() {
                State::Stopped => return,
                State::Paused | State::Faulted | State::Rebuilding => self.rest(None).await,
                _ => {
                    let before = self.progress();
                    let ending = caught(session::run(self)).await.unwrap_or_else(|| Ending::Failed(panicked()));
                    if self.progress() != before {
                        backoff = Backoff::new(&policy);
                    }
                    if let Some(pause) = self.end(ending, &mut backoff) {
                        self.rest(Some(pause)).await;
                    }
                }
            }
            self.obey();
        }
    }

    /// Waits for the operator, at most for `pause`.
    async fn rest(&mut self, pause: Option<Duration>) {
        let mut over = pin!(async {
            match pause {
                Some(pause) => sleep(pause).await,
                None => std::future::pending().await,
            }
        });
        loop {
            failpoints::at_rest();
            self.observe_at_rest();
            tokio::select! {
                () = self.commands.arrived() => return,
                () = &mut over => return,
                () = sleep(LOOK_EVERY) => (),
            }
        }
    }

    fn state(&self) -> State {
        self.status.borrow().state
    }

    /// Changes with everything that a session achieves.
    fn progress(&self) -> (u64, u64) {
        let status = self.status.borrow();
        (status.transactions, status.snapshot_rows)
    }

    /// What an ending leads to; a pause where the session is tried again.
    fn end(&mut self, ending: Ending, backoff: &mut Backoff) -> Option<Duration> {
        match ending {
            Ending::Command => (),
            Ending::Poison(report) => {
                let error = Error::new(&code::POISON, "transform")
                    .with("kind", &report.kind)
                    .with("relation", &report.relation)
                    .with("key_hash", &report.key_hash)
                    .with("position", &report.position)
                    .because(report.reason.clone());
                self.status.send_modify(|status| status.poison = Some(*report));
                self.stopped_by(Event::Pause, &error);
            }
            Ending::Paused(error) => self.stopped_by(Event::Pause, &error),
            Ending::Drifted(error) => self.stopped_by(Event::Drifted, &error),
            Ending::Again(error) => match backoff.after(&error, None) {
                Some(pause) => return Some(self.again(WORK, &error, pause)),
                None => self.stopped_by(Event::Fail, &error),
            },
            Ending::Lost(error) => return Some(self.again(SNAPSHOT, &error, backoff.pause())),
            Ending::Failed(error) => self.stopped_by(Event::Fail, &error),
        }
        None
    }

    fn again(&mut self, what: &'static str, error: &Error, pause: Duration) -> Duration {
        self.waiting(what, error, pause);
        self.enter(Event::Start);
        pause
    }

    /// Does what the operator asked for, and answers.
    fn obey(&mut self) {
        if self.commands.are_over() {
            self.enter(Event::Stop);
        }
        while let Some(command) = self.commands.take() {
            let before = self.state();
            let answer = match before.after(command.event) {
                Some(_) => {
                    self.fresh |= command.event == Event::Reset;
                    if matches!(command.event, Event::Resume | Event::Reset) {
                        self.trouble = None;
                        self.status.send_modify(|status| (status.error, status.poison) = (None, None));
                    }
                    self.enter(command.event);
                    Ok(())
                }
                None => Err(Error::new(&code::STATE_REFUSED, "act on pipeline")
                    .with("pipeline", &self.parts.settings.name)
                    .with("state", before)),
            };
            let _ = command.done.send(answer); // whoever asked may have gone
        }
    }

    /// Moves to the state that the table says, where it says one.
    pub(crate) fn enter(&mut self, event: Event) {
        let before = self.state();
        let Some(after) = before.after(event).filter(|after| *after != before) else { return };
        tracing::info!(event = "state", pipeline = self.parts.settings.name, from = %before, to = %after, "the pipeline is {after}");
        self.status.send_modify(|status| status.state = after);
    }

    fn stopped_by(&mut self, event: Event, error: &Error) {
        tracing::error!(
            event = "pipeline-stopped", pipeline = self.parts.settings.name, code = %error.code(), fix = error.advice(),
            "{}", error.message()
        );
        self.status.send_modify(|status| status.error = Some(Problem::from(error)));
        self.enter(event);
    }

    /// Shows what is tried again; logged when it is something new.
    pub(crate) fn waiting(&mut self, what: &'static str, error: &Error, pause: Duration) {
        let problem = Problem::from(error);
        let known = self.status.borrow().error.as_ref() == Some(&problem);
        if !known {
            tracing::warn!(
                event = "retry", pipeline = self.parts.settings.name, what, code = %error.code(), fix = error.advice(),
                pause_ms = pause.as_millis() as u64, "{}", error.message()
            );
        }
        self.trouble = Some(what);
        self.status.send_modify(|status| {
            status.retries += 1;
            status.error = Some(problem);
        });
    }

    /// Something was done that a session is there for.
    pub(crate) fn progressed(&mut self) {
        self.recovered(WORK);
    }

    /// `what` has succeeded: where it was tried again, it is no trouble any more.
    pub(crate) fn recovered(&mut self, what: &'static str) {
        if self.trouble == Some(what) {
            self.trouble = None;
            tracing::info!(event = "recovered", pipeline = self.parts.settings.name, what, "the pipeline goes on");
            self.status.send_modify(|status| status.error = None);
        }
    }
}

impl Drop for Worker {
    /// However a worker ends, nobody is told that it still works.
    fn drop(&mut self) {
        self.enter(Event::Stop);
    }
}

/// The output of `work`, or `None` where it panicked. What the panic said goes to standard error; it may hold anything
/// (Invariant 12).
async fn caught<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let outcome = poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Some(output)),
        Err(_) => Poll::Ready(None),
    });
    outcome.await
}

/// A defect, but the pipeline says so, and the operator can act on it.
fn panicked() -> Error {
    let error = Error::new(&code::INTERNAL, "run pipeline").because("its worker panicked");
    error.fix("report it with the log; `tidegate pipeline resume` lets it go on from what is durable")
}
