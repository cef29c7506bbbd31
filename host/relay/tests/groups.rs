use tidegate_relay::Delivery;

use crate::support::*;

fn positions(run: &[Delivery]) -> Vec<u64> {
    run.iter().map(|delivery| delivery.meta().position.offset()).collect()
}

async fn filled(place: &Place, count: u64) -> std::sync::Arc<tidegate_relay::Log> {
    let log = place.log();
    log.group("a").unwrap();
    for position in 1..=count {
        log.append(vec![transaction(position * 10, 2)]).await.unwrap();
    }
    log
}

#[tokio::test]
async fn a_new_group_starts_at_the_head_and_an_old_one_where_it_was() {
    let place = Place::new();
    let log = filled(&place, 3).await;
    let late = log.group("late").unwrap().acquire("test").unwrap();
    assert_eq!((late.checkpoint(), late.lag_bytes()), (at(30), 0));
    assert_eq!(log.group("a").unwrap().acquire("test").unwrap().checkpoint(), at(0));
}

#[tokio::test]
async fn a_run_is_bounded_by_count_and_bytes_but_never_empty() {
    // Invariant 11
    let place = Place::new();
    let log = filled(&place, 10).await;
    let group = log.group("a").unwrap();
    let mut lease = group.acquire("test").unwrap();
    let one = held(&[transaction(10, 2)])[0].1[0].len() as u64;
    assert_eq!(positions(&lease.next_run(3, 1 << 20).await.unwrap()), [10, 20, 30]);
    assert_eq!(positions(&lease.next_run(9, 2 * one).await.unwrap()), [10, 20], "dropped deliveries are lent again");
    assert_eq!(positions(&lease.next_run(9, 1).await.unwrap()), [10]);
    assert_eq!(positions(&lease.next_run(0, 0).await.unwrap()), [10]);
}

#[tokio::test]
async fn a_dropped_delivery_is_lent_again_with_all_behind_it() {
    let place = Place::new();
    let log = filled(&place, 5).await;
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    let mut run = lease.next_run(4, 1 << 20).await.unwrap().into_iter();
    let (first, second, third) = (run.next().unwrap(), run.next().unwrap(), run.next().unwrap());
    first.ack(at(10)).unwrap();
    drop(second);
    let again = lease.next_run(2, 1 << 20).await.unwrap();
    assert_eq!(positions(&again), [20, 30]);
    let (third, error) = third.ack(at(30)).unwrap_err();
    assert_eq!(error.code().name, "internal", "it was lent again");
    drop(third);
    for (delivery, position) in again.into_iter().zip([20, 30]) {
        delivery.ack(at(position)).unwrap();
    }
    assert_eq!(lease.checkpoint(), at(30));
    assert_eq!(positions(&lease.next_run(9, 1 << 20).await.unwrap()), [40, 50]);
}

#[tokio::test]
async fn a_delivery_is_acknowledged_at_exactly_its_own_position_and_in_order() {
    let place = Place::new();
    let log = filled(&place, 3).await;
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    let mut run = lease.next_run(3, 1 << 20).await.unwrap().into_iter();
    let (first, second) = (run.next().unwrap(), run.next().unwrap());
    let mut first = first;
    for wrong in [0, 9, 11, 20, 30] {
        let (back, error) = first.ack(at(wrong)).unwrap_err();
        assert_eq!(error.code().name, "position-mismatch");
        first = back;
    }
    let (second, error) = second.ack(at(20)).unwrap_err();
    assert_eq!(error.code().name, "internal", "the first is still out");
    assert_eq!(lease.checkpoint(), at(0));
    first.ack(at(10)).unwrap();
    second.ack(at(20)).unwrap();
    assert_eq!(lease.checkpoint(), at(20));
}

#[tokio::test]
async fn a_lease_that_was_taken_over_reads_and_acknowledges_nothing() {
    let place = Place::new();
    let log = filled(&place, 3).await;
    let group = log.group("a").unwrap();
    let mut old = group.acquire("old").unwrap();
    let delivery = old.next_run(1, 1).await.unwrap().remove(0);
    let mut new = group.acquire("new").unwrap();
    assert!(new.fence() > old.fence());
    let (delivery, error) = delivery.ack(at(999)).unwrap_err();
    assert_eq!(error.code().name, "relay-fenced", "told before the wrong position");
    assert!(delivery.ack(at(10)).is_err());
    assert_eq!(refused(old.next_run(1, 1).await), "relay-fenced");
    assert_eq!(refused(old.seek(at(20))), "relay-fenced");
    assert_eq!(new.checkpoint(), at(0));
    let run = new.next_run(1, 1).await.unwrap();
    assert_eq!(positions(&run), [10]);
    drop(old);
    run.into_iter().next().unwrap().ack(at(10)).unwrap();
}

