//! A transform by closure.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_api::transform::{Origin, Span};
use tidegate_api::{BoxFuture, Change, Chunk, Outcome, Outcomes, Poison, Result, Transform, TransformRun, Transformed};
use tokio::sync::Barrier;

/// What becomes of a change.
pub(crate) enum Verdict {
    Keep,
    Becomes(String),
    Drop,
    Poison(&'static str),
}

type Rule = dyn Fn(&Change<'_>) -> Verdict + Send + Sync;

#[derive(Clone)]
struct ByRule(Arc<Rule>);

/// The transform that does with every change what `rule` says.
pub(crate) fn by(rule: impl Fn(&Change<'_>) -> Verdict + Send + Sync + 'static) -> Arc<dyn Transform> {
    Arc::new(ByRule(Arc::new(rule)))
}

impl Transform for ByRule {
    fn definition(&self) -> &str {
        "[\"rule\"]"
    }

    fn begin(&self, _changes: u64, _of: Origin) -> Box<dyn TransformRun> {
        Box::new(self.clone())
    }
}

impl TransformRun for ByRule {
    fn chunk<'a>(&'a mut self, chunk: &'a Chunk) -> BoxFuture<'a, Result<Transformed>> {
        Box::pin(async move {
            let (mut bytes, mut items) = (Vec::new(), Vec::new());
            for change in chunk.changes() {
                let text = match (self.0)(&change) {
                    Verdict::Poison(kind) => {
                        let reason = "$.kind differs".to_owned();
                        return Ok(Transformed::Poison(Poison { kind: kind.to_owned(), ordinal: Some(change.ordinal), reason }));
                    }
                    Verdict::Drop => {
                        items.push(Outcome::Drop);
                        continue;
                    }
                    Verdict::Keep => change.new.map(<[u8]>::to_vec),
                    Verdict::Becomes(text) => Some(text.into_bytes()),
                };
                let document = text.map(|text| {
                    let span = Span { start: bytes.len() as u32, len: text.len() as u32 };
                    bytes.extend(text);
                    span
                });
                items.push(Outcome::Keep { document, partition_key: None, collection: None });
            }
            Ok(Transformed::Outcomes(Outcomes { bytes: Bytes::from(bytes), items }))
        })
    }
}

struct Meeting(Arc<Barrier>, ByRule);

/// The transform that keeps everything, but gives no answer before `count` transactions have come to it.
pub(crate) fn meeting(count: usize) -> Arc<dyn Transform> {
    Arc::new(Meeting(Arc::new(Barrier::new(count)), ByRule(Arc::new(|_| Verdict::Keep))))
}

impl Transform for Meeting {
    fn definition(&self) -> &str {
        "[\"meeting\"]"
    }

    fn begin(&self, _changes: u64, _of: Origin) -> Box<dyn TransformRun> {
        Box::new(Self(self.0.clone(), self.1.clone()))
    }
}

impl TransformRun for Meeting {
    fn chunk<'a>(&'a mut self, chunk: &'a Chunk) -> BoxFuture<'a, Result<Transformed>> {
        Box::pin(async move {
            self.0.wait().await;
            self.1.chunk(chunk).await
        })
    }
}
