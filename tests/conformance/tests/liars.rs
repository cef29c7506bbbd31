//! Destinations that break one promise each.

use tidegate_api::{
    Applied, Batch, BoxFuture, CommitPosition, Destination, Finding, Guarantee, Ownership, Provisioned, Result, SnapshotEpoch,
};
use tidegate_conformance::destination::{self, Failures};
use tidegate_testkit::memory::{MemoryDestination, MemoryStore};

use crate::memory::Memory;

#[derive(Clone, Copy, PartialEq)]
enum Lie {
    /// Answers from a copy; the store learns of it with the next call.
    AnswersBeforeItIsDurable,
    /// Confirms the end of something else.
    ConfirmsAnotherPosition,
    /// Says "applied" to what it skipped.
    CallsOldBatchesNew,
    /// Takes every fence for the newest.
    ForgetsFences,
    /// Takes every source for the first one.
    ForgetsTheSource,
    /// Takes every transform for the first one.
    ForgetsTheFingerprint,
    /// Applies a run batch by batch, each in a transaction of its own.
    LeavesHalfARun,
    /// Keeps what an earlier snapshot left.
    BeginsOnOldRows,
}

struct Liar {
    lie: Lie,
    durable: MemoryStore,
    shown: MemoryDestination,
}

impl Liar {
    fn over(durable: &MemoryStore, lie: Lie) -> Box<dyn Destination> {
        let store = if lie == Lie::AnswersBeforeItIsDurable { durable.copy() } else { durable.clone() };
        Box::new(Self { lie, durable: durable.clone(), shown: MemoryDestination::new(&store) })
    }

    /// What was answered before becomes durable now.
    fn catch_up(&self) {
        if self.lie == Lie::AnswersBeforeItIsDurable {
            self.durable.restore(self.shown.store());
        }
    }

    fn pretend(&self, owner: &Ownership) -> Ownership {
        let mut owner = owner.clone();
        let record = self.shown.store().record(&owner.pipeline);
        match (self.lie, record) {
            (Lie::ForgetsFences, _) => owner.fence = u64::MAX,
            (Lie::ForgetsTheSource, Some(record)) => owner.source = record.source,
            (Lie::ForgetsTheFingerprint, Some(record)) => owner.fingerprint = record.fingerprint,
            _ => {}
        }
        owner
    }
}

impl Destination for Liar {
    fn guarantee(&self) -> Guarantee {
        Guarantee::AtomicCheckpoint
    }

    fn preflight(&self) -> BoxFuture<'_, Result<Vec<Finding>>> {
        self.shown.preflight()
    }

    fn provision<'a>(&'a self, owner: &'a Ownership) -> BoxFuture<'a, Result<Provisioned>> {
        self.catch_up();
        Box::pin(async move { self.shown.provision(&self.pretend(owner)).await })
    }

    fn begin_snapshot<'a>(&'a self, owner: &'a Ownership, epoch: &'a SnapshotEpoch) -> BoxFuture<'a, Result<()>> {
        self.catch_up();
        Box::pin(async move {
            let before = self.shown.store().documents(&owner.pipeline);
            self.shown.begin_snapshot(&self.pretend(owner), epoch).await?;
            if self.lie == Lie::BeginsOnOldRows {
                let kept: Vec<_> = before.iter().map(|((collection, key), _)| (collection.clone(), key.clone())).collect();
                let rows: Vec<_> =
                    kept.iter().map(|(collection, key)| tidegate_conformance::batches::upsert(collection, key, "{}")).collect();
                let batch = tidegate_conformance::batches::snapshot(epoch, 0, &rows);
                self.shown.apply_snapshot(&self.pretend(owner), epoch, &batch).await?;
            }
            Ok(())
        })
    }

    fn apply_snapshot<'a>(&'a self, owner: &'a Ownership, epoch: &'a SnapshotEpoch, batch: &'a Batch) -> BoxFuture<'a, Result<()>> {
        self.catch_up();
        Box::pin(async move { self.shown.apply_snapshot(&self.pretend(owner), epoch, batch).await })
    }

    fn complete_snapshot<'a>(
        &'a self,
        owner: &'a Ownership,
        epoch: &'a SnapshotEpoch,
        boundary: CommitPosition,
    ) -> BoxFuture<'a, Result<()>> {
        self.catch_up();
        Box::pin(async move { self.shown.complete_snapshot(&self.pretend(owner), epoch, boundary).await })
    }

    fn apply<'a>(&'a self, owner: &'a Ownership, run: &'a [Batch]) -> BoxFuture<'a, Result<Vec<Applied>>> {
        self.catch_up();
        Box::pin(async move {
            let owner = self.pretend(owner);
            if self.lie == Lie::LeavesHalfARun {
                let mut answers = Vec::new();
                for batch in run {
                    answers.extend(self.shown.apply(&owner, std::slice::from_ref(batch)).await?);
                }
                return Ok(answers);
            }
            let answers = self.shown.apply(&owner, run).await?;
            let lie = |answer: Applied| match (self.lie, answer) {
                (Lie::ConfirmsAnotherPosition, Applied::Applied(position)) => {
                    Applied::Applied(CommitPosition::new(position.offset().saturating_add(1)))
                }
                (Lie::CallsOldBatchesNew, answer) => Applied::Applied(answer.position()),
                (_, answer) => answer,
            };
            Ok(answers.into_iter().map(lie).collect())
        })
    }
}

