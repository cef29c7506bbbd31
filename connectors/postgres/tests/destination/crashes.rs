//! Servers, sessions and workers that end, or overlap, at the wrong moment.

use tidegate_api::{Applied, CommitPosition, Destination, Provisioned, code};
use tidegate_testkit::wait::until;
use tidegate_testkit::{Postgres, Version};

use super::harness::{Server, owner, transfer};

/// Asks again until the answer is no transient error.
async fn persist(destination: &dyn Destination, position: u64) -> Vec<Applied> {
    until("the destination answers", || async {
        match destination.apply(&owner(1), &[transfer(position)]).await {
            Ok(answers) => Some(answers),
            Err(error) => {
                assert!(error.is_transient(), "{error}");
                None
            }
        }
    })
    .await
}

async fn is_whole(server: &Server<'_>, position: u64) {
    let sum = "SELECT sum((document::json ->> 'balance')::bigint) || ' at ' || max((document::json ->> 'balance')::bigint) FROM tidegate.documents";
    assert_eq!(server.value(sum).await, format!("0 at {position}"));
    let expected = CommitPosition::new(position).to_string();
    assert_eq!(server.value("SELECT checkpoint FROM tidegate.pipelines").await, expected);
}

#[tokio::test]
async fn a_server_that_restarts_is_away_for_a_moment_and_nothing_is_lost() {
    let cluster = Postgres::start(Version::V15);
    let server = Server::on(&cluster).await;
    let destination = server.destination();
    destination.provision(&owner(1)).await.unwrap();
    destination.apply(&owner(1), &[transfer(1)]).await.unwrap();
    cluster.stop();
    let error = destination.apply(&owner(1), &[transfer(2)]).await.unwrap_err();
    assert_eq!(error.code(), &code::DESTINATION_UNREACHABLE, "{error}");
    assert!(error.is_transient());
    cluster.start_again();
    assert_eq!(persist(&destination, 2).await, [Applied::Applied(CommitPosition::new(2))]);
    is_whole(&server, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_under_load_holds_whole_transactions_up_to_its_checkpoint() {
    let cluster = Postgres::start(Version::V15);
    let server = Server::on(&cluster).await;
    let destination = server.destination();
    destination.provision(&owner(1)).await.unwrap();
    let mut position = 0;
    for _ in 0..3 {
        let first = position;
        let load = async {
            loop {
                position += 1;
                if destination.apply(&owner(1), &[transfer(position)]).await.is_err() {
                    return;
                }
            }
        };
        let killer = async {
            until("some transactions are there", || async {
                let found = server.value("SELECT coalesce(max(checkpoint), '0/0') FROM tidegate.pipelines").await;
                (found.parse::<CommitPosition>().unwrap().offset() > first + 20).then_some(())
            })
            .await;
            tokio::task::block_in_place(|| cluster.kill());
        };
        tokio::join!(load, killer);
        tokio::task::block_in_place(|| cluster.start_again());
        // The answer to the last one was lost: it is there whole, or not at all.
        let answers = persist(&destination, position).await;
        assert_eq!(answers[0].position(), CommitPosition::new(position));
        is_whole(&server, position).await;
    }
}

#[tokio::test]
async fn a_session_that_is_cut_in_the_middle_of_its_transaction_leaves_nothing() {
    let server = Server::shared(Version::V15).await;
    let destination = server.destination();
    destination.provision(&owner(1)).await.unwrap();
    destination.apply(&owner(1), &[transfer(1)]).await.unwrap();
    let blocker = server.server.connect(&server.database).await;
    blocker.batch_execute("BEGIN; LOCK TABLE tidegate.documents IN EXCLUSIVE MODE").await.unwrap();
    let owner = owner(1);
    let run = [transfer(2)];
    let cut = async {
        let waiting = "SELECT coalesce(max(pg_terminate_backend(pid)::int), 0) FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name = 'tidegate'";
        until("the session waits and is cut", || async { (server.value(waiting).await == "1").then_some(()) }).await;
    };
    let (answer, ()) = tokio::join!(destination.apply(&owner, &run), cut);
    let error = answer.unwrap_err();
    assert!(error.is_transient(), "{error}");
    is_whole(&server, 1).await;
    blocker.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(destination.apply(&owner, &run).await.unwrap(), [Applied::Applied(CommitPosition::new(2))]);
    is_whole(&server, 2).await;
}

#[tokio::test]
async fn a_call_that_is_given_up_gives_its_locks_back() {
    let server = Server::shared(Version::V15).await;
    let destination = server.destination();
    destination.provision(&owner(1)).await.unwrap();
    destination.apply(&owner(1), &[transfer(1)]).await.unwrap();
    let blocker = server.server.connect(&server.database).await;
    blocker.batch_execute("BEGIN; LOCK TABLE tidegate.documents IN EXCLUSIVE MODE").await.unwrap();
    {
        let (owner, run) = (owner(1), [transfer(2)]);
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let seen = until("the session waits", || async { (server.value(waiting).await == "1").then_some(()) });
        tokio::select! {
            answer = destination.apply(&owner, &run) => panic!("{answer:?}"),
            () = seen => {}
        }
    }
    blocker.batch_execute("ROLLBACK").await.unwrap();
    persist(&destination, 2).await;
    is_whole(&server, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_workers_at_once_the_one_with_the_higher_fence_writes() {
    let server = Server::shared(Version::V15).await;
    let destination = server.destination();
    destination.provision(&owner(1)).await.unwrap();
    let old = tokio::spawn(async move {
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
    });
    until("the old worker has written", || async { (server.count().await > 0).then_some(()) }).await;
    let destination = server.destination();
    let Provisioned::Ready { checkpoint: Some(checkpoint), .. } = destination.provision(&owner(2)).await.unwrap() else {
        panic!("the pipeline is there");
    };
    let old = old.await.unwrap();
    // What the old worker was answered is there, and nothing of it came after the new one.
    let positions = |range: std::ops::RangeInclusive<u64>| range.map(CommitPosition::new);
    assert_eq!(old, positions(1..=checkpoint.offset()).map(Applied::Applied).collect::<Vec<_>>());
    let next = checkpoint.offset() + 1;
    assert_eq!(destination.apply(&owner(2), &[transfer(next)]).await.unwrap(), [Applied::Applied(CommitPosition::new(next))]);
    is_whole(&server, next).await;
}
