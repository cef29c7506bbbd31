//! The worker of one pipeline: sessions, and what the operator says between them.

use std::time::Duration;

use tidegate_api::{Error, Fingerprint, code};
use tokio::sync::watch;

use crate::commands::Commands;
use crate::handle::Parts;
use crate::retry::Backoff;
use crate::session::{self, Ending};
use crate::state::{Event, State};
use crate::status::{Problem, Status};

pub(crate) struct Worker {
    pub(crate) parts: Parts,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) relations: Vec<String>,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) commands: Commands,
    /// The operator wants a new snapshot.
    pub(crate) fresh: bool,
    /// When the newest applied transaction was committed.
    pub(crate) newest: Option<i64>,
}

impl Worker {
    pub(crate) fn new(parts: Parts, fingerprint: Fingerprint, status: watch::Sender<Status>, commands: Commands) -> Self {
        let relations = parts.settings.tables.iter().map(ToString::to_string).collect();
        Self { parts, fingerprint, relations, status, commands, fresh: false, newest: None }
    }

    pub(crate) async fn run(mut self) {
        let policy = self.parts.settings.retry;
        let mut backoff = Backoff::new(&policy);
        loop {
            match self.state() {
                State::Stopped => return,
                State::Paused | State::Faulted | State::Rebuilding => self.commands.arrived().await,
                _ => {
                    let before = self.progress();
                    let ending = session::run(&mut self).await;
                    if self.progress() != before {
                        backoff = Backoff::new(&policy);
                    }
                    if let Some(pause) = self.end(ending, &mut backoff) {
                        tokio::select! {
                            () = self.commands.arrived() => (),
                            () = tokio::time::sleep(pause) => (),
                        }
                    }
                }
            }
            self.obey();
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
            Ending::Failed(error) if error.is_transient() => {
                let pause = backoff.pause();
                self.waiting("work", &error, pause);
                self.enter(Event::Start);
                return Some(pause);
            }
            Ending::Failed(error) => self.stopped_by(Event::Fail, &error),
        }
        None
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
        self.status.send_modify(|status| {
            status.retries += 1;
            status.error = Some(problem);
        });
    }

    /// What was tried again has passed.
    pub(crate) fn recovered(&mut self) {
        if self.status.borrow().error.is_some() {
            tracing::info!(event = "recovered", pipeline = self.parts.settings.name, "the pipeline goes on");
            self.status.send_modify(|status| status.error = None);
        }
    }
}
