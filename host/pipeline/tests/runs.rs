//! Runs of transactions: together, then singly, and only at their own positions.

use std::sync::Arc;

use tidegate_api::destination::MAX_RUN_BYTES;
use tidegate_api::{
    Applied, Batch, BoxFuture, Captured, CommitPosition, Destination, Finding, Guarantee, Ownership, Provisioned, Result, SnapshotEpoch,
};
use tidegate_pipeline::{Parts, State, Stored, start};
use tidegate_testkit::faults::{Call, Fault};
use tidegate_testkit::memory::MemoryDestination;

use crate::support::transform::{Verdict, by, meeting};
use crate::support::{World, busy, insert, problem, transaction, until, until_at, until_state};

fn applies(world: &World) -> usize {
    world.faults.calls().into_iter().filter(|call| *call == Call::Apply).count()
}

#[tokio::test]
async fn what_the_operator_must_mend_stops_only_what_is_behind_it() {
    let world = World::new();
    let long = "k".repeat(3000);
    world.append([transaction(10, &[insert("1", "{}")]), transaction(20, &[insert(&long, "{}")]), transaction(30, &[])]).await;
    let handle = world.start();
    let status = until_state(&handle, State::Paused).await;
    assert_eq!((problem(&status), world.checkpoint()), ("TG0509", Some(10)));
    assert!(world.document("1").is_some());
    handle.stop().await;
}

#[tokio::test]
async fn attempts_end_at_the_ceiling_and_resuming_gives_new_ones() {
    let world = World::new();
    (0..3).for_each(|_| world.faults.add(Call::Apply, Fault::Reject(busy())));
    let handle = world.start();
    world.append([transaction(10, &[insert("1", "{}")])]).await;
    let status = until_state(&handle, State::Faulted).await;
    assert_eq!((problem(&status), status.retries, applies(&world)), ("TG0504", 2, 3));
    (0..2).for_each(|_| world.faults.add(Call::Apply, Fault::Reject(busy())));
    handle.resume().await.unwrap();
    let status = until_at(&handle, 10).await;
    assert_eq!((status.error, applies(&world)), (None, 6));
    handle.stop().await;
}

