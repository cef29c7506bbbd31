//! Snapshots: every attempt under an epoch of its own.

use tidegate_api::{Error, Operation, code};
use tidegate_pipeline::State;
use tidegate_testkit::faults::{Call, Fault};

use crate::support::{Read, World, busy, change, chunk, insert, problem, transaction, until, until_at, until_state};

fn row(key: &str) -> Read {
    Read::Rows(chunk(&[change(Operation::Row, key, Some("{}"))]))
}

fn lost() -> Error {
    Error::new(&code::SNAPSHOT_LOST, "copy rows").transient()
}

#[tokio::test]
async fn a_view_that_is_lost_begins_anew_as_often_as_it_takes_and_leaves_nothing_behind() {
    let world = World::new();
    for _ in 0..5 {
        world.source.add(50, [row("gone"), Read::Fails(lost())]);
    }
    world.source.add(60, [row("1"), row("2")]);
    world.append([transaction(60, &[insert("old", "{}")]), transaction(70, &[insert("3", "{}")])]).await;
    let handle = world.start();
    let status = until_at(&handle, 70).await;
    assert_eq!((world.source.begun(), status.retries, status.error), (6, 5, None));
    assert_eq!(world.store.documents(crate::support::NAME).into_keys().map(|(_, key)| key).collect::<Vec<_>>(), ["1", "2", "3"]);
    handle.stop().await;
}

#[tokio::test]
async fn an_error_of_the_source_that_does_not_pass_is_a_fault() {
    let world = World::new();
    world.source.add(50, [Read::Fails(Error::new(&code::TYPE_MOVED, "copy rows"))]);
    let handle = world.start();
    assert_eq!(problem(&until_state(&handle, State::Faulted).await), "TG0123");
    handle.stop().await;
}

#[tokio::test]
async fn a_pause_in_a_snapshot_comes_at_once_even_from_a_view_that_hangs_and_resuming_takes_a_new_one() {
    let world = World::new();
    world.source.add(50, [row("gone"), Read::Hangs]);
    world.source.add(60, [row("1")]);
    let handle = world.start();
    let before = until(&handle, "a row", |status| status.snapshot_rows == 1).await;
    assert_eq!(before.state, State::Snapshotting);
    handle.pause().await.unwrap();
    assert_eq!(handle.status().state, State::Paused);
    handle.resume().await.unwrap();
    let after = until_at(&handle, 60).await;
    assert_ne!(after.snapshot_epoch, before.snapshot_epoch);
    assert_eq!((world.document("gone"), world.document("1").is_some()), (None, true));
    handle.stop().await;
}

#[tokio::test]
async fn a_destination_that_fails_in_a_snapshot_beyond_the_ceiling_is_a_fault_and_resuming_takes_a_new_one() {
    let world = World::new();
    world.source.add(50, [row("1")]);
    world.source.add(60, [row("2")]);
    (0..3).for_each(|_| world.faults.add(Call::ApplySnapshot, Fault::Reject(busy())));
    let handle = world.start();
    assert_eq!(problem(&until_state(&handle, State::Faulted).await), "TG0504");
    handle.resume().await.unwrap();
    until_at(&handle, 60).await;
    assert_eq!((world.document("1"), world.document("2").is_some()), (None, true));
    handle.stop().await;
}

#[tokio::test]
async fn a_restart_in_a_snapshot_takes_a_new_one() {
    let world = World::new();
    world.source.add(50, [row("gone"), Read::Hangs]);
    world.source.add(60, [row("1")]);
    let handle = world.start();
    let before = until(&handle, "a row", |status| status.snapshot_rows == 1).await;
    handle.stop().await;
    let handle = world.start();
    let after = until_at(&handle, 60).await;
    assert_ne!(after.snapshot_epoch, before.snapshot_epoch);
    assert_eq!(world.document("gone"), None);
    handle.stop().await;
}
