//! A relay in a folder, a source whose snapshot is scripted, a transform by closure, and a destination with faults on order.

pub(crate) mod transform;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tidegate_api::{
    BoxFuture, Capture, Captured, Change, Chunk, ChunkBuilder, CommitPosition, Destination, Error, Finding, OnDrop, Operation, Result,
    Resume, Snapshot, SnapshotSource, Source, SourceIdentity, SourceStatus, TableName, TransactionMeta, Transform, code,
};
use tidegate_pipeline::{Handle, MaxTransaction, Parts, RetryPolicy, Settings, State, Status, Stored, start};
use tidegate_relay::{Log, Options, RealDisk, Relay};
use tidegate_testkit::faults::Faults;
use tidegate_testkit::memory::{MemoryDestination, MemoryStore};
use tidegate_testkit::wait::PATIENCE;

pub(crate) const NAME: &str = "all";
pub(crate) const ORDERS: &str = "public.orders";

/// Everything around a pipeline.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) log: Arc<Log>,
    pub(crate) source: Arc<Rows>,
    pub(crate) store: MemoryStore,
    pub(crate) faults: Arc<Faults>,
}

impl World {
    /// A source that was created, without rows and transactions.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let relay = Relay::open(&folder.path().join("relay"), Arc::new(RealDisk), Options::default()).unwrap();
        let log = relay.log("shop").unwrap();
        log.begin_creation().unwrap();
        let epoch = "0/20".to_owned();
        log.created(&SourceIdentity { system: "7391".to_owned(), timeline: 1, database: "app".to_owned(), epoch }).unwrap();
        let store = MemoryStore::new();
        let faults = Faults::around(Arc::new(MemoryDestination::new(&store)));
        Self { folder, log, source: Arc::default(), store, faults }
    }

    /// Retries at once; everything else as by default.
    pub(crate) fn settings(&self) -> Settings {
        let at_once = Duration::from_millis(1);
        Settings {
            name: NAME.to_owned(),
            tables: vec![ORDERS.parse().unwrap()],
            on_drop: OnDrop::Delete,
            retry: RetryPolicy { attempts: 3, base: at_once, max: at_once, factor: 1.0, jitter: 0.0 },
            collections: Vec::new(),
            max_transaction: MaxTransaction::default(),
            spool: self.folder.path().join("spool"),
        }
    }

    pub(crate) fn parts(&self) -> Parts {
        Parts {
            settings: self.settings(),
            transform: None,
            destination: Arc::clone(&self.faults) as Arc<dyn Destination>,
            source: Arc::clone(&self.source) as Arc<dyn Source>,
            log: Arc::clone(&self.log),
        }
    }

    pub(crate) fn start(&self) -> Handle {
        start(self.parts(), Stored::default())
    }

    pub(crate) fn start_with(&self, transform: Arc<dyn Transform>) -> Handle {
        start(Parts { transform: Some(transform), ..self.parts() }, Stored::default())
    }

    /// Makes transactions durable in one go.
    pub(crate) async fn append(&self, transactions: impl IntoIterator<Item = Captured>) {
        self.log.append(transactions.into_iter().collect()).await.unwrap();
    }

    pub(crate) fn document(&self, key: &str) -> Option<String> {
        self.store.document(NAME, ORDERS, key)
    }

    pub(crate) fn checkpoint(&self) -> Option<u64> {
        self.store.checkpoint(NAME).map(CommitPosition::offset)
    }
}

/// Waits until the pipeline's status is as wanted.
pub(crate) async fn until(handle: &Handle, what: &str, wanted: impl FnMut(&Status) -> bool) -> Status {
    let mut status = handle.watch();
    match tokio::time::timeout(PATIENCE, status.wait_for(wanted)).await {
        Ok(found) => found.unwrap().clone(),
        Err(_) => panic!("never: {what}; it is {:?}", handle.status()),
    }
}

pub(crate) async fn until_state(handle: &Handle, state: State) -> Status {
    until(handle, state.name(), |status| status.state == state).await
}

pub(crate) async fn until_at(handle: &Handle, position: u64) -> Status {
    let wanted = Some(CommitPosition::new(position));
    until(handle, "everything applied", |status| status.position == wanted && status.state == State::Running).await
}

