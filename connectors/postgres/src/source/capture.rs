//! Reads the slot on a thread of its own: whatever everything behind it does, the server is answered in time.

mod assemble;
mod feedback;
mod handover;
mod lookup;
mod row;
mod stream;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_api::{BoxFuture, Capture, Captured, CommitPosition, Error, Result, Resume, SourceIdentity, TableName, code};
use tokio::sync::oneshot;

use super::catalogue::{self, Facts};
use super::wire::{Mode, Wire};
use super::{Inner, checks, publication, slot};
use handover::Handover;

/// Checks, creates what is missing, and starts to read.
pub(crate) async fn open(inner: Arc<Inner>, resume: Resume, tables: Vec<TableName>) -> Result<Box<dyn Capture>> {
    let handover = Arc::new(Handover::default());
    let (ready, opened) = oneshot::channel();
    let guard = Running(Arc::clone(&handover));
    let thread = Thread { inner, resume, tables, handover: Arc::clone(&handover) };
    let spawned = std::thread::Builder::new().name("postgres-capture".to_owned()).spawn(move || thread.run(ready));
    spawned.map_err(|error| Error::new(&code::INTERNAL, "start capture").because(error))?;
    let over = |_| Err(Error::new(&code::INTERNAL, "start capture").because("the capture's thread ended"));
    let identity = opened.await.unwrap_or_else(over)?;
    Ok(Box::new(PostgresCapture { identity, running: guard }))
}

/// Ends the thread when it is dropped, also while the capture is still being opened.
struct Running(Arc<Handover>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.stop();
    }
}

struct PostgresCapture {
    identity: SourceIdentity,
    running: Running,
}

impl Capture for PostgresCapture {
    fn identity(&self) -> &SourceIdentity {
        &self.identity
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Captured>>> {
        Box::pin(self.running.0.take())
    }

    fn confirm(&mut self, position: CommitPosition) {
        self.running.0.confirm(position);
    }
}

/// A capture that is about to read.
struct Prepared {
    stream: stream::Stream,
    identity: SourceIdentity,
    /// Where a slot that was made just now begins; its reading was not started yet.
    created: Option<CommitPosition>,
}

struct Thread {
    inner: Arc<Inner>,
    resume: Resume,
    tables: Vec<TableName>,
    handover: Arc<Handover>,
}

impl Thread {
    fn run(self, ready: oneshot::Sender<Result<SourceIdentity>>) {
        /// Whoever waits learns of the end, also of one by a defect.
        struct Ended(Arc<Handover>);
        impl Drop for Ended {
            fn drop(&mut self) {
                self.0.end(Error::new(&code::INTERNAL, "capture").because("the capture's thread ended"));
            }
        }
        let handover = Arc::clone(&self.handover);
        let _ended = Ended(Arc::clone(&handover));
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                let _ = ready.send(Err(Error::new(&code::INTERNAL, "start capture").because(error)));
                return;
            }
        };
        runtime.block_on(async {
            let prepared = tokio::select! {
                biased;
                () = handover.stopped() => return,
                prepared = self.prepare() => prepared,
            };
            match prepared {
                Ok(Prepared { mut stream, identity, created }) => {
                    let _ = ready.send(Ok(identity));
                    if let Some(position) = created {
                        // Whoever asks for changes remembers the slot by now: until then nothing is decoded by it.
                        tokio::select! {
                            biased;
                            () = handover.stopped() => return,
                            () = handover.wanted() => {}
                        }
                        if let Err(error) = stream.start(&self.inner.publication, position).await {
                            return handover.end(error);
                        }
                    }
                    if let Err(error) = stream.run().await {
                        handover.end(error);
                    }
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            }
        });
    }

    async fn prepare(&self) -> Result<Prepared> {
        let inner = &self.inner;
        let mut admin = Wire::open(&inner.settings, Mode::Ordinary).await?;
        let findings = checks::server(&mut admin).await?;
        checks::refuse(&findings)?;
        let role = checks::role(&mut admin).await?;
        let mut facts = catalogue::tables(&mut admin, &inner.publication, &self.tables).await?;
        let findings = checks::tables(&self.tables, &facts, &inner.policies, &role, admin.version);
        checks::refuse(&findings)?;
        if !inner.warned.swap(true, Ordering::Relaxed) {
            checks::warn(&findings);
        }
        let mut replication = Wire::open(&inner.settings, Mode::Replication).await?;
        let (slot, database) = (inner.slot.as_str(), inner.settings.database.as_str());
        let plan = slot::examine(&mut admin, &mut replication, slot, database, &self.resume).await?;
        let created = !matches!(plan, slot::Plan::Resume(..));
        // The publication first: a change from before it could not be decoded, and would block the slot for ever.
        if publication::ensure(&mut admin, &inner.publication, &self.tables, &facts).await? {
            facts = catalogue::tables(&mut admin, &inner.publication, &self.tables).await?;
        }
        let (identity, position) = slot::carry_out(plan, &mut admin, &mut replication, slot, database).await?;
        let timeout = feedback::server_timeout(&mut replication).await?;
        if !created {
            slot::start(&mut replication, slot, &inner.publication, position).await?;
        }
        self.handover.confirm(position);
        let wanted = self.tables.iter().map(|table| (table.clone(), inner.policies.get(table).copied().unwrap_or_default()));
        let lookup = lookup::Lookup::new(Arc::clone(inner), admin, keys(facts));
        let assembler = assemble::Assembler::new(wanted.collect(), position);
        let stream = stream::Stream::new(replication, assembler, lookup, Arc::clone(&self.handover), position, timeout, inner.slot.clone());
        Ok(Prepared { stream, identity, created: created.then_some(position) })
    }
}

fn keys(facts: HashMap<TableName, Facts>) -> HashMap<TableName, Vec<String>> {
    facts.into_iter().map(|(name, facts)| (name, facts.key)).collect()
}
