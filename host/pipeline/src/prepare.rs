//! From the chunks of a transaction (or of a snapshot) to its one immutable batch.

use sha2::{Digest, Sha256};
use tidegate_api::{Batch, BatchOrigin, Change, Chunk, Error, OnDrop, Poison, Result, Transform, TransformRun, Transformed, code};
use tidegate_relay::Delivery;

use crate::mapping::map;
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
        let meta = delivery.meta();
        let max = &self.settings.max_transaction;
        if meta.changes > max.rows || delivery.bytes() > max.bytes {
            return Err(Error::new(&code::TRANSACTION_TOO_LARGE, "take transaction")
                .with("position", meta.position)
                .with("xid", meta.xid)
                .with("rows", meta.changes)
                .with("max_rows", max.rows)
                .with("bytes", delivery.bytes())
                .with("max_bytes", max.bytes)); // Invariant 11
        }
        let chunks = || delivery.chunks().map(|chunk| chunk.map(|chunk| self.wanted(&chunk)));
        self.batch(BatchOrigin::Transaction(*meta), chunks).await
    }

    /// The batch of a snapshot's chunk.
    ///
    /// # Errors
    /// The sandbox fails.
    pub(crate) async fn rows(&self, origin: BatchOrigin, chunk: &Chunk) -> Result<Prepared> {
        self.batch(origin, || std::iter::once(Ok(self.wanted(chunk)))).await
    }

    fn wanted(&self, chunk: &Chunk) -> Chunk {
        chunk.retain(|relation| self.relations.iter().any(|name| name == relation))
    }

    async fn batch<I: Iterator<Item = Result<Chunk>>>(&self, origin: BatchOrigin, chunks: impl Fn() -> I) -> Result<Prepared> {
        let mut batch = BatchWriter::new(&self.settings.spool);
        let mut run = match self.transform {
            Some(transform) => Some(transform.begin(count(chunks())?)),
            None => None,
        };
        for chunk in chunks() {
            let chunk = chunk?;
            match self.chunk(run.as_deref_mut(), &chunk).await? {
                Ok(mutations) => batch.push(mutations)?,
                Err(poison) => return Ok(Prepared::Poison(Box::new(report(&origin, &chunk, poison)))),
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
        let on_drop = self.settings.on_drop;
        let Some(run) = run else { return passed(chunk, on_drop) };
        match run.chunk(chunk).await? {
            Transformed::Outcomes(outcomes) => map(chunk, Some(&outcomes), on_drop).map(Ok),
            Transformed::Poison(poison) => Ok(Err(poison)),
        }
    }
}

fn passed(chunk: &Chunk, on_drop: OnDrop) -> Result<std::result::Result<tidegate_api::MutationChunk, Poison>> {
    map(chunk, None, on_drop).map(Ok)
}

/// All changes, of a transaction in several chunks by reading it once more.
fn count(chunks: impl Iterator<Item = Result<Chunk>>) -> Result<u64> {
    let mut changes = 0;
    for chunk in chunks {
        changes += chunk?.len() as u64;
    }
    Ok(changes)
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
