//! Known ways in which files go bad, each by name: what is before it stays readable, nothing wrong is ever lent.

use std::sync::Arc;

use tidegate_api::CommitPosition;
use tidegate_relay::Log;

use crate::support::*;

const LAST: u64 = 60;

/// Transactions 1 to 60, one append each, over several segments; closed.
async fn filled() -> Place {
    let place = Place::new();
    let log = place.log();
    log.group("a").unwrap();
    for position in 1..=LAST {
        log.append(vec![transaction(position, 1)]).await.unwrap();
    }
    assert!(place.sequences().len() > 3);
    place
}

/// The start of the n-th record of a segment's bytes.
fn record(bytes: &[u8], number: usize) -> usize {
    let mut offset = 104;
    for _ in 0..number {
        offset += 8 + u32::from_le_bytes(bytes[offset + 4..offset + 8].try_into().unwrap()) as usize;
    }
    offset
}

fn records(bytes: &[u8]) -> usize {
    (0..).find(|number| record(bytes, *number) >= bytes.len()).unwrap()
}

/// Reads group `a` to the end or to the error, which must name the last whole position.
async fn readable(log: &Arc<Log>) -> u64 {
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    let mut last = 0;
    while last < LAST {
        match lease.next_run(4, 1 << 20).await {
            Ok(run) => {
                for delivery in run {
                    let position = delivery.meta().position.offset();
                    assert_eq!(position, last + 1, "nothing is left out");
                    let whole = delivery.chunks().map(|chunk| chunk.map(|chunk| chunk.bytes().clone())).collect::<Result<Vec<_>, _>>();
                    assert_eq!(vec![(position, whole.unwrap())], held(&[transaction(position, 1)]));
                    delivery.ack(CommitPosition::new(position)).unwrap();
                    last = position;
                }
            }
            Err(error) => {
                assert_eq!(error.code().name, "relay-corrupt", "{error}");
                assert!(error.context().any(|(name, value)| name == "after_position" && value == at(last).to_string()), "{error}");
                assert_eq!(refused(lease.next_run(4, 1 << 20).await), "relay-corrupt", "it stays so");
                return last;
            }
        }
    }
    last
}

#[tokio::test]
async fn a_flipped_bit_in_a_closed_segment_stops_the_groups_there_and_nowhere_else() {
    let place = filled().await;
    let mut stopped = 0;
    place.disk.corrupt(&place.segment(2), |bytes| {
        let at = record(bytes, 3) + 60;
        bytes[at] ^= 4;
    });
    let log = place.log();
    assert_eq!(durable(&log), LAST, "the source goes on");
    stopped += readable(&log).await;
    assert!(stopped > 3 && stopped < LAST);
    // Whoever has passed it, or starts behind it, is not concerned.
    log.append(vec![transaction(LAST + 1, 1)]).await.unwrap();
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    lease.seek(at(stopped + 2)).unwrap();
    assert_eq!(read_through(&mut lease, LAST + 1).await.first().unwrap().0, stopped + 3);
}

#[tokio::test]
async fn a_flipped_bit_in_the_last_segment_is_damage_where_a_later_record_proves_that_it_was_durable() {
    let place = filled().await;
    let last = *place.sequences().last().unwrap();
    place.disk.corrupt(&place.segment(last), |bytes| {
        let at = record(bytes, 1) + 30;
        bytes[at] ^= 1;
    });
    let log = place.log();
    assert_eq!(durable(&log), LAST, "it is not cut: it is no torn end");
    let stopped = readable(&log).await;
    assert!(stopped > 1 && stopped < LAST);
}

#[tokio::test]
async fn a_flipped_bit_in_the_last_record_is_taken_for_a_torn_end() {
    let place = filled().await;
    let last = *place.sequences().last().unwrap();
    place.disk.corrupt(&place.segment(last), |bytes| *bytes.last_mut().unwrap() ^= 1);
    let log = place.log();
    assert_eq!(durable(&log), LAST - 1, "the source is told, and knows whether it has confirmed more");
    let before: u64 = place.disk.files().iter().map(|(_, length)| length).sum();
    log.append(vec![transaction(LAST, 1)]).await.unwrap();
    assert_eq!(readable(&log).await, LAST);
    assert!(place.disk.files().iter().map(|(_, length)| length).sum::<u64>() < before + 300, "the torn end was cut");
}