#[tokio::test]
async fn a_lease_from_before_a_reset_of_its_source_says_so() {
    let place = Place::new();
    let log = filled(&place, 3).await;
    log.append(large(40, 4, 2, 300)).await.unwrap();
    let mut waiting = log.group("waiting").unwrap().acquire("test").unwrap();
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    let mut run = lease.next_run(4, 1 << 20).await.unwrap();
    let (stored, delivery) = (run.remove(3), run.remove(0));
    let waiting = tokio::spawn(async move { refused(waiting.next_run(1, 1).await) });
    tokio::task::yield_now().await;
    log.forget().unwrap();
    assert_eq!(refused(stored.chunks().collect::<Result<Vec<_>, _>>()), "relay-reset", "its segments are gone");
    assert_eq!(delivery.ack(at(10)).unwrap_err().1.code().name, "relay-reset");
    assert_eq!(refused(lease.next_run(1, 1).await), "relay-reset");
    assert_eq!(waiting.await.unwrap(), "relay-reset");
}

#[tokio::test]
async fn a_checkpoint_is_told_once_something_was_read_for_the_group() {
    let place = Place::new();
    let log = filled(&place, 3).await;
    assert_eq!(log.checkpoint("nobody"), None);
    log.group("late").unwrap();
    assert_eq!(log.checkpoint("late"), None, "where a group begins is not where it is");
    read_through(&mut log.group("a").unwrap().acquire("test").unwrap(), 30).await;
    assert_eq!(log.checkpoint("a"), Some(at(30)));
    drop(log);
    assert_eq!(place.log().checkpoint("a"), Some(at(30)));
    place.log().forget().unwrap();
    assert_eq!(place.log().checkpoint("a"), None);
}

#[tokio::test]
async fn a_reader_that_waits_learns_that_its_lease_is_over() {
    let place = Place::new();
    let log = place.log();
    let group = log.group("a").unwrap();
    let mut old = group.acquire("old").unwrap();
    let waiting = tokio::spawn(async move { refused(old.next_run(1, 1).await) });
    tokio::task::yield_now().await;
    let _new = group.acquire("new").unwrap();
    assert_eq!(waiting.await.unwrap(), "relay-fenced");
}

#[tokio::test]
async fn fences_stay_grown_over_restarts_and_a_lost_folder() {
    let place = Place::new();
    let log = place.log();
    let first = log.group("a").unwrap().acquire("test").unwrap().fence();
    let second = log.group("a").unwrap().acquire("test").unwrap().fence();
    drop(log);
    let third = place.log().group("a").unwrap().acquire("test").unwrap().fence();
    assert!(first < second && second < third);
    let mut later = options();
    later.clock = std::sync::Arc::new(|| std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_001));
    let elsewhere = Place::with(later).log().group("a").unwrap().acquire("test").unwrap().fence();
    assert!(third < elsewhere);
}

#[tokio::test]
async fn a_checkpoint_is_written_when_the_lease_ends() {
    let place = Place::new();
    let log = filled(&place, 5).await;
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    read_through(&mut lease, 30).await;
    let unwritten = place.killed();
    assert_eq!(unwritten.log().group("a").unwrap().acquire("test").unwrap().checkpoint(), at(0), "acknowledgements may lag");
    place.disk.rename_folder(&unwritten.segments(), &place.segments());
    drop(lease);
    let written = place.killed();
    let mut lease = written.log().group("a").unwrap().acquire("test").unwrap();
    assert_eq!(lease.checkpoint(), at(30));
    assert_eq!(positions(&lease.next_run(9, 1 << 20).await.unwrap()), [40, 50]);
}

