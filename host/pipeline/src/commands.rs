//! What the operator asks of a worker. A worker looks at it only where it may stop: between runs, and while it waits.

use tidegate_api::Result;
use tokio::sync::{mpsc, oneshot};

use crate::state::Event;

/// One request and the place for its answer.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) event: Event,
    pub(crate) done: oneshot::Sender<Result<()>>,
}

/// The worker's end of the requests.
#[derive(Debug)]
pub(crate) struct Commands {
    requests: mpsc::Receiver<Command>,
    pending: Option<Command>,
    closed: bool,
}

impl Commands {
    pub(crate) fn new(requests: mpsc::Receiver<Command>) -> Self {
        Self { requests, pending: None, closed: false }
    }

    /// Waits until a request is there, or nobody is left who could make one. Leaves it for [`take`](Self::take).
    pub(crate) async fn arrived(&mut self) {
        if self.pending.is_none() && !self.closed {
            self.pending = self.requests.recv().await;
            self.closed = self.pending.is_none();
        }
    }

    /// The request, if there is one.
    pub(crate) fn take(&mut self) -> Option<Command> {
        self.pending.take()
    }

    /// Whether nobody is left who could make a request.
    pub(crate) fn are_over(&self) -> bool {
        self.closed
    }
}
