//! A destination that is away, and a worker that breaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_pipeline::State;
use tidegate_testkit::faults::{Call, Fault};

use crate::support::transform::{Verdict, by};
use crate::support::{World, away, insert, problem, transaction, transaction_at, until, until_at, until_state};

const LONG_AGO_US: i64 = 1_700_000_000_000_000;

#[tokio::test]
async fn a_destination_that_is_away_is_tried_beyond_the_ceiling_and_nothing_is_lost() {
    let world = World::new();
    (0..20).for_each(|_| world.faults.add(Call::Apply, Fault::Reject(away())));
    let handle = world.start();
    world.append([transaction(10, &[insert("1", "{}")])]).await;
    let status = until(&handle, "trying", |status| status.retries >= 5).await;
    assert!(matches!(status.state, State::CatchingUp | State::Running), "{status:?}");
    assert_eq!(problem(&status), "TG0501");
    let status = until_at(&handle, 10).await;
    assert_eq!((status.retries, status.error), (20, None));
    handle.stop().await;
}

#[tokio::test]
async fn the_lag_grows_while_the_destination_does_not_answer_and_while_the_pipeline_is_paused() {
    let world = World::new();
    let mut held = world.faults.hold(Call::Apply);
    let handle = world.start();
    world.append([transaction_at(10, LONG_AGO_US, &[insert("1", "{}")])]).await;
    held.reached().await;
    let before = until(&handle, "a lag", |status| status.lag_bytes > 0 && status.lag_seconds > 1e6).await;
    world.append([transaction_at(20, LONG_AGO_US, &[insert("2", "{}")])]).await;
    let during = until(&handle, "more lag", |status| status.lag_bytes > before.lag_bytes).await;
    assert!(during.lag_seconds > before.lag_seconds);
    held.release();
    assert_eq!(until(&handle, "no lag", |status| status.lag_bytes == 0).await.lag_seconds, 0.0);

    handle.pause().await.unwrap();
    world.append([transaction(30, &[insert("3", "{}")])]).await;
    let paused = until(&handle, "a lag in the pause", |status| status.lag_bytes > 0).await;
    assert_eq!(paused.state, State::Paused);
    assert!(paused.lag_seconds > 1e6);
    handle.stop().await;
}

#[tokio::test]
async fn transactions_without_a_time_show_no_lag_in_seconds() {
    let world = World::new();
    let handle = world.start();
    world.append([transaction_at(10, 0, &[insert("1", "{}")])]).await;
    until_at(&handle, 10).await;
    let mut held = world.faults.hold(Call::Apply);
    world.append([transaction_at(20, 0, &[insert("2", "{}")])]).await;
    held.reached().await;
    let status = until(&handle, "a lag", |status| status.lag_bytes > 0).await;
    assert_eq!(status.lag_seconds, 0.0);
    held.release();
    handle.stop().await;
}

#[tokio::test]
async fn a_pipeline_runs_once_it_has_what_was_there_at_the_beginning_even_under_steady_load() {
    let world = World::new();
    world.append([transaction(10, &[insert("1", "{}")])]).await;
    let mut first = world.faults.hold(Call::Apply);
    let handle = world.start();
    first.reached().await;
    let mut second = world.faults.hold(Call::Apply);
    world.append([transaction(20, &[insert("2", "{}")])]).await;
    assert_eq!(handle.status().state, State::CatchingUp);
    first.release();
    second.reached().await;
    let status = handle.status();
    assert_eq!(status.state, State::Running);
    assert!(status.lag_bytes > 0);
    second.release();
    handle.stop().await;
}

#[tokio::test]
async fn a_panic_is_a_fault_with_a_name_and_the_operator_gets_out_of_it() {
    let world = World::new();
    let broken = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&broken);
    let handle = world.start_with(by(move |_| {
        assert!(!flag.load(Ordering::Relaxed), "a defect");
        Verdict::Keep
    }));
    world.append([transaction(10, &[insert("1", "{}")])]).await;
    let status = until_state(&handle, State::Faulted).await;
    assert_eq!(problem(&status), "TG0013");
    broken.store(false, Ordering::Relaxed);
    handle.resume().await.unwrap();
    until_at(&handle, 10).await;
    handle.stop().await;
    assert_eq!(handle.status().state, State::Stopped);
}
