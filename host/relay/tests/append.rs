use tidegate_api::Captured;
use tidegate_relay::RealDisk;

use crate::support::*;

#[tokio::test]
async fn what_was_appended_is_read_in_order_by_every_group() {
    let place = Place::new();
    let log = place.log();
    let (a, b) = (log.group("a").unwrap(), log.group("b").unwrap());
    let mut items = vec![transaction(10, 1), transaction(20, 3)];
    items.extend(large(30, 2, 4, 100));
    items.push(idle(35));
    items.push(transaction(40, 0));
    assert_eq!(log.append(items.clone()).await.unwrap(), at(40));
    assert_eq!((log.head(), durable(&log)), (at(40), 40));
    let expected = held(&items);
    assert_eq!(read_through(&mut a.acquire("test").unwrap(), 40).await, expected);
    let mut b = b.acquire("test").unwrap();
    assert_eq!(b.checkpoint(), at(0), "the acknowledgements of one group do not move another");
    assert_eq!(read_through(&mut b, 40).await, expected);
}

#[tokio::test]
async fn redelivery_after_a_restart_is_left_out() {
    let place = Place::new();
    let log = place.log();
    let group = log.group("a").unwrap();
    log.append(vec![transaction(10, 1), transaction(20, 1)]).await.unwrap();
    drop((group, log));
    let log = place.log();
    assert_eq!(durable(&log), 20);
    let mut again = vec![transaction(10, 1)];
    again.extend(large(20, 3, 2, 10)); // a redelivered transaction may come in other pieces
    again.push(transaction(30, 1));
    assert_eq!(log.append(again).await.unwrap(), at(30));
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    let expected = held(&[transaction(10, 1), transaction(20, 1), transaction(30, 1)]);
    assert_eq!(read_through(&mut lease, 30).await, expected);
}

#[tokio::test]
async fn nothing_moves_the_head_backwards() {
    let place = Place::new();
    let log = place.log();
    log.append(vec![transaction(41, 1)]).await.unwrap();
    for earlier in [transaction(21, 1), transaction(41, 1), idle(30)] {
        assert_eq!(log.append(vec![earlier]).await.unwrap(), at(41));
    }
    assert_eq!(log.append(Vec::new()).await.unwrap(), at(41));
    log.append(vec![transaction(50, 1)]).await.unwrap();
    drop(log);
    let log = place.log();
    assert_eq!(durable(&log), 50);
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    lease.seek(at(0)).unwrap();
    assert_eq!(read_through(&mut lease, 50).await, held(&[transaction(41, 1), transaction(50, 1)]));
}

#[tokio::test]
async fn parts_count_only_with_their_own_commit() {
    let place = Place::new();
    let log = place.log();
    let group = log.group("a").unwrap();
    let lost = large(10, 3, 2, 50);
    let head = log.append(lost[..2].to_vec()).await.unwrap();
    assert_eq!(head, at(0), "parts alone move nothing");
    log.abandon_parts(); // the source's connection was lost
    log.append(lost.clone()).await.unwrap();
    assert_eq!(read_through(&mut group.acquire("test").unwrap(), 10).await, held(&lost));
}

#[tokio::test]
async fn a_transaction_that_lacks_a_change_is_refused() {
    let place = Place::new();
    let log = place.log();
    let error = log.append(vec![commit(10, 3, chunk(10, 0, 2, 10))]).await.unwrap_err();
    assert!(!error.is_transient());
    assert_eq!((error.code().name, log.head()), ("protocol", at(0)));
    log.append(vec![transaction(10, 2)]).await.unwrap();
}

#[tokio::test]
async fn one_group_is_one_write_and_one_sync() {
    let place = Place::with(tidegate_relay::Options { segment_bytes: 1 << 20, ..options() });
    let log = place.log();
    log.append(vec![transaction(1, 1)]).await.unwrap();
    let before = place.disk.changes();
    log.append((2..200).map(|position| transaction(position, 2)).collect()).await.unwrap();
    assert_eq!(place.disk.changes() - before, 2);
}

#[tokio::test]
async fn a_reader_that_waits_is_woken_by_an_append() {
    let place = Place::new();
    let log = place.log();
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    let reader = tokio::spawn(async move { read_through(&mut lease, 20).await });
    for position in [10, 20] {
        tokio::task::yield_now().await;
        log.append(vec![transaction(position, 1)]).await.unwrap();
    }
    assert_eq!(reader.await.unwrap(), held(&[transaction(10, 1), transaction(20, 1)]));
}

#[tokio::test]
async fn on_the_real_disk_everything_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let relay = tidegate_relay::Relay::open(folder.path(), std::sync::Arc::new(RealDisk), options()).unwrap();
        relay.log(SOURCE).unwrap()
    };
    let log = open();
    log.begin_creation().unwrap();
    assert_eq!(log.resume(), tidegate_api::Resume::Interrupted);
    log.created(&identity()).unwrap();
    log.group("a").unwrap();
    let items: Vec<Captured> = (1..100).flat_map(|n| large(n * 10, (n % 3) as u32, 3, 60)).collect();
    for group in items.chunks(7) {
        log.append(group.to_vec()).await.unwrap();
    }
    drop(log);
    let log = open();
    assert_eq!(durable(&log), 990);
    assert_eq!(read_through(&mut log.group("a").unwrap().acquire("test").unwrap(), 990).await, held(&items));
    assert!(log.bytes() > 10_000);
}

#[tokio::test]
async fn a_source_that_is_reset_starts_from_nothing_and_its_old_leases_are_over() {
    let place = Place::new();
    let log = place.log();
    let group = log.group("a").unwrap();
    log.append((1..40).map(|position| transaction(position, 2)).collect()).await.unwrap();
    let mut old = group.acquire("old").unwrap();
    read_through(&mut old, 20).await;
    let bytes = log.bytes();
    log.forget().unwrap();
    assert!(bytes > 0 && log.bytes() == 0 && place.disk.files().is_empty());
    assert_eq!((log.head(), log.identity(), log.resume()), (at(0), None, tidegate_api::Resume::New));
    assert_eq!(refused(old.next_run(1, 1).await), "relay-reset");
    assert!(log.append(vec![transaction(50, 1)]).await.is_err(), "whose would it be?");
    let other = tidegate_api::SourceIdentity { epoch: "0/99".to_owned(), ..identity() };
    log.begin_creation().unwrap();
    log.created(&other).unwrap();
    log.append(vec![transaction(5, 1)]).await.unwrap();
    let mut lease = group.acquire("new").unwrap();
    assert!(lease.fence() > old.fence());
    assert_eq!(lease.checkpoint(), at(0));
    assert_eq!(read_through(&mut lease, 5).await, held(&[transaction(5, 1)]));
}

#[tokio::test]
async fn an_identity_is_never_replaced() {
    let place = Place::new();
    let log = place.log();
    let other = tidegate_api::SourceIdentity { timeline: 2, ..identity() };
    assert_eq!(refused(log.created(&other)), "source-identity");
    log.created(&identity()).unwrap();
    assert_eq!(refused(log.begin_creation()), "internal");
}