/// The code of what the pipeline says that is wrong.
pub(crate) fn problem(status: &Status) -> &str {
    status.error.as_ref().map_or("", |error| error.code.as_str())
}

pub(crate) fn busy() -> Error {
    Error::new(&code::DESTINATION_FAILED, "apply").transient()
}

pub(crate) fn away() -> Error {
    Error::new(&code::DESTINATION_UNREACHABLE, "apply").transient()
}

pub(crate) fn change<'a>(operation: Operation, key: &'a str, new: Option<&'a str>) -> Change<'a> {
    Change {
        ordinal: 0,
        relation: ORDERS,
        operation,
        key,
        partition_key: None,
        old: None,
        new: new.map(str::as_bytes),
        content_type: None,
        unavailable: None,
    }
}

pub(crate) fn insert<'a>(key: &'a str, document: &'a str) -> Change<'a> {
    change(Operation::Insert, key, Some(document))
}

pub(crate) fn chunk(changes: &[Change<'_>]) -> Chunk {
    let mut builder = ChunkBuilder::default();
    for (ordinal, change) in changes.iter().enumerate() {
        builder.push(&Change { ordinal: ordinal as u32, ..*change });
    }
    builder.finish()
}

/// A transaction of one chunk, committed now.
pub(crate) fn transaction(position: u64, changes: &[Change<'_>]) -> Captured {
    transaction_at(position, std::time::UNIX_EPOCH.elapsed().unwrap().as_micros() as i64, changes)
}

pub(crate) fn transaction_at(position: u64, commit_time_us: i64, changes: &[Change<'_>]) -> Captured {
    let chunk = chunk(changes);
    let meta =
        TransactionMeta { xid: position as u32, position: CommitPosition::new(position), commit_time_us, changes: chunk.len() as u64 };
    Captured::Commit { meta, chunk }
}

/// A source whose snapshots are scripted. It is never captured: tests append to the log themselves.
#[derive(Default)]
pub(crate) struct Rows {
    views: Mutex<VecDeque<View>>,
    begun: AtomicU64,
}

/// One view: what its reads give, one after the other; then nothing more.
#[derive(Default)]
pub(crate) struct View {
    pub(crate) boundary: u64,
    pub(crate) reads: VecDeque<Read>,
}

pub(crate) enum Read {
    Rows(Chunk),
    Fails(Error),
    Hangs,
}

impl Rows {
    /// The next view that has no script yet is this one; an empty one at 0 when none is left.
    pub(crate) fn add(&self, boundary: u64, reads: impl IntoIterator<Item = Read>) {
        self.views.lock().unwrap().push_back(View { boundary, reads: reads.into_iter().collect() });
    }

    /// How many views were opened.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }
}

impl Source for Rows {
    fn preflight<'a>(&'a self, _tables: &'a [TableName]) -> BoxFuture<'a, Result<Vec<Finding>>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn open<'a>(&'a self, _resume: &'a Resume, _tables: &'a [TableName]) -> BoxFuture<'a, Result<Box<dyn Capture>>> {
        Box::pin(async { Err(Error::new(&code::SOURCE_FAILED, "open")) })
    }

    fn remove(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn status(&self) -> BoxFuture<'_, Result<SourceStatus>> {
        Box::pin(async { Ok(SourceStatus::default()) })
    }

    fn snapshots(&self) -> Option<&dyn SnapshotSource> {
        Some(self)
    }
}

impl SnapshotSource for Rows {
    fn begin<'a>(&'a self, _tables: &'a [TableName]) -> BoxFuture<'a, Result<Box<dyn Snapshot>>> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let view = self.views.lock().unwrap().pop_front().unwrap_or_default();
        Box::pin(async { Ok(Box::new(view) as Box<dyn Snapshot>) })
    }
}

impl Snapshot for View {
    fn boundary(&self) -> CommitPosition {
        CommitPosition::new(self.boundary)
    }

    fn estimated_rows(&self) -> Option<u64> {
        None
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Option<Chunk>>> {
        let read = self.reads.pop_front();
        Box::pin(async {
            match read {
                None => Ok(None),
                Some(Read::Rows(chunk)) => Ok(Some(chunk)),
                Some(Read::Fails(error)) => Err(error),
                Some(Read::Hangs) => std::future::pending().await,
            }
        })
    }
}
