//! One transaction on its way through a program.

use std::sync::Arc;
use std::time::Duration;

use tidegate_api::{BoxFuture, Chunk, Error, Outcomes, Poison, Result, TransformRun, Transformed, code};
use tidegate_frame::{Response, Spent};

use crate::frames::{self, Collected};
use crate::instance::{Failure, Instance};
use crate::pool::{Ended, Pool};
use crate::program::Stage;

pub(crate) struct ProgramRun {
    stage: Arc<Stage>,
    pool: Arc<Pool>,
    announced: u64,
    seen: u64,
    spent: Spent,
    used: Duration,
}

impl ProgramRun {
    pub(crate) fn new(stage: Arc<Stage>, pool: Arc<Pool>, announced: u64) -> Self {
        Self { stage, pool, announced, seen: 0, spent: Spent::default(), used: Duration::ZERO }
    }

    async fn transform(&mut self, chunk: &Chunk) -> Result<Transformed> {
        self.seen = self.seen.saturating_add(chunk.len() as u64);
        let (mutations, limit) = (self.announced.max(self.seen), self.stage.limits.mutations);
        if mutations > limit {
            return Ok(poison("limit-mutations", None, format!("the transaction has {mutations} mutations, and mutations is {limit}")));
        }
        if chunk.is_empty() {
            return Ok(Transformed::Outcomes(Outcomes::default()));
        }
        // Time is not the same on every run. Only what is too slow twice, the second time in a new instance, is poison.
        for start in [Start::Idle, Start::Fresh] {
            let work = transform(self.stage.clone(), chunk.clone(), self.spent, start);
            let left = self.stage.limits.time.saturating_sub(self.used);
            let (ended, used) = self.pool.run(self.stage.lane, left, work).await?;
            if let Ended::Done(done) = ended {
                let (transformed, spent) = done?;
                self.spent = spent;
                self.used += used;
                return Ok(transformed);
            }
        }
        let milliseconds = self.stage.limits.time.as_millis();
        Ok(poison("limit-time", None, format!("the transaction takes more processor time than milliseconds, which is {milliseconds}")))
    }
}

impl TransformRun for ProgramRun {
    fn chunk<'a>(&'a mut self, chunk: &'a Chunk) -> BoxFuture<'a, Result<Transformed>> {
        Box::pin(self.transform(chunk))
    }
}

/// Which instance a chunk starts in.
#[derive(Clone, Copy, PartialEq)]
enum Start {
    /// One that has answered before, where there is one.
    Idle,
    /// A new one.
    Fresh,
}

/// A chunk through the guest: as many calls as it takes. Gives also what the transaction has spent now.
async fn transform(stage: Arc<Stage>, chunk: Chunk, mut spent: Spent, start: Start) -> Result<(Transformed, Spent)> {
    let mut instance = None;
    let mut collected = Collected::default();
    let mut buffer = stage.instances.take_buffer();
    // How many changes from here on are known to hold one that ends the guest.
    let mut suspects = 0;
    while collected.len() < chunk.len() {
        let at_most = if suspects == 0 { usize::MAX } else { (suspects / 2).max(1) };
        let frame = frames::encode(buffer, &chunk, collected.len(), at_most, spent, stage.limits.document_bytes)?;
        let Some((first, _)) = frame.records.first() else {
            let refused = frame.refused.ok_or_else(|| Error::new(&code::INTERNAL, "transform chunk"))?;
            give_back(&stage, instance);
            return Ok((Transformed::Poison(refused), spent));
        };
        let fuel = stage.limits.fuel(frame.bytes.len(), frame.records.len());
        let response = match call(&stage, instance.take(), start, &frame.bytes, fuel).await {
            Ok((used, response)) => {
                instance = Some(used);
                response
            }
            Err(Failure::Broken(error)) => return Err(error),
            Err(limit) if frame.records.len() == 1 => return Ok((limit_poison(&stage, &limit, *first, fuel), spent)),
            Err(_) => {
                suspects = frame.records.len();
                buffer = frame.bytes;
                continue;
            }
        };
        buffer = frame.bytes;
        let records = u32::try_from(frame.records.len()).unwrap_or(u32::MAX);
        match Response::parse(&response, records).map_err(|error| frames::malformed(&error))? {
            Response::Poison(refusal) => {
                let index = refusal.index.and_then(|index| usize::try_from(index).ok());
                let ordinal = index.and_then(|index| frame.records.get(index)).map(|(ordinal, _)| *ordinal);
                let poison = poison(refusal.kind, ordinal, refusal.reason.to_owned());
                give_back(&stage, instance);
                return Ok((poison, spent));
            }
            Response::Outcomes(answer) => {
                spent = answer.spent;
                let before = collected.len();
                collected.outcomes(answer, &frame.records)?;
                collected.response(response);
                suspects = suspects.saturating_sub(collected.len() - before);
            }
        }
    }
    give_back(&stage, instance);
    stage.instances.give_back_buffer(buffer);
    Ok((Transformed::Outcomes(collected.finish()), spent))
}

async fn call(stage: &Stage, instance: Option<Instance>, start: Start, frame: &[u8], fuel: u64) -> Result<(Instance, Vec<u8>), Failure> {
    let mut instance = match (instance, start) {
        (Some(instance), _) => instance,
        (None, Start::Idle) => stage.instances.take().await?,
        (None, Start::Fresh) => stage.instances.fresh().await?,
    };
    let (response, _) = instance.call(frame, fuel).await?;
    Ok((instance, response))
}

fn give_back(stage: &Stage, instance: Option<Instance>) {
    if let Some(instance) = instance {
        stage.instances.give_back(instance);
    }
}

fn limit_poison(stage: &Stage, limit: &Failure, ordinal: u32, fuel: u64) -> Transformed {
    let memory = stage.instances.memory_bytes;
    match limit {
        Failure::Memory => {
            poison("limit-memory", Some(ordinal), format!("the guest needs more memory than memory_bytes, which is {memory}"))
        }
        _ => poison("limit-fuel", Some(ordinal), format!("the guest did not end within {fuel} units of fuel")),
    }
}

fn poison(kind: &str, ordinal: Option<u32>, reason: String) -> Transformed {
    Transformed::Poison(Poison { kind: kind.to_owned(), ordinal, reason })
}
