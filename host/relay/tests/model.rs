//! Random work on one log, beside a reference that is a list.

use proptest::prelude::*;
use tidegate_api::Captured;
use tidegate_relay::power_cut::Survival;

use crate::support::*;

#[derive(Clone, Debug)]
enum Work {
    /// So many transactions, of so many rows, the last in so many parts.
    Append(u8, u8, u8),
    /// Parts whose connection is lost.
    Lost(u8),
    Idle,
    /// Sends again what came before.
    Redeliver(u8),
    /// Lends so many, acknowledges so many of them, drops the rest.
    Read(u8, u8),
    /// Goes back by so many transactions.
    Back(u8),
    /// Another lease.
    Acquire,
    /// The process is killed: the disk stays as it is.
    Kill,
    /// The power goes.
    Cut(u64),
    FailSync,
    Full(u16),
}

fn work() -> impl Strategy<Value = Work> {
    prop_oneof![
        6 => (1..5u8, 0..9u8, 0..5u8).prop_map(|(count, rows, parts)| Work::Append(count, rows, parts)),
        1 => (1..4u8).prop_map(Work::Lost),
        1 => Just(Work::Idle),
        1 => (1..6u8).prop_map(Work::Redeliver),
        5 => (1..6u8, 0..6u8).prop_map(|(lend, settle)| Work::Read(lend, settle)),
        1 => (1..5u8).prop_map(Work::Back),
        1 => Just(Work::Acquire),
        1 => Just(Work::Kill),
        2 => any::<u64>().prop_map(Work::Cut),
        1 => Just(Work::FailSync),
        1 => (0..3000u16).prop_map(Work::Full),
    ]
}

/// The reference: everything that is durable, in order; and where the group stands.
#[derive(Default)]
struct Reference {
    position: u64,
    items: Vec<Captured>,
    checkpoint: u64,
}

impl Reference {
    fn next(&mut self) -> u64 {
        self.position += 10;
        self.position
    }

    fn held(&self) -> Vec<Held> {
        held(&self.items)
    }
}

async fn run(works: Vec<Work>) {
    let mut place = Place::with(tidegate_relay::Options { keep: std::time::Duration::from_secs(1 << 30), ..options() });
    let mut log = place.log();
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    let mut reference = Reference::default();
    let mut full = false; // from then on what is consumed may be gone
    for work in works {
        match work {
            Work::Append(..) | Work::FailSync | Work::Full(_) => {
                let (count, rows, parts) = if let Work::Append(count, rows, parts) = work { (count, rows, parts) } else { (2, 3, 2) };
                let mut group = Vec::new();
                for _ in 1..count {
                    group.push(transaction(reference.next(), rows.into()));
                }
                group.extend(large(reference.next(), parts.into(), u32::from(rows) + 1, 50));
                match work {
                    Work::FailSync => place.disk.fail_syncs(1),
                    Work::Full(room) => {
                        full = true;
                        place.disk.set_capacity(Some(log.bytes() + u64::from(room)));
                    }
                    _ => {}
                }
                let head = log.head();
                let outcome = log.append(group.clone()).await;
                place.disk.set_capacity(None);
                place.disk.fail_syncs(0);
                if outcome.is_err() {
                    assert_eq!(log.head(), head);
                    log.append(group.clone()).await.unwrap();
                }
                reference.items.extend(group);
            }
            Work::Lost(parts) => {
                let mut lost = large(reference.next(), parts.into(), 3, 50);
                lost.pop();
                log.append(lost).await.unwrap();
                log.abandon_parts();
            }
            Work::Idle => {
                let position = reference.next();
                log.append(vec![idle(position)]).await.unwrap();
            }
            Work::Redeliver(count) => {
                let from = reference.items.len().saturating_sub(count.into());
                let again: Vec<Captured> =
                    reference.items[from..].iter().filter(|item| !matches!(item, Captured::Part(_))).cloned().collect();
                let whole =
                    again.into_iter().filter(|item| matches!(item, Captured::Commit { meta, chunk } if meta.changes == chunk.len() as u64));
                log.append(whole.collect()).await.unwrap();
            }
            Work::Read(lend, settle) => {
                let unread: Vec<Held> = reference.held().into_iter().filter(|(position, _)| *position > reference.checkpoint).collect();
                if unread.is_empty() {
                    continue;
                }
                let run = lease.next_run(lend.into(), 1 << 20).await.unwrap();
                let mut settle = settle;
                for (delivery, expected) in run.into_iter().zip(unread) {
                    let chunks = delivery.chunks().map(|chunk| chunk.unwrap().bytes().clone()).collect();
                    let position = delivery.meta().position;
                    assert_eq!((position.offset(), chunks), expected);
                    if settle > 0 {
                        settle -= 1;
                        reference.checkpoint = position.offset();
                        delivery.ack(position).map_err(|(_, error)| error).unwrap();
                    }
                }
            }
            Work::Back(count) => {
                let read = reference.held().into_iter().filter(|(position, _)| *position <= reference.checkpoint).rev();
                let to = read.map(|(position, _)| position).nth(count.into()).unwrap_or(0);
                match lease.seek(at(to)) {
                    Ok(()) => reference.checkpoint = to,
                    Err(error) => assert!(full && error.code().name == "relay-behind", "{error}"),
                }
            }
            Work::Acquire => {
                let before = lease.fence();
                lease = log.group("a").unwrap().acquire("test").unwrap();
                assert!(lease.fence() > before);
            }
            Work::Kill | Work::Cut(_) => {
                let killed = place.killed();
                if let Work::Cut(seed) = work {
                    killed.disk.cut();
                    killed.disk.restart(Survival::Some(seed));
                }
                drop((lease, log));
                let head = reference
                    .items
                    .iter()
                    .filter_map(|item| if let Captured::Commit { meta, .. } = item { Some(meta.position) } else { None })
                    .max();
                place = killed;
                log = place.log();
                assert!(Some(log.head()) >= head);
                lease = log.group("a").unwrap().acquire("test").unwrap();
                // Acknowledgements that were not written yet come again.
                assert!(lease.checkpoint().offset() <= reference.checkpoint);
                reference.checkpoint = lease.checkpoint().offset();
            }
        }
        assert_eq!(lease.checkpoint().offset(), reference.checkpoint);
    }
    if let Some((last, _)) = reference.held().last() {
        let from = if full { reference.checkpoint } else { 0 };
        lease.seek(at(from)).unwrap();
        let expected: Vec<Held> = reference.held().into_iter().filter(|(position, _)| *position > from).collect();
        if from < *last {
            assert_eq!(read_through(&mut lease, *last).await, expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_log_is_a_list(works in proptest::collection::vec(work(), 1..40)) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run(works));
    }
}
