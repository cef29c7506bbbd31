//! A run at the destination: the same batches in every attempt, acknowledged only at their own positions.

use tidegate_api::{Applied, Batch, CommitPosition, Destination, Error, Ownership, Result, code};
use tidegate_relay::Delivery;

use crate::ending::{Ending, Step};
use crate::failpoints;
use crate::session::Session;

/// Transactions that are ready to be applied, in order.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) batches: Vec<Batch>,
}

impl Run {
    pub(crate) fn bytes(&self) -> u64 {
        self.batches.iter().map(Batch::bytes).sum()
    }

    /// The run's transactions one by one.
    fn singly(self) -> impl Iterator<Item = Self> {
        self.deliveries.into_iter().zip(self.batches).map(|(delivery, batch)| Self { deliveries: vec![delivery], batches: vec![batch] })
    }
}

impl Session<'_> {
    /// Applies the run: as a whole with its attempts, and where that fails for good, singly, so that what comes before the
    /// guilty transaction is applied.
    pub(crate) async fn apply(&mut self, run: Run) -> Step<()> {
        if run.batches.is_empty() {
            return Ok(());
        }
        match self.attempts(&run.batches).await {
            Ok(()) => self.acknowledge(run),
            Err(ending) if run.batches.len() > 1 && ending.may_be_of_one() => {
                tracing::warn!(event = "run-split", pipeline = self.name(), "a run failed: its transactions are applied one by one");
                for single in run.singly() {
                    self.attempts(&single.batches).await?;
                    self.acknowledge(single)?;
                }
                Ok(())
            }
            Err(ending) => Err(ending),
        }
    }

    async fn attempts(&mut self, batches: &[Batch]) -> Step<()> {
        let (destination, owner) = (self.destination(), self.owner.clone());
        // Invariant 4: made once, lent to every attempt
        self.retried("apply transactions", || Box::pin(attempt(&*destination, &owner, batches))).await
    }

    fn acknowledge(&mut self, run: Run) -> Step<()> {
        failpoints::before_ack();
        for (delivery, batch) in run.deliveries.into_iter().zip(&run.batches) {
            let (meta, position) = (*delivery.meta(), batch.position().unwrap_or_default());
            // Invariant 2: its own position, which the destination has confirmed
            delivery.ack(position).map_err(|(_, error)| Ending::from(error))?;
            self.applied(&meta, batch.mutations());
        }
        self.worker.progressed();
        Ok(())
    }
}

async fn attempt(destination: &dyn Destination, owner: &Ownership, batches: &[Batch]) -> Result<()> {
    failpoints::before_apply();
    let applied = destination.apply(owner, batches).await?;
    failpoints::after_apply();
    confirmed(batches, &applied)
}

/// Every answer must be the batch's own position.
fn confirmed(batches: &[Batch], applied: &[Applied]) -> Result<()> {
    let mismatch = |batch: CommitPosition, answer: Option<CommitPosition>| {
        let answer = answer.map_or_else(|| "none".to_owned(), |position| position.to_string());
        Error::new(&code::POSITION_MISMATCH, "apply transactions").with("batch", batch).with("confirmed", answer)
    };
    if applied.len() > batches.len() {
        return Err(mismatch(CommitPosition::ZERO, applied.last().map(|answer| answer.position())));
    }
    for (index, batch) in batches.iter().enumerate() {
        let own = batch.position().unwrap_or_default();
        let answer = applied.get(index).map(|answer| answer.position());
        // Invariant 2
        if answer != Some(own) {
            return Err(mismatch(own, answer));
        }
    }
    Ok(())
}
