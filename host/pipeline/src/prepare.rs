//! From the chunks of a transaction (or of a snapshot) to its one immutable batch.

use sha2::{Digest, Sha256};
use tidegate_api::{
    Batch, BatchOrigin, Change, Chunk, Error, Origin, Poison, Result, TransactionMeta, Transform, TransformRun, Transformed, code,
};
use tidegate_relay::Delivery;
use tokio::task::yield_now;

use crate::mapping::Mapping;
use crate::settings::Settings;
use crate::spool::BatchWriter;
use crate::status::PoisonReport;

/// What came of it.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// It can be applied.
    Batch(Batch),
    /// The transform refused it.
    Poison(Box<PoisonReport>),
}

/// What a transaction holds for this pipeline.
#[derive(Debug, Default)]
struct Own {
    changes: u64,
    /// Its chunk, where it has only one: nearly always.
    only: Option<Chunk>,
}

/// Makes batches; the transform runs once for each.
pub(crate) struct Preparer<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) transform: Option<&'a dyn Transform>,
    /// The tables' names as changes carry them.
    pub(crate) relations: &'a [String],
}

impl Preparer<'_> {
    /// The batch of a transaction.
    ///
    /// # Errors
    /// [`code::TRANSACTION_TOO_LARGE`]; the relay or the sandbox fails.
    pub(crate) async fn transaction(&self, delivery: &Delivery) -> Result<Prepared> {
        let chunks = || delivery.chunks().map(|chunk| chunk.map(|chunk| self.wanted(&chunk)));
        let own = self.measure(delivery.meta(), chunks()).await?;
        let stored = own.only.is_none().then(chunks);
        let chunks = own.only.map(Ok).into_iter().chain(stored.into_iter().flatten());
        self.batch(BatchOrigin::Transaction(*delivery.meta()), own.changes, chunks).await
    }

    /// The batch of a snapshot's chunk.
    ///
    /// # Errors
    /// The sandbox fails.
    pub(crate) async fn rows(&self, origin: BatchOrigin, chunk: &Chunk) -> Result<Prepared> {
        let chunk = self.wanted(chunk);
        self.batch(origin, chunk.len() as u64, std::iter::once(Ok(chunk))).await
    }

    fn wanted(&self, chunk: &Chunk) -> Chunk {
        chunk.retain(|relation| self.relations.iter().any(|name| name == relation))
    }

    /// Reads the transaction through, but no further than its bounds.
    async fn measure(&self, meta: &TransactionMeta, chunks: impl Iterator<Item = Result<Chunk>>) -> Result<Own> {
        let max = &self.settings.max_transaction;
        let mut own = Own::default();
        let mut bytes = 0;
        for (number, chunk) in chunks.enumerate() {
            let chunk = chunk?;
            own.changes += chunk.len() as u64;
            bytes += chunk.bytes().len() as u64;
            if own.changes > max.rows || bytes > max.bytes {
                return Err(Error::new(&code::TRANSACTION_TOO_LARGE, "take transaction")
                    .with("position", meta.position)
                    .with("xid", meta.xid)
                    .with("rows_so_far", own.changes)
                    .with("max_rows", max.rows)
                    .with("bytes_so_far", bytes)
                    .with("max_bytes", max.bytes)); // Invariant 11
            }
            own.only = (number == 0).then_some(chunk);
            if number > 0 {
                yield_now().await; // others have their turn between the reads
            }
        }
        Ok(own)
    }

    async fn batch(&self, origin: BatchOrigin, changes: u64, chunks: impl Iterator<Item = Result<Chunk>>) -> Result<Prepared> {
        let mut batch = BatchWriter::new(&self.settings.spool);
        let mut run = self.transform.filter(|_| changes > 0).map(|transform| transform.begin(changes, of(&origin)));
        for (number, chunk) in chunks.enumerate() {
            let chunk = chunk?;
            if chunk.is_empty() {
                continue;
            }
            match self.chunk(run.as_deref_mut(), &chunk).await? {
                Ok(mutations) => batch.push(mutations)?,
                Err(poison) => return Ok(Prepared::Poison(Box::new(report(&origin, &chunk, poison)))),
            }
            if number > 0 {
                yield_now().await;
            }
        }
        Ok(Prepared::Batch(batch.finish(origin)))
    }

    async fn chunk(
        &self,
        run: Option<&mut (dyn TransformRun + 'static)>,
        chunk: &Chunk,
    ) -> Result<std::result::Result<tidegate_api::MutationChunk, Poison>> {
        if let Some(poison) = chunk.changes().find_map(|change| unavailable(&change)) {
            return Ok(Err(poison));
        }
        let mapping = Mapping { on_drop: self.settings.on_drop, collections: &self.settings.collections };
        let Some(run) = run else { return mapping.map(chunk, None) };
        match run.chunk(chunk).await? {
            Transformed::Outcomes(outcomes) => mapping.map(chunk, Some(&outcomes)),
            Transformed::Poison(poison) => Ok(Err(poison)),
        }
    }
}

/// What the transform is told of it.
fn of(origin: &BatchOrigin) -> Origin {
    match origin {
        BatchOrigin::Transaction(meta) => Origin { position: Some(meta.position), commit_time_us: Some(meta.commit_time_us) },
        BatchOrigin::Snapshot { .. } => Origin::default(),
    }
}

fn unavailable(change: &Change<'_>) -> Option<Poison> {
    change.unavailable.map(|columns| Poison {
        kind: "unchanged-toast".to_owned(),
        ordinal: Some(change.ordinal),
        reason: format!("the source sent no value of the unchanged column {columns}, and no old row to take it from"),
    })
}

fn report(origin: &BatchOrigin, chunk: &Chunk, poison: Poison) -> PoisonReport {
    let guilty = poison.ordinal.and_then(|ordinal| chunk.changes().find(|change| change.ordinal == ordinal));
    let (position, xid) = match origin {
        BatchOrigin::Transaction(meta) => (meta.position.to_string(), meta.xid),
        BatchOrigin::Snapshot { .. } => ("snapshot".to_owned(), 0),
    };
    PoisonReport {
        relation: guilty.map(|change| change.relation.to_owned()).unwrap_or_default(),
        key_hash: guilty.map(|change| key_hash(change.key)).unwrap_or_default(),
        position,
        xid,
        ordinal: poison.ordinal,
        kind: poison.kind,
        reason: poison.reason,
        size_bytes: guilty.and_then(|change| change.new).map_or(0, |document| document.len() as u64),
    }
}

fn key_hash(key: &str) -> String {
    let digest = Sha256::digest(key.as_bytes());
    hex::encode(digest.get(..8).unwrap_or_default())
}