#[tokio::test]
async fn a_commit_that_reads_as_a_part_or_a_watermark_is_noticed() {
    for kind in [1, 3, 0, 9] {
        let place = filled().await;
        place.disk.corrupt(&place.segment(2), |bytes| {
            let at = record(bytes, 3) + 20;
            assert_eq!(bytes[at], 2);
            bytes[at] = kind;
        });
        assert!(readable(&place.log()).await < LAST, "kind {kind}");
    }
}

#[tokio::test]
async fn a_damaged_commit_before_the_parts_of_the_next_transaction_is_not_passed_over() {
    let place = Place::with(tidegate_relay::Options { segment_bytes: 1 << 20, ..options() });
    let log = place.log();
    log.group("a").unwrap();
    log.append([vec![transaction(1, 1), transaction(2, 1)], large(3, 2, 1, 10), vec![transaction(4, 1)]].concat()).await.unwrap();
    log.append(vec![transaction(5, 1)]).await.unwrap();
    drop(log);
    place.disk.corrupt(&place.segment(1), |bytes| {
        let at = record(bytes, 1) + 70;
        bytes[at] ^= 1;
    });
    let log = place.log();
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    lease.seek(at(1)).unwrap();
    assert_eq!(refused(lease.next_run(1, 1).await), "relay-corrupt");
    lease.seek(at(2)).unwrap();
    assert_eq!(refused(lease.next_run(1, 1).await), "relay-corrupt", "who knows what is damaged there");
    lease.seek(at(3)).unwrap();
    assert_eq!(read_through(&mut lease, 5).await, held(&[transaction(4, 1), transaction(5, 1)]));
}

#[tokio::test]
async fn a_damaged_part_keeps_its_transaction_from_being_lent() {
    let place = Place::with(tidegate_relay::Options { segment_bytes: 1 << 20, ..options() });
    let log = place.log();
    log.group("a").unwrap();
    log.append([vec![transaction(1, 1)], large(2, 3, 2, 100)].concat()).await.unwrap();
    log.append(vec![transaction(3, 1)]).await.unwrap();
    drop(log);
    place.disk.corrupt(&place.segment(1), |bytes| {
        let at = record(bytes, 2) + 100;
        bytes[at] ^= 1;
    });
    let log = place.log();
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    let run = lease.next_run(9, 1 << 20).await.unwrap();
    assert_eq!(run.iter().map(|delivery| delivery.meta().position).collect::<Vec<_>>(), [at(1)]);
    drop(run);
    lease.seek(at(1)).unwrap();
    assert_eq!(refused(lease.next_run(9, 1 << 20).await), "relay-corrupt");
}

#[tokio::test]
async fn a_record_that_is_gone_from_the_middle_is_noticed() {
    for segment in [2, 0] {
        let place = filled().await;
        let segment = if segment == 0 { *place.sequences().last().unwrap() } else { segment };
        let mut lost = false;
        place.disk.corrupt(&place.segment(segment), |bytes| {
            let all = records(bytes);
            lost = all > 3;
            let (from, to) = (record(bytes, 1), record(bytes, 2));
            bytes.drain(from..to);
        });
        assert!(lost, "the segment had enough records");
        let log = place.log();
        assert!(readable(&log).await < LAST, "segment {segment}");
    }
}

#[tokio::test]
async fn a_record_that_stands_twice_is_noticed() {
    let place = filled().await;
    place.disk.corrupt(&place.segment(2), |bytes| {
        let (from, to) = (record(bytes, 1), record(bytes, 2));
        let twice = bytes[from..to].to_vec();
        bytes.splice(to..to, twice);
    });
    assert!(readable(&place.log()).await < LAST);
}

#[tokio::test]
async fn a_missing_segment_stops_the_groups_before_it() {
    let place = filled().await;
    place.disk.lose(&place.segment(3));
    let log = place.log();
    assert_eq!(durable(&log), LAST);
    let stopped = readable(&log).await;
    assert!(stopped > 5 && stopped < LAST);
}

#[tokio::test]
async fn a_missing_first_segment_leaves_the_groups_behind() {
    let place = filled().await;
    place.disk.lose(&place.segment(1));
    let log = place.log();
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    let error = lease.next_run(1, 1).await.unwrap_err();
    assert_eq!(error.code().name, "relay-behind");
    assert!(error.context().any(|(name, _)| name == "oldest"), "{error}");
    assert_eq!(refused(lease.seek(at(0)).and_then(|()| Err::<(), _>(error))), "relay-behind");
}

#[tokio::test]
async fn a_damaged_header_stops_the_groups_before_it() {
    let place = filled().await;
    place.disk.corrupt(&place.segment(2), |bytes| bytes[70] ^= 1);
    let log = place.log();
    assert_eq!(durable(&log), LAST);
    let stopped = readable(&log).await;
    assert!(stopped > 2 && stopped < LAST);
}

