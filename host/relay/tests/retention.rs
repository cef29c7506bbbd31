use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tidegate_relay::Options;

use crate::support::*;

/// Appends one transaction of some hundred bytes at each of these positions.
async fn fill(log: &tidegate_relay::Log, positions: std::ops::RangeInclusive<u64>) {
    for position in positions {
        log.append(vec![transaction(position, 3)]).await.unwrap();
    }
}

#[tokio::test]
async fn a_segment_goes_when_every_group_has_passed_it() {
    let place = Place::new();
    let log = place.log();
    let (fast, slow) = (log.group("fast").unwrap(), log.group("slow").unwrap());
    fill(&log, 1..=60).await;
    let all = place.sequences();
    read_through(&mut fast.acquire("test").unwrap(), 60).await;
    log.retain().unwrap();
    assert_eq!(place.sequences(), all, "the slow group needs them");
    read_through(&mut slow.acquire("test").unwrap(), 30).await;
    log.retain().unwrap();
    let left = place.sequences();
    assert!(left.len() < all.len() && left.last() == all.last());
    let mut slow = slow.acquire("test").unwrap();
    let rest: Vec<_> = (31..=60).flat_map(|position| held(&[transaction(position, 3)])).collect();
    assert_eq!(read_through(&mut slow, 60).await, rest);
    assert_eq!(refused(slow.seek(at(1))), "relay-behind", "that is gone");
    assert_eq!(slow.checkpoint(), at(60));
}

#[tokio::test]
async fn without_groups_nothing_goes_before_the_limit() {
    let place = Place::with(Options { max_bytes: 20_000, ..options() });
    let log = place.log();
    fill(&log, 1..=20).await;
    log.retain().unwrap();
    assert_eq!(place.sequences()[0], 1);
    fill(&log, 21..=200).await;
    assert!(place.sequences()[0] > 1 && log.bytes() <= 20_000);
    assert_eq!(log.head(), at(200));
}

#[tokio::test]
async fn a_full_relay_stops_the_capture_and_loses_nothing_of_a_slow_group() {
    let place = Place::with(Options { max_bytes: 20_000, ..options() });
    let log = place.log();
    let group = log.group("slow").unwrap();
    let mut head = 0;
    let error = loop {
        match log.append(vec![transaction(head + 1, 3)]).await {
            Ok(_) => head += 1,
            Err(error) => break error,
        }
    };
    assert!(error.is_transient() && error.code().name == "relay-full", "{error}");
    assert!(error.context().any(|(name, value)| name == "slowest_group" && value == "slow"), "{error}");
    assert!(head > 20 && log.head() == at(head) && log.bytes() <= 20_000);
    let mut lease = group.acquire("test").unwrap();
    let before: Vec<_> = (1..=head).flat_map(|position| held(&[transaction(position, 3)])).collect();
    assert_eq!(read_through(&mut lease, head).await, before);
    log.append(vec![transaction(head + 1, 3)]).await.unwrap();
    assert_eq!(read_through(&mut lease, head + 1).await.len(), 1);
}

#[tokio::test]
async fn what_is_consumed_is_kept_for_a_while() {
    let minutes = Arc::new(AtomicU64::new(1_000_000));
    let clock = Arc::clone(&minutes);
    let clock: tidegate_relay::Clock = Arc::new(move || SystemTime::UNIX_EPOCH + Duration::from_secs(60 * clock.load(Ordering::Relaxed)));
    let place = Place::with(Options { keep: Duration::from_secs(3600), clock, ..options() });
    let log = place.log();
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    fill(&log, 1..=30).await;
    read_through(&mut lease, 30).await;
    drop(lease);
    let all = place.sequences();
    minutes.fetch_add(59, Ordering::Relaxed);
    log.retain().unwrap();
    assert_eq!(place.sequences(), all);
    minutes.fetch_add(2, Ordering::Relaxed);
    log.retain().unwrap();
    assert_eq!(place.sequences(), all[all.len() - 1..]);
}

#[tokio::test]
async fn the_parts_of_a_transaction_stay_until_it_was_acknowledged() {
    let place = Place::new();
    let log = place.log();
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    fill(&log, 1..=10).await;
    read_through(&mut lease, 10).await;
    let whole = large(20, 8, 4, 300); // a segment or more for each part
    for part in &whole[..8] {
        log.append(vec![part.clone()]).await.unwrap();
        drop(lease);
        log.retain().unwrap();
        lease = log.group("a").unwrap().acquire("test").unwrap();
    }
    log.append(whole[8..].to_vec()).await.unwrap();
    fill(&log, 21..=40).await;
    log.retain().unwrap();
    assert_eq!(lease.checkpoint(), at(10));
    assert_eq!(read_through(&mut lease, 20).await, held(&whole));
    drop(lease);
    log.retain().unwrap();
    // Set back to before it: its first parts are gone by now.
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    assert_eq!(refused(lease.seek(at(10))), "relay-behind");
}

#[tokio::test]
async fn a_transaction_that_never_fits_is_refused_and_its_parts_are_given_back() {
    let place = Place::with(Options { max_bytes: 30_000, ..options() });
    let log = place.log();
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    fill(&log, 1..=3).await;
    read_through(&mut lease, 3).await;
    let before = log.bytes();
    let mut refused = None;
    for part in large(20, 40, 4, 300) {
        if let Err(error) = log.append(vec![part]).await {
            refused = Some(error);
            break;
        }
    }
    assert_eq!(refused.unwrap().code().name, "relay-full");
    assert!(log.bytes() <= before, "{} bytes of parts stay", log.bytes());
    // The source comes again with something smaller.
    log.abandon_parts();
    for position in 21..=60 {
        log.append(vec![transaction(position, 3)]).await.unwrap();
        read_through(&mut lease, position).await;
    }
}
