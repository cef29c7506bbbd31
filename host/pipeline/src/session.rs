//! From taking the group over to the next reason to stop.
//!
//! The destination's checkpoint is where a session goes on. It may be behind the relay's (a destination that was restored:
//! the relay is read again, where it still can be) and lawfully ahead of everything that the relay holds: the boundary of a
//! snapshot is where the source was, and the relay may not be there yet. A relay that was lost or restored looks just the
//! same from here and is not looked for here: the source compares what it has confirmed with what the relay holds, and the
//! destination compares the source's identity (Invariant 7).

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tidegate_api::destination::MAX_RUN_BYTES;
use tidegate_api::{
    BoxFuture, CommitPosition, Destination, Error, Ownership, Provisioned, Result, SnapshotState, SourceIdentity, TransactionMeta, code,
};
use tidegate_relay::{Delivery, Lease};
use tokio::time::sleep;

use crate::apply::Run;
use crate::ending::{Ending, Step};
use crate::lag::{self, LOOK_EVERY};
use crate::prepare::{Prepared, Preparer};
use crate::retry::Backoff;
use crate::state::Event;
use crate::worker::Worker;

/// How often a worker looks whether its source is there.
const SOURCE_POLL: Duration = Duration::from_millis(20);

/// So many transactions are prepared at one time,
const MAX_TOGETHER: usize = 32;

/// as long as they have no more changes than this: each keeps what was made of it in memory, within its own bound.
const MAX_CHANGES_TOGETHER: u64 = 64;

/// One session: a lease on the group and the ownership that goes with it.
pub(crate) struct Session<'a> {
    pub(crate) worker: &'a mut Worker,
    pub(crate) lease: Lease,
    pub(crate) owner: Ownership,
}

/// Runs until something ends it.
pub(crate) async fn run(worker: &mut Worker) -> Ending {
    let mut session = match begin(worker).await {
        Ok(session) => session,
        Err(ending) => return ending,
    };
    let Err(ending) = session.work().await;
    session.observe();
    let Session { worker, lease, .. } = session;
    worker.resting = Some(lease);
    ending
}

async fn begin(worker: &mut Worker) -> Step<Session<'_>> {
    let source = source_identity(worker).await?;
    worker.resting = None;
    let group = worker.parts.log.group(&worker.parts.settings.name)?;
    let lease = group.acquire(&worker.parts.settings.name)?;
    let owner = Ownership { pipeline: worker.parts.settings.name.clone(), source, fingerprint: worker.fingerprint, fence: lease.fence() };
    Ok(Session { worker, lease, owner })
}

/// Waits until the source was created.
async fn source_identity(worker: &mut Worker) -> Step<SourceIdentity> {
    loop {
        if let Some(identity) = worker.parts.log.identity() {
            return Ok(identity);
        }
        tokio::select! {
            () = worker.commands.arrived() => return Err(Ending::Command),
            () = sleep(SOURCE_POLL) => (),
        }
    }
}

