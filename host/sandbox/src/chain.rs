//! Several stages as one transform.

use std::sync::Arc;

use tidegate_api::transform::Span;
use tidegate_api::{BoxFuture, Chunk, ChunkBuilder, Error, Origin, Outcome, Outcomes, Result, Transform, TransformRun, Transformed, code};

/// Stages one behind the other: each sees the documents and partition keys that the one before it gave, and does not see what
/// that one dropped or deleted. Budgets are counted by each stage for itself. The poison of any stage is the whole's.
///
/// A single stage is given back as it is. The definition of several is the JSON array of theirs.
pub fn chain(stages: Vec<Arc<dyn Transform>>) -> Arc<dyn Transform> {
    match <[_; 1]>::try_from(stages) {
        Ok([single]) => single,
        Err(stages) => {
            let definitions: Vec<&str> = stages.iter().map(|stage| stage.definition()).collect();
            let definition = format!("[{}]", definitions.join(","));
            Arc::new(Chain { stages, definition })
        }
    }
}

struct Chain {
    stages: Vec<Arc<dyn Transform>>,
    definition: String,
}

impl Transform for Chain {
    fn definition(&self) -> &str {
        &self.definition
    }

    fn begin(&self, changes: u64, of: Origin) -> Box<dyn TransformRun> {
        // How many changes a later stage will see is not known yet: it counts them as they come.
        let announced = std::iter::once(changes).chain(std::iter::repeat(0));
        let runs = self.stages.iter().zip(announced).map(|(stage, changes)| stage.begin(changes, of)).collect();
        Box::new(ChainRun { runs })
    }
}

struct ChainRun {
    runs: Vec<Box<dyn TransformRun>>,
}

impl TransformRun for ChainRun {
    fn chunk<'a>(&'a mut self, chunk: &'a Chunk) -> BoxFuture<'a, Result<Transformed>> {
        Box::pin(self.through(chunk))
    }
}

impl ChainRun {
    async fn through(&mut self, chunk: &Chunk) -> Result<Transformed> {
        let mut ends = Ends { items: vec![None; chunk.len()], collections: vec![None; chunk.len()], open: (0..chunk.len()).collect() };
        let mut current = chunk.clone();
        let mut last = Outcomes::default();
        for run in &mut self.runs {
            last = match run.chunk(&current).await? {
                Transformed::Outcomes(outcomes) => outcomes,
                poison @ Transformed::Poison(_) => return Ok(poison),
            };
            current = ends.pass(&current, &last)?;
        }
        ends.finish(chunk, &current, last)
    }
}

/// What has become of the changes of the original chunk.
struct Ends {
    /// The outcome of each that has come to its end.
    items: Vec<Option<Outcome>>,
    /// The collection that a stage has placed each in.
    collections: Vec<Option<String>>,
    /// The numbers of those that go on, in order: what the next stage's chunk holds.
    open: Vec<usize>,
}

impl Ends {
    /// Notes who came to an end in a stage; gives the chunk of those that go on.
    fn pass(&mut self, input: &Chunk, outcomes: &Outcomes) -> Result<Chunk> {
        if outcomes.items.len() != self.open.len() {
            return Err(broken());
        }
        let mut next = ChunkBuilder::default();
        let mut open = Vec::with_capacity(self.open.len());
        for ((change, outcome), number) in input.changes().zip(&outcomes.items).zip(&self.open) {
            match outcome {
                Outcome::Keep { document, partition_key, collection } => {
                    let mut change = change;
                    if let Some(document) = document {
                        change.new = Some(outcomes.get(*document).ok_or_else(broken)?);
                    }
                    if let Some(partition_key) = partition_key {
                        change.partition_key = Some(text(outcomes, *partition_key)?);
                    }
                    if let Some(collection) = collection {
                        *self.collections.get_mut(*number).ok_or_else(broken)? = Some(text(outcomes, *collection)?.to_owned());
                    }
                    next.push(&change);
                    open.push(*number);
                }
                end @ (Outcome::Delete | Outcome::Drop) => *self.items.get_mut(*number).ok_or_else(broken)? = Some(*end),
            }
        }
        self.open = open;
        Ok(next.finish())
    }

    /// The outcomes of the original chunk. The documents are the last stage's; where a document is placed, an earlier one may have
    /// said.
    fn finish(mut self, original: &Chunk, result: &Chunk, last: Outcomes) -> Result<Transformed> {
        let kept = last.items.iter().filter(|outcome| matches!(outcome, Outcome::Keep { .. }));
        let mut bytes = Vec::from(last.bytes.clone());
        let mut originals = original.changes().enumerate();
        for ((outcome, change), number) in kept.zip(result.changes()).zip(&self.open) {
            let Outcome::Keep { document, mut partition_key, .. } = *outcome else { continue };
            let (_, before) = originals.find(|(index, _)| index == number).ok_or_else(broken)?;
            if partition_key.is_none() && change.partition_key != before.partition_key {
                partition_key = Some(append(&mut bytes, change.partition_key.unwrap_or_default())?);
            }
            let collection = self.collections.get(*number).and_then(Option::as_deref);
            let collection = collection.map(|name| append(&mut bytes, name)).transpose()?;
            *self.items.get_mut(*number).ok_or_else(broken)? = Some(Outcome::Keep { document, partition_key, collection });
        }
        let items = self.items.into_iter().collect::<Option<Vec<_>>>().ok_or_else(broken)?;
        Ok(Transformed::Outcomes(Outcomes { bytes: bytes.into(), items }))
    }
}

/// Puts a text behind what is there.
fn append(bytes: &mut Vec<u8>, text: &str) -> Result<Span> {
    let (start, len) = (u32::try_from(bytes.len()), u32::try_from(text.len()));
    let (Ok(start), Ok(len)) = (start, len) else { return Err(broken()) };
    bytes.extend_from_slice(text.as_bytes());
    Ok(Span { start, len })
}

fn text(outcomes: &Outcomes, span: Span) -> Result<&str> {
    outcomes.get(span).and_then(|bytes| std::str::from_utf8(bytes).ok()).ok_or_else(broken)
}

/// A stage gave other outcomes than one for each change.
fn broken() -> Error {
    Error::new(&code::SANDBOX_FAILED, "chain stages").because("a stage did not give one outcome for each change")
}
