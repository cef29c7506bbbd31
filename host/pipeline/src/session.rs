//! From taking the group over to the next reason to stop.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidegate_api::destination::MAX_RUN_BYTES;
use tidegate_api::{
    BoxFuture, CommitPosition, Destination, Error, Ownership, Provisioned, Result, SnapshotState, SourceIdentity, TransactionMeta, code,
};
use tidegate_relay::Lease;

use crate::apply::Run;
use crate::prepare::{Prepared, Preparer};
use crate::retry::Backoff;
use crate::state::Event;
use crate::status::PoisonReport;
use crate::worker::Worker;

/// How often a worker looks whether its source is there.
const SOURCE_POLL: Duration = Duration::from_millis(20);

/// Why a session ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The operator wants something.
    Command,
    /// The transform refused a change.
    Poison(Box<PoisonReport>),
    /// The destination holds another transform's documents.
    Drifted(Error),
    /// Something that the operator must mend.
    Paused(Error),
    /// An error, transient or not.
    Failed(Error),
}

impl From<Error> for Ending {
    fn from(error: Error) -> Self {
        const OPERATOR: [&tidegate_api::Code; 4] =
            [&code::TRANSACTION_TOO_LARGE, &code::DOCUMENT_TOO_LARGE, &code::KEY_TOO_LARGE, &code::DESTINATION_CONTENT];
        match error.code() {
            code if OPERATOR.contains(&code) => Self::Paused(error),
            code if *code == code::REBUILD_REQUIRED => Self::Drifted(error),
            _ => Self::Failed(error),
        }
    }
}

/// One session: a lease on the group and the ownership that goes with it.
pub(crate) struct Session<'a> {
    pub(crate) worker: &'a mut Worker,
    pub(crate) lease: Lease,
    pub(crate) owner: Ownership,
}

/// Runs until something ends it.
pub(crate) async fn run(worker: &mut Worker) -> Ending {
    let begun = begin(worker).await;
    let mut session = match begun {
        Ok(session) => session,
        Err(ending) => return ending,
    };
    let worked = session.work().await;
    session.observe();
    match worked {
        Ok(never) => match never {},
        Err(ending) => ending,
    }
}

async fn begin(worker: &mut Worker) -> std::result::Result<Session<'_>, Ending> {
    let source = source_identity(worker).await?;
    let group = worker.parts.log.group(&worker.parts.settings.name)?;
    let lease = group.acquire(&worker.parts.settings.name)?;
    let owner = Ownership { pipeline: worker.parts.settings.name.clone(), source, fingerprint: worker.fingerprint, fence: lease.fence() };
    Ok(Session { worker, lease, owner })
}

/// Waits until the source was created.
async fn source_identity(worker: &mut Worker) -> std::result::Result<SourceIdentity, Ending> {
    loop {
        if let Some(identity) = worker.parts.log.identity() {
            return Ok(identity);
        }
        tokio::select! {
            () = worker.commands.arrived() => return Err(Ending::Command),
            () = tokio::time::sleep(SOURCE_POLL) => (),
        }
    }
}

impl Session<'_> {
    pub(crate) fn name(&self) -> &str {
        &self.owner.pipeline
    }

    pub(crate) fn destination(&self) -> std::sync::Arc<dyn Destination> {
        std::sync::Arc::clone(&self.worker.parts.destination)
    }

    async fn work(&mut self) -> std::result::Result<std::convert::Infallible, Ending> {
        self.provision().await?;
        self.worker.enter(Event::StreamBegan);
        loop {
            self.observe();
            if self.lease.lag_bytes() == 0 {
                self.worker.enter(Event::CaughtUp);
            }
            self.transactions().await?;
        }
    }

    /// Asks the destination how far it is, and takes a snapshot where it needs one.
    async fn provision(&mut self) -> std::result::Result<(), Ending> {
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
    pub(crate) fn go_on_behind(&mut self, checkpoint: CommitPosition) -> std::result::Result<(), Ending> {
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

    /// Takes what is waiting, and applies it as one run.
    async fn transactions(&mut self) -> std::result::Result<(), Ending> {
        let most = self.worker.parts.destination.max_run();
        if self.worker.commands.is_waiting() {
            return Err(Ending::Command);
        }
        let deliveries = tokio::select! {
            biased;
            () = self.worker.commands.arrived() => return Err(Ending::Command),
            deliveries = self.lease.next_run(most, MAX_RUN_BYTES) => deliveries?,
        };
        let mut run = Run::default();
        let mut refused = None;
        let preparer = self.worker.preparer();
        for delivery in deliveries {
            match preparer.transaction(&delivery).await {
                Ok(Prepared::Batch(batch)) => {
                    run.batches.push(batch);
                    run.deliveries.push(delivery);
                }
                Ok(Prepared::Poison(report)) => refused = Some(Ending::Poison(report)),
                Err(error) => refused = Some(Ending::from(error)),
            }
            if refused.is_some() {
                break;
            }
        }
        // What comes before a refused transaction is good: it is applied first.
        if !run.batches.is_empty() {
            self.apply(run).await?;
        }
        refused.map_or(Ok(()), Err)
    }

    /// Repeats what may pass, as the policy says; shows what it waits for meanwhile.
    pub(crate) async fn retried<'f, T>(
        &mut self,
        what: &'static str,
        mut attempt: impl FnMut() -> BoxFuture<'f, Result<T>> + Send,
    ) -> std::result::Result<T, Ending> {
        let policy = self.worker.parts.settings.retry;
        let destination = self.destination();
        let mut backoff = Backoff::new(&policy);
        loop {
            let error = match attempt().await {
                Ok(done) => {
                    self.worker.recovered();
                    return Ok(done);
                }
                Err(error) => error,
            };
            let Some(pause) = backoff.after(&error, &*destination) else { return Err(Ending::from(error)) };
            self.worker.waiting(what, &error, pause);
            tokio::select! {
                () = self.worker.commands.arrived() => return Err(Ending::Command),
                () = tokio::time::sleep(pause) => (),
            }
        }
    }

    /// Counts a transaction that the destination holds.
    pub(crate) fn applied(&mut self, meta: &TransactionMeta, mutations: u64) {
        self.worker.newest = Some(meta.commit_time_us);
        self.worker.status.send_modify(|status| {
            status.position = Some(meta.position);
            status.transactions += 1;
            status.rows += mutations;
        });
    }

    /// Looks at how far behind it is.
    pub(crate) fn observe(&mut self) {
        let lag_bytes = self.lease.lag_bytes();
        let lag_seconds = match self.worker.newest {
            Some(newest) if lag_bytes > 0 => (now_us() - newest).max(0) as f64 / 1e6,
            _ => 0.0,
        };
        self.worker.status.send_modify(|status| {
            status.lag_bytes = lag_bytes;
            status.lag_seconds = lag_seconds;
        });
    }
}

impl Worker {
    pub(crate) fn preparer(&self) -> Preparer<'_> {
        Preparer { settings: &self.parts.settings, transform: self.parts.transform.as_deref(), relations: &self.relations }
    }
}

fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
