//! Pause, resume, reset, stop, and what the next process finds.

use std::sync::Arc;

use tidegate_api::{CommitPosition, Operation, code};
use tidegate_pipeline::{Parts, Settings, State, Stored, start};
use tidegate_testkit::faults::{Call, Fault};
use tidegate_testkit::memory::{MemoryDestination, MemoryStore};

use crate::support::{NAME, ORDERS, Read, World, away, change, chunk, insert, problem, transaction, until, until_at, until_state};

#[tokio::test]
async fn a_pause_survives_a_restart_and_shows_the_lag_until_it_is_resumed() {
    let world = World::new();
    let handle = world.start();
    world.append([transaction(10, &[insert("1", "{}")])]).await;
    until_at(&handle, 10).await;
    handle.pause().await.unwrap();
    handle.stop().await;
    world.append([transaction(20, &[insert("2", "{}")])]).await;
    let handle = start(world.parts(), Stored { paused: true });
    let status = until(&handle, "a lag in the pause", |status| status.lag_bytes > 0).await;
    assert_eq!((status.state, world.checkpoint()), (State::Paused, Some(10)));
    assert_eq!(status.position, Some(CommitPosition::new(10)), "it says where it is, although it does not work");
    handle.resume().await.unwrap();
    until_at(&handle, 20).await;
    handle.stop().await;
}

#[tokio::test]
async fn a_pause_ends_an_outage_and_what_is_refused_is_said() {
    let world = World::new();
    (0..1000).for_each(|_| world.faults.add(Call::Provision, Fault::Reject(away())));
    let handle = world.start();
    until(&handle, "trying", |status| status.retries > 1).await;
    assert_eq!(handle.resume().await.unwrap_err().code(), &code::STATE_REFUSED);
    handle.pause().await.unwrap();
    assert_eq!(problem(&until_state(&handle, State::Paused).await), "TG0501");
    handle.stop().await;
    assert_eq!(handle.status().state, State::Stopped);
    assert_eq!(handle.pause().await.unwrap_err().code(), &code::STATE_REFUSED);
}

#[tokio::test]
async fn a_restart_goes_on_behind_what_the_destination_holds_whatever_the_group_knows() {
    let world = World::new();
    let handle = world.start();
    world.append([transaction(10, &[insert("1", "{}")]), transaction(20, &[insert("2", "{}")])]).await;
    until_at(&handle, 20).await;
    handle.stop().await;
    // The group's checkpoint may lag behind: here it has lost everything.
    world.log.group(NAME).unwrap().acquire("test").unwrap().seek(CommitPosition::ZERO).unwrap();
    let before = world.faults.calls().len();
    let handle = world.start();
    world.append([transaction(30, &[insert("3", "{}")])]).await;
    let status = until_at(&handle, 30).await;
    assert_eq!(status.transactions, 1, "what was applied before is not applied again");
    assert_eq!(world.faults.calls()[before..], [Call::Provision, Call::Apply]);
    handle.stop().await;
}

#[tokio::test]
async fn a_restart_after_an_answer_that_nobody_heard_finds_the_run_applied() {
    let world = World::new();
    world.faults.add(Call::Apply, Fault::FailAfterWrite(away()));
    (0..1000).for_each(|_| world.faults.add(Call::Apply, Fault::Reject(away())));
    let handle = world.start();
    world.append([transaction(10, &[insert("1", "{}")])]).await;
    until(&handle, "trying", |status| status.retries > 1).await;
    handle.stop().await;
    let destination = Arc::new(MemoryDestination::new(&world.store));
    let handle = start(Parts { destination, ..world.parts() }, Stored::default());
    let status = until_at(&handle, 10).await;
    assert_eq!((status.transactions, world.document("1").is_some()), (0, true));
    handle.stop().await;
}

#[tokio::test]
async fn a_restored_destination_is_filled_up_from_the_relay() {
    let world = World::new();
    let handle = world.start();
    world.append([transaction(10, &[insert("1", "{}")])]).await;
    until_at(&handle, 10).await;
    let backup = world.store.copy();
    world.append([transaction(20, &[insert("2", "{}")])]).await;
    until_at(&handle, 20).await;
    handle.stop().await;
    world.store.restore(&backup);
    let handle = world.start();
    until_at(&handle, 20).await;
    assert!(world.document("2").is_some());
    handle.stop().await;
}

#[tokio::test]
async fn another_fingerprint_stops_before_anything_is_written_and_a_reset_fills_anew() {
    let world = World::new();
    let handle = world.start();
    world.append([transaction(10, &[insert("1", "{\"v\":1}")])]).await;
    until_at(&handle, 10).await;
    handle.stop().await;
    let settings = Settings { tables: vec![ORDERS.parse().unwrap(), "public.more".parse().unwrap()], ..world.settings() };
    let handle = start(Parts { settings, ..world.parts() }, Stored::default());
    world.append([transaction(20, &[insert("1", "{\"v\":2}")])]).await;
    let status = until_state(&handle, State::Rebuilding).await;
    assert_eq!((problem(&status), world.document("1")), ("TG0402", Some("{\"v\":1}".to_owned())));
    world.source.add(20, [Read::Rows(chunk(&[change(Operation::Row, "7", Some("{}"))]))]);
    handle.reset().await.unwrap();
    until_at(&handle, 20).await;
    assert_eq!((world.document("1"), world.document("7").is_some()), (None, true));
    handle.stop().await;
}

#[tokio::test]
async fn two_pipelines_read_one_log_and_a_pause_of_one_holds_back_nothing_of_the_other() {
    let world = World::new();
    let first = world.start();
    let other = MemoryStore::new();
    let parts = Parts {
        settings: Settings { name: "other".to_owned(), ..world.settings() },
        destination: Arc::new(MemoryDestination::new(&other)),
        ..world.parts()
    };
    let second = start(parts, Stored::default());
    world.append([transaction(10, &[insert("1", "{}")])]).await;
    until_at(&first, 10).await;
    until_at(&second, 10).await;
    first.pause().await.unwrap();
    world.append([transaction(20, &[insert("2", "{}")])]).await;
    until_at(&second, 20).await;
    assert_eq!((world.checkpoint(), other.checkpoint("other").map(CommitPosition::offset)), (Some(10), Some(20)));
    first.resume().await.unwrap();
    until_at(&first, 20).await;
    first.stop().await;
    second.stop().await;
}