impl Session<'_> {
    pub(crate) fn name(&self) -> &str {
        &self.owner.pipeline
    }

    pub(crate) fn destination(&self) -> Arc<dyn Destination> {
        Arc::clone(&self.worker.parts.destination)
    }

    pub(crate) fn observe(&self) {
        self.worker.observe(&self.lease);
    }

    async fn work(&mut self) -> Step<Infallible> {
        self.provision().await?;
        self.worker.enter(Event::StreamBegan);
        // Under a steady load there is always something that waits: what was there at the beginning counts.
        let goal = self.worker.parts.log.head();
        loop {
            self.transactions(goal).await?;
        }
    }

    /// Shows the lag, and whether what was there at the beginning is done. It may become so without a transaction: an idle
    /// position is passed in silence.
    fn look(&mut self, goal: CommitPosition) {
        self.observe();
        if self.lease.lag_bytes() == 0 || self.lease.checkpoint() >= goal {
            self.worker.enter(Event::CaughtUp);
        }
    }

    /// Asks the destination how far it is, and takes a snapshot where it needs one.
    async fn provision(&mut self) -> Step<()> {
        let (destination, owner) = (self.destination(), self.owner.clone());
        let answer = self.retried("provision destination", || destination.provision(&owner)).await?;
        if self.worker.fresh {
            return self.snapshot().await;
        }
        match answer {
            Provisioned::Ready { checkpoint: Some(checkpoint), snapshot: SnapshotState::Complete } => self.go_on_behind(checkpoint),
            Provisioned::Ready { .. } => self.snapshot().await,
            Provisioned::RebuildRequired { found } => Err(Ending::Drifted(
                Error::new(&code::REBUILD_REQUIRED, "provision destination").with("found", found).with("wanted", self.owner.fingerprint),
            )),
            Provisioned::OtherSource { found } => Err(Ending::Failed(
                Error::new(&code::DESTINATION_OWNED, "provision destination").with("found", found).with("wanted", &self.owner.source),
            )),
        }
    }

    /// The destination's checkpoint is the truth; the group's may lag behind it, or be ahead of a restored destination.
    pub(crate) fn go_on_behind(&mut self, checkpoint: CommitPosition) -> Step<()> {
        if checkpoint != self.lease.checkpoint() {
            self.lease.seek(checkpoint).map_err(|error| {
                if *error.code() != code::RELAY_BEHIND {
                    return Ending::from(error);
                }
                Ending::Failed(Error::new(&code::DESTINATION_BEHIND, "provision destination").with("checkpoint", checkpoint).because(error))
            })?;
        }
        self.worker.status.send_modify(|status| status.position = Some(checkpoint));
        Ok(())
    }

    /// Takes what is waiting, and applies it in runs.
    async fn transactions(&mut self, goal: CommitPosition) -> Step<()> {
        let mut deliveries = VecDeque::from(self.deliveries(goal).await?);
        let mut run = Run::default();
        while !deliveries.is_empty() {
            for (delivery, prepared) in self.prepare(&mut deliveries).await {
                let refused = match prepared {
                    Ok(Prepared::Batch(batch)) => {
                        // A transform may make much of little: Invariant 11 holds for what it made.
                        if !run.batches.is_empty() && run.bytes() + batch.bytes() > MAX_RUN_BYTES {
                            self.apply(std::mem::take(&mut run)).await?;
                            self.unless_asked(std::future::ready(())).await?;
                        }
                        run.deliveries.push(delivery);
                        run.batches.push(batch);
                        continue;
                    }
                    Ok(Prepared::Poison(report)) => Ending::Poison(report),
                    Err(error) => Ending::from(error),
                };
                // What comes before a refused transaction is good: it is applied first.
                self.apply(run).await?;
                return Err(refused);
            }
        }
        self.apply(run).await
    }

    /// Takes the first transactions and prepares them, small ones together: to hand one over to the sandbox costs more than
    /// what it does there.
    async fn prepare(&self, deliveries: &mut VecDeque<Delivery>) -> Vec<(Delivery, Result<Prepared>)> {
        let mut changes = 0;
        let small = deliveries.iter().take(MAX_TOGETHER).take_while(|delivery| {
            changes += delivery.meta().changes;
            changes <= MAX_CHANGES_TOGETHER
        });
        let count = small.count().max(1);
        let taken: Vec<Delivery> = deliveries.drain(..count).collect();
        let preparer = self.worker.preparer();
        let prepared = self.watching(join_all(taken.iter().map(|delivery| preparer.transaction(delivery)))).await;
        taken.into_iter().zip(prepared).collect()
    }

    /// Waits for transactions.
    async fn deliveries(&mut self, goal: CommitPosition) -> Step<Vec<Delivery>> {
        let most = self.worker.parts.destination.max_run();
        let deliveries = loop {
            self.look(goal);
            tokio::select! {
                biased;
                () = self.worker.commands.arrived() => return Err(Ending::Command),
                deliveries = self.lease.next_run(most, MAX_RUN_BYTES) => break deliveries?,
                () = sleep(LOOK_EVERY) => (),
            }
        };
        // After a restart nothing is known of what was applied last, but it was hardly older than what follows it.
        let oldest = deliveries.first().and_then(|delivery| lag::known(delivery.meta().commit_time_us));
        self.worker.newest = self.worker.newest.or(oldest);
        Ok(deliveries)
    }

    /// Repeats what may pass, as the policy says; shows what it waits for meanwhile.
    pub(crate) async fn retried<'f, T>(
        &mut self,
        what: &'static str,
        mut attempt: impl FnMut() -> BoxFuture<'f, Result<T>> + Send,
    ) -> Step<T> {
        let policy = self.worker.parts.settings.retry;
        let destination = self.destination();
        let mut backoff = Backoff::new(&policy);
        loop {
            let error = match self.watching(attempt()).await {
                Ok(done) => {
                    self.worker.recovered(what);
                    return Ok(done);
                }
                Err(error) => error,
            };
            let Some(pause) = backoff.after(&error, destination.retry_classifier()) else { return Err(Ending::given_up(error)) };
            self.worker.waiting(what, &error, pause);
            self.unless_asked(sleep(pause)).await?;
        }
    }

    /// Waits for `work` to its end, and shows the lag meanwhile.
    async fn watching<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = sleep(LOOK_EVERY) => self.observe(),
            }
        }
    }

    /// Waits for `work`, and shows the lag meanwhile; leaves it when the operator wants something.
    pub(crate) async fn unless_asked<T>(&mut self, work: impl Future<Output = T>) -> Step<T> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                () = self.worker.commands.arrived() => return Err(Ending::Command),
                done = &mut work => return Ok(done),
                () = sleep(LOOK_EVERY) => (),
            }
            self.observe();
        }
    }

    /// Counts a transaction that the destination holds.
    pub(crate) fn applied(&mut self, meta: &TransactionMeta, mutations: u64) {
        self.worker.newest = lag::known(meta.commit_time_us);
        self.worker.status.send_modify(|status| {
            status.position = Some(meta.position);
            status.transactions += 1;
            status.rows += mutations;
        });
    }
}

impl Worker {
    pub(crate) fn preparer(&self) -> Preparer<'_> {
        Preparer { settings: &self.parts.settings, transform: self.parts.transform.as_deref(), relations: &self.relations }
    }
}
