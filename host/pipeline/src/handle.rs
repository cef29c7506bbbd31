//! A pipeline at work, as its host sees it.

use std::sync::Arc;
use std::time::Duration;

use tidegate_api::{CommitPosition, Destination, Error, Fingerprint, Result, Source, Transform, code};
use tidegate_relay::Log;
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::commands::{Command, Commands};
use crate::settings::Settings;
use crate::state::{Event, State};
use crate::status::Status;
use crate::worker::Worker;

/// A worker that is told to stop has this long to come to the end of a run; then it is dropped, which loses nothing.
const MAX_STOP: Duration = Duration::from_secs(8);

/// What a pipeline is made of.
pub struct Parts {
    /// What the operator chose.
    pub settings: Settings,
    /// `None`: documents pass unchanged.
    pub transform: Option<Arc<dyn Transform>>,
    /// Where they go.
    pub destination: Arc<dyn Destination>,
    /// Where they come from: asked for snapshots only.
    pub source: Arc<dyn Source>,
    /// The source's log, which somebody else fills.
    pub log: Arc<Log>,
}

/// What is remembered of a pipeline from the process before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// The operator had paused it.
    pub paused: bool,
}

/// A pipeline at work. Dropping it stops the worker at the end of its run.
#[derive(Debug)]
pub struct Handle {
    requests: mpsc::Sender<Command>,
    status: watch::Receiver<Status>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

/// Starts a pipeline's worker on the current tokio runtime.
pub fn start(parts: Parts, stored: Stored) -> Handle {
    let fingerprint = crate::fingerprint(&parts.settings, parts.transform.as_deref());
    let (requests, received) = mpsc::channel(16);
    let (sender, status) = watch::channel(first_status(fingerprint, stored, parts.log.checkpoint(&parts.settings.name)));
    let worker = Worker::new(parts, fingerprint, sender, Commands::new(received));
    Handle { requests, status, worker: Mutex::new(Some(tokio::spawn(worker.run()))) }
}

fn first_status(fingerprint: Fingerprint, stored: Stored, position: Option<CommitPosition>) -> Status {
    Status {
        state: if stored.paused { State::Paused } else { State::Provisioning },
        fingerprint,
        position,
        lag_bytes: 0,
        lag_seconds: 0.0,
        rows: 0,
        transactions: 0,
        snapshot_rows: 0,
        snapshot_estimate: None,
        snapshot_epoch: None,
        retries: 0,
        error: None,
        poison: None,
    }
}

impl Handle {
    /// How it is doing now.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// To wait for a change of its condition.
    pub fn watch(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Stops after the current run, until it is resumed.
    ///
    /// # Errors
    /// [`STATE_REFUSED`](code::STATE_REFUSED) when it has ended.
    pub async fn pause(&self) -> Result<()> {
        self.ask(Event::Pause).await
    }

    /// Goes on where it was: tries again what made it stop.
    ///
    /// # Errors
    /// [`STATE_REFUSED`](code::STATE_REFUSED) when it is not paused or faulted.
    pub async fn resume(&self) -> Result<()> {
        self.ask(Event::Resume).await
    }

    /// Starts again with a new snapshot into the emptied destination, under the current fingerprint.
    ///
    /// # Errors
    /// [`STATE_REFUSED`](code::STATE_REFUSED) when it has ended.
    pub async fn reset(&self) -> Result<()> {
        self.ask(Event::Reset).await
    }

    /// Ends it, at the end of the current run where that comes soon. What is not acknowledged comes again next time.
    pub async fn stop(&self) {
        let Some(mut worker) = self.worker.lock().await.take() else { return };
        let ending = async {
            let _ = self.ask(Event::Stop).await;
            let _ = (&mut worker).await;
        };
        if tokio::time::timeout(MAX_STOP, ending).await.is_err() {
            worker.abort();
        }
    }

    async fn ask(&self, event: Event) -> Result<()> {
        let refused = || Error::new(&code::STATE_REFUSED, "act on pipeline").with("state", self.status.borrow().state);
        let (done, answer) = oneshot::channel();
        self.requests.send(Command { event, done }).await.map_err(|_| refused())?;
        answer.await.map_err(|_| refused())?
    }
}