#[tokio::test]
async fn a_checkpoint_is_written_by_itself_after_a_while() {
    let place = Place::with(tidegate_relay::Options { checkpoint_every: std::time::Duration::from_millis(1), ..options() });
    let log = filled(&place, 9).await;
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    read_through(&mut lease, 90).await;
    // Segments that are consumed go only by written checkpoints: nobody else writes them here.
    while place.sequences().first() == Some(&1) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_lease_moves_on_to_a_snapshot_and_back_while_it_can() {
    let place = Place::new();
    let log = filled(&place, 5).await;
    let group = log.group("a").unwrap();
    let mut lease = group.acquire("test").unwrap();
    let out = lease.next_run(1, 1).await.unwrap().remove(0);
    lease.seek(at(25)).unwrap();
    assert!(out.ack(at(10)).is_err(), "it was given up by the move");
    assert_eq!(positions(&lease.next_run(1, 1).await.unwrap()), [30]);
    lease.seek(at(60)).unwrap();
    assert_eq!(lease.checkpoint(), at(60), "a snapshot may be ahead of what was captured");
    log.append(vec![transaction(60, 1), transaction(70, 1)]).await.unwrap();
    assert_eq!(positions(&lease.next_run(9, 1 << 20).await.unwrap()), [70]);
    lease.seek(at(40)).unwrap();
    assert_eq!(positions(&lease.next_run(9, 1 << 20).await.unwrap()), [50, 60, 70]);
    drop(lease);
    assert_eq!(group.acquire("test").unwrap().checkpoint(), at(40), "the move back is remembered");
}

#[tokio::test]
async fn lag_falls_to_nothing_as_a_group_catches_up() {
    let place = Place::new();
    let log = filled(&place, 5).await;
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    let all = lease.lag_bytes();
    read_through(&mut lease, 30).await;
    let some = lease.lag_bytes();
    read_through(&mut lease, 50).await;
    assert!(all > some && some > 0, "{all} {some}");
    assert_eq!(lease.lag_bytes(), 0);
}

#[tokio::test]
async fn a_read_that_its_caller_gave_up_loses_nothing() {
    let place = Place::new();
    let log = filled(&place, 30).await;
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    let mut seen = Vec::new();
    while seen.last() != Some(&300) {
        // Polled once: mostly the read goes on without its caller.
        let run = {
            let read = lease.next_run(4, 1 << 20);
            tokio::pin!(read);
            tokio::select! { biased; run = &mut read => Some(run.unwrap()), () = std::future::ready(()) => None }
        };
        let run = match run {
            Some(run) => run,
            None => lease.next_run(2, 1 << 20).await.unwrap(),
        };
        for delivery in run {
            let position = delivery.meta().position;
            seen.push(position.offset());
            delivery.ack(position).unwrap();
        }
    }
    assert_eq!(seen, (1..=30).map(|n| n * 10).collect::<Vec<u64>>());
}

#[tokio::test]
async fn a_group_that_was_removed_holds_nothing_and_its_lease_is_over() {
    let place = Place::new();
    let log = filled(&place, 3).await;
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    assert_eq!(log.groups().len(), 1);
    log.remove_group("a").unwrap();
    assert!(log.groups().is_empty());
    assert_eq!(refused(lease.next_run(1, 1).await), "relay-fenced");
    drop(lease);
    assert_eq!(log.group("a").unwrap().acquire("test").unwrap().checkpoint(), at(30));
}

/// Two processes on one folder, which must not be: the one that came later wins, the other stops.
#[tokio::test]
async fn a_checkpoint_that_another_process_has_taken_over_is_not_written() {
    let place = Place::with(tidegate_relay::Options { checkpoint_every: std::time::Duration::from_millis(1), ..options() });
    let log = filled(&place, 5).await;
    let mut first = log.group("a").unwrap().acquire("first").unwrap();
    let second = place.log().group("a").unwrap().acquire("second").unwrap();
    assert!(second.fence() > first.fence());
    let code = loop {
        match first.next_run(1, 1).await {
            Ok(run) => {
                let delivery = run.into_iter().next().unwrap();
                let position = delivery.meta().position;
                if let Err((_, error)) = delivery.ack(position) {
                    break error.code().name;
                }
                first.seek(at(0)).unwrap_or_else(|error| assert_eq!(error.code().name, "relay-fenced"));
            }
            Err(error) => break error.code().name,
        }
    };
    assert_eq!(code, "relay-fenced");
    drop(first);
    assert_eq!(place.killed().log().group("a").unwrap().acquire("test").unwrap().checkpoint(), at(0));
}