#[tokio::test]
async fn a_damaged_header_of_the_last_segment_leaves_a_log_that_goes_on() {
    let place = filled().await;
    let last = *place.sequences().last().unwrap();
    place.disk.corrupt(&place.segment(last), |bytes| bytes[70] ^= 1);
    let log = place.log();
    let head = durable(&log);
    assert!(head < LAST, "the source is told less, and knows whether it has confirmed more");
    log.append(((head + 1)..=LAST).map(|position| transaction(position, 1)).collect()).await.unwrap();
    assert_eq!(readable(&log).await, head, "what may have been in it is not passed over");
}

#[tokio::test]
async fn a_closed_segment_that_is_cut_short_stops_the_groups_there() {
    let place = filled().await;
    place.disk.corrupt(&place.segment(2), |bytes| bytes.truncate(bytes.len() - 7));
    let log = place.log();
    assert_eq!(durable(&log), LAST);
    assert!(readable(&log).await < LAST);
}

#[tokio::test]
async fn rubbish_behind_the_end_does_not_count() {
    for rubbish in [vec![0; 5], vec![0; 5000], vec![0xff; 300], b"\x00\x00\x00\x00\x40\x00\x00\x00".to_vec()] {
        let place = filled().await;
        let last = *place.sequences().last().unwrap();
        place.disk.corrupt(&place.segment(last), |bytes| bytes.extend_from_slice(&rubbish));
        place.disk.corrupt(&place.segment(2), |bytes| bytes.extend_from_slice(&rubbish));
        let log = place.log();
        assert_eq!(durable(&log), LAST);
        assert_eq!(readable(&log).await, LAST);
    }
}

#[tokio::test]
async fn a_file_that_was_about_to_become_a_segment_is_none() {
    for begun in [0, 50, 104] {
        let place = filled().await;
        let next = place.sequences().last().unwrap() + 1;
        place.disk.corrupt(&place.segment(next - 1), |_| {});
        let made = tidegate_relay::Disk::create(&place.disk, &place.segment(next)).unwrap();
        made.write_at(&vec![0; begun], 0).unwrap();
        let log = place.log();
        assert_eq!(durable(&log), LAST);
        log.append(vec![transaction(LAST + 1, 1)]).await.unwrap();
        assert_eq!(readable(&log).await, LAST);
    }
}

#[tokio::test]
async fn no_flipped_bit_of_a_segment_goes_unnoticed() {
    let pristine = filled().await;
    let length = pristine.disk.files().iter().find(|(path, _)| *path == pristine.segment(2)).unwrap().1 as usize;
    for place_of_bit in (0..length).step_by(7) {
        let mask = 1 << (place_of_bit % 8);
        pristine.disk.corrupt(&pristine.segment(2), |bytes| bytes[place_of_bit] ^= mask);
        let killed = pristine.killed();
        let log = killed.log();
        assert!(readable(&log).await < LAST, "byte {place_of_bit}");
        drop(log);
        pristine.disk.rename_folder(&killed.segments(), &pristine.segments());
        pristine.disk.corrupt(&pristine.segment(2), |bytes| bytes[place_of_bit] ^= mask);
    }
}

#[tokio::test]
async fn a_segment_of_another_source_is_refused() {
    let place = filled().await;
    place.disk.corrupt(&place.segment(2), |bytes| {
        bytes[40] ^= 1;
        let crc = crc32c::crc32c(&bytes[..100]);
        bytes[100..104].copy_from_slice(&crc.to_le_bytes());
    });
    assert_eq!(refused(place.try_log()), "relay-corrupt");
}

#[tokio::test]
async fn a_segment_of_a_later_format_is_refused() {
    let place = filled().await;
    place.disk.corrupt(&place.segment(2), |bytes| {
        bytes[8] = 2;
        let crc = crc32c::crc32c(&bytes[..100]);
        bytes[100..104].copy_from_slice(&crc.to_le_bytes());
    });
    assert_eq!(refused(place.try_log()), "relay-format");
}

#[tokio::test]
async fn segments_without_their_metadata_are_refused_and_stay() {
    let place = filled().await;
    let files = place.disk.files().len();
    let new = Place::new();
    let alone = Place { disk: place.disk.clone(), folder: new.folder, options: options() };
    alone.disk.rename_folder(&place.segments(), &alone.segments());
    assert_eq!(refused(alone.try_log()), "relay-metadata");
    assert_eq!(alone.disk.files().len(), files);
}