async fn caught(open: fn(&MemoryStore) -> Box<dyn Destination>) -> Failures {
    let harness = Memory::with(&MemoryStore::new(), open);
    destination::check(&harness).await.expect_err("the liar is refused")
}

#[tokio::test]
async fn a_liar_that_answers_before_it_is_durable_is_refused() {
    let failures = caught(|store| Liar::over(store, Lie::AnswersBeforeItIsDurable)).await;
    assert!(failures.contains("what_was_applied_is_there_after_a_restart"), "{failures:?}");
}

#[tokio::test]
async fn a_liar_that_confirms_another_position_is_refused() {
    let failures = caught(|store| Liar::over(store, Lie::ConfirmsAnotherPosition)).await;
    assert!(failures.contains("each_batch_is_answered_with_exactly_its_own_position"), "{failures:?}");
}

#[tokio::test]
async fn a_liar_that_calls_skipped_batches_applied_is_refused() {
    let failures = caught(|store| Liar::over(store, Lie::CallsOldBatchesNew)).await;
    assert!(failures.contains("redelivery_of_a_changed_payload_keeps_the_accepted_content"), "{failures:?}");
}

#[tokio::test]
async fn a_liar_that_forgets_fences_is_refused() {
    let failures = caught(|store| Liar::over(store, Lie::ForgetsFences)).await;
    assert!(failures.contains("a_lower_fence_is_refused_in_every_call"), "{failures:?}");
}

#[tokio::test]
async fn a_liar_that_forgets_whose_positions_it_holds_is_refused() {
    let failures = caught(|store| Liar::over(store, Lie::ForgetsTheSource)).await;
    assert!(failures.contains("another_source_is_never_already_applied"), "{failures:?}");
}

#[tokio::test]
async fn a_liar_that_forgets_what_made_its_documents_is_refused() {
    let failures = caught(|store| Liar::over(store, Lie::ForgetsTheFingerprint)).await;
    assert!(failures.contains("drift_of_the_fingerprint_requires_a_rebuild"), "{failures:?}");
}

#[tokio::test]
async fn a_liar_that_leaves_half_a_run_is_refused() {
    let failures = caught(|store| Liar::over(store, Lie::LeavesHalfARun)).await;
    assert!(failures.contains("a_key_beyond_the_bound_is_refused_before_anything_is_written"), "{failures:?}");
}

#[tokio::test]
async fn a_liar_that_begins_a_snapshot_on_old_rows_is_refused() {
    let failures = caught(|store| Liar::over(store, Lie::BeginsOnOldRows)).await;
    assert!(failures.contains("an_interrupted_snapshot_begins_anew_with_nothing_left"), "{failures:?}");
}
