//! Processes and workers that end, or overlap, at the wrong moment.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::Arc;

use tidegate_api::{Applied, CommitPosition, Destination as _, Provisioned, code};
use tidegate_conformance::batches::{transaction, upsert};
use tidegate_testkit::process::bound_command;

use crate::harness::{Files, owner};

/// The two accounts that every transaction moves money between: their sum is always 0.
fn transfer(position: u64) -> tidegate_api::Batch {
    let (plus, minus) = (format!(r#"{{"balance":{position}}}"#), format!(r#"{{"balance":-{position}}}"#));
    transaction(position, &[upsert("public.a", "1", &plus), upsert("public.a", "2", &minus)])
}

#[tokio::test]
async fn a_reader_sees_whole_transactions_only() {
    let files = Arc::new(Files::new());
    let destination = files.destination();
    destination.provision(&owner(1)).await.unwrap();
    destination.apply(&owner(1), &[transfer(1)]).await.unwrap();
    let reading = tokio::task::spawn_blocking({
        let files = files.clone();
        move || {
            let reader = files.reader();
            let read = "SELECT sum(document ->> '$.balance'), max(document ->> '$.balance') FROM documents";
            loop {
                let (sum, last): (i64, i64) = reader.query_row(read, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
                assert_eq!(sum, 0);
                if last == 200 {
                    return;
                }
            }
        }
    });
    for position in 2..=200 {
        destination.apply(&owner(1), &[transfer(position)]).await.unwrap();
    }
    reading.await.unwrap();
}

#[tokio::test]
async fn of_two_workers_at_once_the_one_with_the_higher_fence_writes() {
    let files = Arc::new(Files::new());
    files.destination().provision(&owner(1)).await.unwrap();
    let old = tokio::spawn({
        let destination = files.destination();
        async move {
            let mut written = Vec::new();
            for position in 1.. {
                match destination.apply(&owner(1), &[transfer(position)]).await {
                    Ok(answers) => written.extend(answers),
                    Err(error) => {
                        assert_eq!(error.code(), &code::DESTINATION_FENCED, "{error}");
                        break;
                    }
                }
            }
            written
        }
    });
    let destination = files.destination();
    tidegate_testkit::wait::until("the old worker has written", || async { (files.count() > 0).then_some(()) }).await;
    destination.provision(&owner(2)).await.unwrap();
    let old = old.await.unwrap();
    let mut new = Vec::new();
    for position in 1..=old.len() as u64 + 20 {
        new.extend(destination.apply(&owner(2), &[transfer(position)]).await.unwrap());
    }
    // Each transaction was applied once: the old worker's before the new one came, the others by the new one.
    let positions = |range: std::ops::RangeInclusive<usize>| range.map(|position| CommitPosition::new(position as u64));
    assert_eq!(old, positions(1..=old.len()).map(Applied::Applied).collect::<Vec<_>>());
    let redelivered = positions(1..=old.len()).map(Applied::AlreadyApplied);
    assert_eq!(new, redelivered.chain(positions(old.len() + 1..=old.len() + 20).map(Applied::Applied)).collect::<Vec<_>>());
}

#[tokio::test]
async fn pipelines_that_share_a_file_take_turns() {
    let files = Arc::new(Files::new());
    let work = |name: &'static str| {
        let files = files.clone();
        tokio::spawn(async move {
            let destination = files.destination();
            let mut owner = owner(1);
            owner.pipeline = name.to_owned();
            destination.provision(&owner).await.unwrap();
            for position in 1..=50 {
                destination.apply(&owner, &[transaction(position, &[upsert("public.a", &position.to_string(), "{}")])]).await.unwrap();
            }
        })
    };
    for worker in [work("one"), work("two"), work("three")] {
        worker.await.unwrap();
    }
    assert_eq!(files.count(), 150);
}

#[tokio::test]
async fn a_call_that_is_given_up_still_ends_and_the_next_one_knows_its_effect() {
    let files = Files::new();
    let destination = files.destination();
    destination.provision(&owner(1)).await.unwrap();
    {
        let run = [transfer(5)];
        let owner = owner(1);
        let mut call = destination.apply(&owner, &run);
        let waker = std::task::Waker::noop();
        assert!(call.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending());
    }
    let answers = destination.apply(&owner(1), &[transfer(5)]).await.unwrap();
    assert_eq!(answers[0].position(), CommitPosition::new(5));
    assert_eq!(files.count(), 2);
}

const CHILD: &str = "TIDEGATE_SQLITE_CHILD";

/// Not a test by itself: the child of the next one, which applies transactions and tells each answer until it is killed.
#[tokio::test]
async fn the_child_that_writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let destination = tidegate_sqlite::SqliteDestination::new(tidegate_sqlite::Config { path: path.into() }).unwrap();
    let Provisioned::Ready { checkpoint, .. } = destination.provision(&owner(1)).await.unwrap() else { panic!("it is ours") };
    for position in checkpoint.map_or(0, CommitPosition::offset) + 1.. {
        destination.apply(&owner(1), &[transfer(position)]).await.unwrap();
        println!("\nanswered {position}");
    }
}

#[tokio::test]
async fn a_process_that_is_killed_leaves_whole_transactions_and_every_one_that_it_was_answered() {
    let files = Files::new();
    for round in 1..=8 {
        let mut child = bound_command(std::env::current_exe().unwrap(), "KILL", None)
            .args(["--exact", "crashes::the_child_that_writes_until_it_is_killed", "--nocapture"])
            .env(CHILD, files.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut answers = lines.by_ref().filter_map(|line| line.strip_prefix("answered ").map(|text| text.parse::<u64>().unwrap()));
        let mut last = answers.by_ref().nth(round * 7).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        last = answers.last().unwrap_or(last);
        let read = "SELECT sum(document ->> '$.balance'), max(document ->> '$.balance') FROM documents";
        let (sum, newest): (i64, i64) = files.reader().query_row(read, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let Provisioned::Ready { checkpoint: Some(checkpoint), .. } = files.destination().provision(&owner(1)).await.unwrap() else {
            panic!("it is ours")
        };
        assert_eq!((sum, newest as u64), (0, checkpoint.offset()));
        assert!(checkpoint.offset() >= last, "answered {last}, found {checkpoint}");
    }
}
