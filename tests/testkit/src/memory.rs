//! A destination in memory: the simplest one that keeps every promise.
//!
//! The store survives a "restart", which is another [`MemoryDestination`] over the same [`MemoryStore`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_api::{
    Applied, Batch, BoxFuture, CommitPosition, Destination, Finding, Guarantee, MutationKind, Ownership, PipelineRecord, Provisioned,
    Result, SnapshotEpoch, bounds, fold,
};

/// The largest document that is stored.
pub const MAX_DOCUMENT_BYTES: u64 = 64 << 20;

/// One document, as a reader finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryDocument {
    /// What the transform placed it by.
    pub partition_key: Option<String>,
    /// Its bytes.
    pub document: Vec<u8>,
    /// What wrote it last.
    pub change_id: String,
}

/// By collection and key.
pub type MemoryDocuments = BTreeMap<(String, String), MemoryDocument>;

/// What is durable.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<BTreeMap<String, Pipeline>>>);

#[derive(Clone, Debug, Default)]
struct Pipeline {
    record: Option<PipelineRecord>,
    documents: MemoryDocuments,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// The pipeline's documents.
    pub fn documents(&self, pipeline: &str) -> MemoryDocuments {
        self.lock().get(pipeline).map(|pipeline| pipeline.documents.clone()).unwrap_or_default()
    }

    /// The text of one document.
    pub fn document(&self, pipeline: &str, collection: &str, key: &str) -> Option<String> {
        let place = (collection.to_owned(), key.to_owned());
        let documents = self.documents(pipeline);
        documents.get(&place).map(|found| String::from_utf8_lossy(&found.document).into_owned())
    }

    /// The pipeline's record.
    pub fn record(&self, pipeline: &str) -> Option<PipelineRecord> {
        self.lock().get(pipeline).and_then(|pipeline| pipeline.record.clone())
    }

    /// The pipeline's checkpoint.
    pub fn checkpoint(&self, pipeline: &str) -> Option<CommitPosition> {
        self.record(pipeline).and_then(|record| record.checkpoint)
    }

    /// A copy that later changes do not reach: what a backup holds.
    pub fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.lock().clone())))
    }

    /// Puts back what a copy holds.
    pub fn restore(&self, copy: &Self) {
        let restored = copy.lock().clone();
        *self.lock() = restored;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Pipeline>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A destination over a [`MemoryStore`].
#[derive(Clone, Debug, Default)]
pub struct MemoryDestination {
    store: MemoryStore,
}

impl MemoryDestination {
    /// An instance over `store`.
    pub fn new(store: &MemoryStore) -> Self {
        Self { store: store.clone() }
    }

    /// What is durable.
    pub fn store(&self) -> &MemoryStore {
        &self.store
    }

    /// Runs `work` on the pipeline's state and keeps what it did only when it succeeds.
    fn transaction<'a, T: Send + 'a>(
        &'a self,
        owner: &'a Ownership,
        work: impl FnOnce(&mut Pipeline) -> Result<T> + Send + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move { work(self.store.lock().entry(owner.pipeline.clone()).or_default()) })
    }
}

impl Destination for MemoryDestination {
    fn guarantee(&self) -> Guarantee {
        Guarantee::AtomicCheckpoint
    }

    fn preflight(&self) -> BoxFuture<'_, Result<Vec<Finding>>> {
        Box::pin(async { Ok(vec![Finding::passed("memory", "writable")]) })
    }

    fn provision<'a>(&'a self, owner: &'a Ownership) -> BoxFuture<'a, Result<Provisioned>> {
        self.transaction(owner, move |pipeline| {
            let (answer, record) = PipelineRecord::provision(pipeline.record.clone(), owner)?;
            pipeline.record = record.or(pipeline.record.take());
            Ok(answer)
        })
    }

    fn begin_snapshot<'a>(&'a self, owner: &'a Ownership, epoch: &'a SnapshotEpoch) -> BoxFuture<'a, Result<()>> {
        self.transaction(owner, move |pipeline| {
            pipeline.record = Some(PipelineRecord::begin_snapshot(pipeline.record.as_ref(), owner, epoch)?);
            pipeline.documents.clear();
            Ok(())
        })
    }

    fn apply_snapshot<'a>(&'a self, owner: &'a Ownership, epoch: &'a SnapshotEpoch, batch: &'a Batch) -> BoxFuture<'a, Result<()>> {
        self.transaction(owner, move |pipeline| {
            let run = std::slice::from_ref(batch);
            check(owner, run)?;
            PipelineRecord::apply_snapshot(pipeline.record.as_ref(), owner, epoch)?;
            write(&mut pipeline.documents, run)
        })
    }

    fn complete_snapshot<'a>(
        &'a self,
        owner: &'a Ownership,
        epoch: &'a SnapshotEpoch,
        boundary: CommitPosition,
    ) -> BoxFuture<'a, Result<()>> {
        self.transaction(owner, move |pipeline| {
            pipeline.record = Some(PipelineRecord::complete_snapshot(pipeline.record.as_ref(), owner, epoch, boundary)?);
            Ok(())
        })
    }

    fn apply<'a>(&'a self, owner: &'a Ownership, run: &'a [Batch]) -> BoxFuture<'a, Result<Vec<Applied>>> {
        self.transaction(owner, move |pipeline| {
            check(owner, run)?;
            let (already, record) = PipelineRecord::apply(pipeline.record.as_ref(), owner, run)?;
            let (old, new) = run.split_at(already);
            write(&mut pipeline.documents, new)?;
            pipeline.record = Some(record);
            let old = old.iter().filter_map(Batch::position).map(Applied::AlreadyApplied);
            Ok(old.chain(new.iter().filter_map(Batch::position).map(Applied::Applied)).collect())
        })
    }
}

fn check(owner: &Ownership, run: &[Batch]) -> Result<()> {
    for batch in run {
        for chunk in batch.chunks() {
            for mutation in chunk?.mutations() {
                bounds::check(&owner.pipeline, batch, &mutation, MAX_DOCUMENT_BYTES)?;
            }
        }
    }
    Ok(())
}

/// Reads everything before it changes anything, so that a chunk that cannot be read leaves nothing behind.
fn write(documents: &mut MemoryDocuments, run: &[Batch]) -> Result<()> {
    for group in fold::groups(run).collect::<Result<Vec<_>>>()? {
        let folded = group.folded();
        documents.retain(|(collection, _), _| !folded.emptied.contains(&collection.as_str()));
        for (batch, mutation) in &folded.last {
            let place = (mutation.collection.to_owned(), mutation.key.to_owned());
            let MutationKind::Upsert { document, .. } = mutation.kind else {
                documents.remove(&place);
                continue;
            };
            let partition_key = mutation.partition_key.map(str::to_owned);
            documents.insert(place, MemoryDocument { partition_key, document: document.to_vec(), change_id: batch.change_id(mutation) });
        }
    }
    Ok(())
}