#[tokio::test]
async fn a_run_that_fails_for_good_is_applied_one_by_one() {
    let world = World::new();
    // All attempts of the run of three, then all of the second transaction alone.
    let mut held = world.faults.hold(Call::Provision);
    let handle = world.start();
    held.reached().await;
    world.append([10, 20, 30].map(|position| transaction(position, &[insert(&position.to_string(), "{}")]))).await;
    (0..3).for_each(|_| world.faults.add(Call::Apply, Fault::Reject(busy())));
    let first = world.faults.hold(Call::Apply);
    (0..3).for_each(|_| world.faults.add(Call::Apply, Fault::Reject(busy())));
    held.release();
    first.release();
    let status = until_state(&handle, State::Faulted).await;
    assert_eq!((problem(&status), world.checkpoint(), status.transactions), ("TG0504", Some(10), 1));
    assert_eq!(applies(&world), 3 + 1 + 3);
    handle.resume().await.unwrap();
    until_at(&handle, 30).await;
    handle.stop().await;
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_and_nothing_is_applied_twice() {
    let world = World::new();
    world.faults.add(Call::Apply, Fault::FailAfterWrite(busy()));
    let handle = world.start();
    world.append([transaction(10, &[insert("1", "{}")]), transaction(20, &[insert("2", "{}")])]).await;
    let status = until_at(&handle, 20).await;
    assert_eq!((status.transactions, status.retries), (2, 1));
    handle.stop().await;
}

#[tokio::test]
async fn a_run_is_closed_by_what_the_transform_made_of_it() {
    let world = World::new();
    let mut held = world.faults.hold(Call::Provision);
    let handle = world.start_with(by(|_| Verdict::Becomes(format!("{{\"pad\":\"{}\"}}", "x".repeat(MAX_RUN_BYTES as usize / 4)))));
    held.reached().await;
    world.append((1..=12).map(|position| transaction(position, &[insert(&position.to_string(), "{}")]))).await;
    held.release();
    let status = until_at(&handle, 12).await;
    assert_eq!(status.transactions, 12);
    assert_eq!(applies(&world), 4, "a run holds three documents of a little more than a quarter of what it may");
    handle.stop().await;
}

#[tokio::test]
async fn a_pipeline_that_has_nothing_but_an_idle_position_before_it_is_running() {
    let world = World::new();
    world.append([transaction(10, &[insert("1", "{}")])]).await;
    let handle = world.start();
    until_at(&handle, 10).await;
    handle.stop().await;
    let mut held = world.faults.hold(Call::Provision);
    let handle = world.start();
    held.reached().await;
    world.append([Captured::Idle { position: CommitPosition::new(20) }]).await;
    held.release();
    until_state(&handle, State::Running).await;
    handle.stop().await;
}

#[tokio::test]
async fn small_transactions_that_wait_are_handed_to_the_transform_together() {
    let world = World::new();
    let mut held = world.faults.hold(Call::Provision);
    let handle = world.start_with(meeting(5));
    held.reached().await;
    world.append((1..=5).map(|position| transaction(position, &[insert(&position.to_string(), "{}")]))).await;
    held.release();
    assert_eq!(until_at(&handle, 5).await.transactions, 5);
    handle.stop().await;
}

#[tokio::test]
async fn of_transactions_that_were_handed_over_together_those_before_a_refused_one_are_applied() {
    let world = World::new();
    let mut held = world.faults.hold(Call::Provision);
    let handle = world.start_with(by(|change| if change.key == "4" { Verdict::Poison("rule") } else { Verdict::Keep }));
    held.reached().await;
    world.append((1..=5).map(|position| transaction(position, &[insert(&position.to_string(), "{}")]))).await;
    held.release();
    let status = until_state(&handle, State::Paused).await;
    assert_eq!((problem(&status), world.checkpoint(), status.transactions), ("TG0304", Some(3), 3));
    handle.stop().await;
}

/// Answers every run with the position of its last batch plus one.
struct Liar(MemoryDestination);

impl Destination for Liar {
    fn guarantee(&self) -> Guarantee {
        self.0.guarantee()
    }

    fn preflight(&self) -> BoxFuture<'_, Result<Vec<Finding>>> {
        self.0.preflight()
    }

    fn provision<'a>(&'a self, owner: &'a Ownership) -> BoxFuture<'a, Result<Provisioned>> {
        self.0.provision(owner)
    }

    fn begin_snapshot<'a>(&'a self, owner: &'a Ownership, epoch: &'a SnapshotEpoch) -> BoxFuture<'a, Result<()>> {
        self.0.begin_snapshot(owner, epoch)
    }

    fn apply_snapshot<'a>(&'a self, owner: &'a Ownership, epoch: &'a SnapshotEpoch, batch: &'a Batch) -> BoxFuture<'a, Result<()>> {
        self.0.apply_snapshot(owner, epoch, batch)
    }

    fn complete_snapshot<'a>(
        &'a self,
        owner: &'a Ownership,
        epoch: &'a SnapshotEpoch,
        boundary: CommitPosition,
    ) -> BoxFuture<'a, Result<()>> {
        self.0.complete_snapshot(owner, epoch, boundary)
    }

    fn apply<'a>(&'a self, owner: &'a Ownership, run: &'a [Batch]) -> BoxFuture<'a, Result<Vec<Applied>>> {
        Box::pin(async move {
            let mut answers = self.0.apply(owner, run).await?;
            if let Some(last @ Applied::Applied(_)) = answers.last_mut() {
                *last = Applied::Applied(CommitPosition::new(last.position().offset() + 1));
            }
            Ok(answers)
        })
    }
}

/// Invariant 2
#[tokio::test]
async fn a_destination_that_confirms_another_position_is_not_believed_and_nothing_is_acknowledged() {
    let world = World::new();
    let destination = Arc::new(Liar(MemoryDestination::new(&world.store)));
    let handle = start(Parts { destination, ..world.parts() }, Stored::default());
    until(&handle, "streaming", |status| status.state == State::Running).await;
    world.append([transaction(10, &[insert("1", "{}")]), transaction(20, &[insert("2", "{}")])]).await;
    let status = until_state(&handle, State::Faulted).await;
    assert_eq!((problem(&status), status.transactions), ("TG0404", 0));
    handle.stop().await;
    assert_eq!(world.log.groups()[0].checkpoint, CommitPosition::ZERO);
}
