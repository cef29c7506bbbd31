//! Faults on order around any destination.
//!
//! ```
//! # async fn example(destination: std::sync::Arc<dyn tidegate_api::Destination>) {
//! use tidegate_api::{Error, code};
//! use tidegate_testkit::faults::{Call, Fault, Faults};
//!
//! let faults = Faults::around(destination);
//! faults.add(Call::Apply, Fault::Reject(Error::new(&code::DESTINATION_UNREACHABLE, "apply").transient()));
//! let mut held = faults.hold(Call::Apply);
//! // hand `faults` to what is tested as its destination; its first apply is refused, its second stops before it writes
//! held.reached().await;
//! held.release();
//! # }
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_api::source::RetryClassifier;
use tidegate_api::{
    Applied, Batch, BoxFuture, CommitPosition, Destination, Error, Finding, Guarantee, Ownership, Provisioned, Result, SnapshotEpoch,
};
use tokio::sync::oneshot;

/// A call of a destination that changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// [`Destination::provision`]
    Provision,
    /// [`Destination::begin_snapshot`]
    BeginSnapshot,
    /// [`Destination::apply_snapshot`]
    ApplySnapshot,
    /// [`Destination::complete_snapshot`]
    CompleteSnapshot,
    /// [`Destination::apply`]
    Apply,
}

/// What happens to one call.
#[derive(Debug)]
pub enum Fault {
    /// It fails before anything is written.
    Reject(Error),
    /// It is done, durably, and the answer is this error: a lost answer.
    FailAfterWrite(Error),
    /// It takes this much longer.
    Slow(Duration),
    /// It goes on when [`Held::release`] says so; made by [`Faults::hold`].
    Hold(Gate),
}

/// The inner side of a [`Held`].
#[derive(Debug)]
pub struct Gate {
    reached: oneshot::Sender<()>,
    released: oneshot::Receiver<()>,
}

/// The outer side of a call that is held before it writes. Dropping it lets the call go on.
#[derive(Debug)]
pub struct Held {
    reached: oneshot::Receiver<()>,
    _release: oneshot::Sender<()>,
}

impl Held {
    /// Waits until the call is there.
    ///
    /// # Panics
    /// When the call never comes because its destination was dropped.
    pub async fn reached(&mut self) {
        (&mut self.reached).await.expect("the held call comes");
    }

    /// Lets the call go on.
    pub fn release(self) {}
}

/// A destination whose next calls meet the queued faults, in order; one fault a call, none when the queue holds none for it.
pub struct Faults {
    inner: Arc<dyn Destination>,
    queue: Mutex<VecDeque<(Call, Fault)>>,
    calls: Mutex<Vec<Call>>,
}

impl Faults {
    /// No faults yet.
    pub fn around(inner: Arc<dyn Destination>) -> Arc<Self> {
        Arc::new(Self { inner, queue: Mutex::default(), calls: Mutex::default() })
    }

    /// The next such call that has no fault yet meets this one.
    pub fn add(&self, call: Call, fault: Fault) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back((call, fault));
    }

    /// The next such call that has no fault yet waits before it writes.
    pub fn hold(&self, call: Call) -> Held {
        let (reached, reached_outside) = oneshot::channel();
        let (release, released) = oneshot::channel();
        self.add(call, Fault::Hold(Gate { reached, released }));
        Held { reached: reached_outside, _release: release }
    }

    /// Every call so far, also the faulty ones.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn take(&self, call: Call) -> Option<Fault> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let place = queue.iter().position(|(wanted, _)| *wanted == call)?;
        queue.remove(place).map(|(_, fault)| fault)
    }

    async fn meet<T>(&self, call: Call, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        match self.take(call) {
            None => work.await,
            Some(Fault::Reject(error)) => Err(error),
            Some(Fault::FailAfterWrite(error)) => work.await.and(Err(error)),
            Some(Fault::Slow(time)) => {
                tokio::time::sleep(time).await;
                work.await
            }
            Some(Fault::Hold(gate)) => {
                let _ = gate.reached.send(()); // nobody may be waiting for it
                let _ = gate.released.await; // released or dropped
                work.await
            }
        }
    }
}

impl Destination for Faults {
    fn guarantee(&self) -> Guarantee {
        self.inner.guarantee()
    }

    fn max_run(&self) -> usize {
        self.inner.max_run()
    }

    fn preflight(&self) -> BoxFuture<'_, Result<Vec<Finding>>> {
        self.inner.preflight()
    }

    fn provision<'a>(&'a self, owner: &'a Ownership) -> BoxFuture<'a, Result<Provisioned>> {
        Box::pin(self.meet(Call::Provision, self.inner.provision(owner)))
    }

    fn begin_snapshot<'a>(&'a self, owner: &'a Ownership, epoch: &'a SnapshotEpoch) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.meet(Call::BeginSnapshot, self.inner.begin_snapshot(owner, epoch)))
    }

    fn apply_snapshot<'a>(&'a self, owner: &'a Ownership, epoch: &'a SnapshotEpoch, batch: &'a Batch) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.meet(Call::ApplySnapshot, self.inner.apply_snapshot(owner, epoch, batch)))
    }

    fn complete_snapshot<'a>(
        &'a self,
        owner: &'a Ownership,
        epoch: &'a SnapshotEpoch,
        boundary: CommitPosition,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.meet(Call::CompleteSnapshot, self.inner.complete_snapshot(owner, epoch, boundary)))
    }

    fn apply<'a>(&'a self, owner: &'a Ownership, run: &'a [Batch]) -> BoxFuture<'a, Result<Vec<Applied>>> {
        Box::pin(self.meet(Call::Apply, self.inner.apply(owner, run)))
    }

    fn retry_classifier(&self) -> Option<&dyn RetryClassifier> {
        self.inner.retry_classifier()
    }
}
