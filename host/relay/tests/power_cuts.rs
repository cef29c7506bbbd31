//! The power goes at every single change of a scenario, with every kind of survival. Afterwards every position that was
//! reported durable is there, nothing is invented, and the source's redelivery completes the log without a gap or a twin.

use tidegate_api::Captured;
use tidegate_relay::power_cut::Survival;

use crate::support::*;

/// What the source has: each inner list is handed over at once.
fn history() -> Vec<Vec<Captured>> {
    let mut groups = vec![vec![transaction(10, 1)], vec![transaction(20, 9), transaction(30, 1), idle(35)]];
    let whole = large(40, 5, 6, 120);
    groups.push(whole[..2].to_vec());
    groups.push(whole[2..4].to_vec());
    groups.push([whole[4..].to_vec(), vec![transaction(50, 0)]].concat());
    groups.push(vec![idle(55)]);
    groups.push((60..75).map(|position| transaction(position, 2)).collect());
    groups.push(large(80, 1, 1, 3000));
    groups.push(vec![transaction(90, 4)]);
    groups
}

fn position(item: &Captured) -> u64 {
    match item {
        Captured::Part(_) => 0,
        Captured::Commit { meta, .. } => meta.position.offset(),
        Captured::Idle { position } => position.offset(),
    }
}

/// What the source sends to somebody who holds everything up to `durable`: whole transactions.
fn behind(history: &[Vec<Captured>], durable: u64) -> Vec<Vec<Captured>> {
    let mut groups = Vec::new();
    let mut wanted = false;
    for group in history.iter().rev() {
        let mut sent = Vec::new();
        for item in group.iter().rev() {
            if !matches!(item, Captured::Part(_)) {
                wanted = position(item) > durable;
            }
            if wanted {
                sent.insert(0, item.clone());
            }
        }
        groups.insert(0, sent);
    }
    groups
}

/// Appends what the source has until the power goes, reading and acknowledging on the way; gives the last position that was
/// reported durable, and the last that was acknowledged.
async fn live(place: &Place, history: &[Vec<Captured>]) -> (u64, u64) {
    let (mut reported, mut acknowledged) = (0, 0);
    let Ok(log) = place.try_log() else { return (reported, acknowledged) };
    reported = durable(&log);
    let Ok(group) = log.group("a") else { return (reported, acknowledged) };
    log.abandon_parts();
    for (number, captured) in behind(history, reported).into_iter().enumerate() {
        let Ok(head) = log.append(captured).await else { break };
        assert!(head.offset() >= reported);
        reported = head.offset();
        let mut lease = group.acquire("test").unwrap();
        let unread = history
            .iter()
            .flatten()
            .any(|item| matches!(item, Captured::Commit { .. }) && (lease.checkpoint().offset() + 1..=reported).contains(&position(item)));
        if number % 3 == 1 && unread {
            match lease.next_run(4, 1 << 20).await {
                Ok(run) => {
                    for delivery in run {
                        let own = delivery.meta().position;
                        assert!(own.offset() <= reported, "nothing is lent before it is durable");
                        delivery.ack(own).unwrap();
                        acknowledged = own.offset();
                    }
                }
                Err(error) => assert_eq!(error.code().name, "relay-read", "{error}"),
            }
        }
        drop(lease); // writes the checkpoint
        if number % 3 == 2 && log.retain().is_err() {
            break;
        }
    }
    (reported, acknowledged)
}

/// After the power came back: nothing that was promised is missing, and the rest of the way leads to the whole history.
async fn check(place: &Place, history: &[Vec<Captured>], reported: u64, acknowledged: u64) {
    // Invariant 1: what was reported as durable is there. Invariant 3: what was acknowledged does not come again.
    let log = place.log();
    let head = durable(&log);
    assert!(head >= reported, "{head} is durable, {reported} was reported");
    assert!(head == 0 || history.iter().flatten().any(|item| position(item) == head), "{head} was never captured");
    log.abandon_parts();
    for captured in behind(history, head) {
        log.append(captured).await.unwrap();
    }
    assert_eq!(durable(&log), 90);
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    let from = lease.checkpoint().offset();
    assert!(from == acknowledged, "{from} is the checkpoint, {acknowledged} was acknowledged");
    let all: Vec<Captured> = history.iter().flatten().cloned().collect();
    let expected: Vec<Held> = held(&all).into_iter().filter(|(position, _)| *position > from).collect();
    if !expected.is_empty() {
        assert_eq!(read_through(&mut lease, 90).await, expected);
    }
}

const SURVIVALS: [Survival; 5] =
    [Survival::Nothing, Survival::Everything, Survival::Some(11), Survival::Some(0x9e37), Survival::Some(0xc0ffee)];

#[tokio::test]
async fn at_every_change_and_in_every_way() {
    let history = history();
    let whole = Place::new();
    whole.log().group("a").unwrap();
    let first = whole.disk.changes();
    live(&whole, &history).await;
    let changes = whole.disk.changes();
    assert!(changes - first > 30, "the scenario is long enough: {changes}");
    for change in first..changes {
        for survival in SURVIVALS {
            let place = Place::new();
            place.log().group("a").unwrap();
            place.disk.cut_at(change);
            let (reported, acknowledged) = live(&place, &history).await;
            assert!(place.disk.is_dark(), "change {change} of {changes}");
            place.disk.restart(survival);
            println!("the power went at change {change}, {survival:?} survived");
            check(&place, &history, reported, acknowledged).await;
        }
    }
}

#[tokio::test]
async fn again_while_the_log_is_coming_back() {
    let history = history();
    for change in (6..60).step_by(7) {
        for seed in 1..4 {
            for second in 0..25 {
                let place = Place::new();
                place.log().group("a").unwrap();
                place.disk.cut_at(change);
                let (reported, before) = live(&place, &history).await;
                place.disk.restart(Survival::Some(seed));
                place.disk.cut_at(place.disk.changes() + second);
                let (again, acknowledged) = live(&place, &history).await;
                place.disk.restart(Survival::Some(seed * 77));
                println!("the power went at change {change}, then {second} later, seed {seed}");
                check(&place, &history, reported.max(again), before.max(acknowledged)).await;
            }
        }
    }
}

#[tokio::test]
async fn when_a_sync_had_failed_before() {
    let history = history();
    for failing in 0..12 {
        for survival in SURVIVALS {
            let place = Place::new();
            let log = place.log();
            let _group = log.group("a").unwrap();
            let mut reported = 0;
            let mut sync = 0;
            let mut groups = behind(&history, 0).into_iter();
            while let Some(captured) = groups.next() {
                if sync == failing {
                    place.disk.fail_syncs(1);
                }
                sync += 1;
                match log.append(captured).await {
                    Ok(head) => reported = head.offset(),
                    // The source comes again from what is durable.
                    Err(_) => groups = behind(&history, durable(&log)).into_iter(),
                }
                place.disk.fail_syncs(0);
            }
            place.disk.cut();
            drop(log);
            place.disk.restart(survival);
            assert_eq!(reported, 90);
            check(&place, &history, reported, 0).await;
        }
    }
}
