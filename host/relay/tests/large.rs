use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_api::Captured;

use crate::support::*;

/// 64 MiB in parts of 1 MiB, over small segments: nobody holds them together, neither on the way in nor out.
#[tokio::test]
async fn a_transaction_larger_than_any_buffer_passes_in_parts() {
    let place = Place::with(tidegate_relay::Options { segment_bytes: 8 << 20, ..options() });
    let log = place.log();
    let group = log.group("a").unwrap();
    log.append(vec![transaction(10, 1)]).await.unwrap();
    const PARTS: u32 = 64;
    let part = |number: u32| chunk(20, number * 256, 256, 4096);
    let mut changes = 0;
    let mut bytes = 0;
    for number in 0..PARTS {
        let part = part(number);
        changes += part.len() as u64;
        bytes += part.bytes().len() as u64;
        log.append(vec![Captured::Part(part)]).await.unwrap();
    }
    assert_eq!(log.head(), at(10));
    log.append(vec![commit(20, changes, tidegate_api::Chunk::empty()), transaction(30, 1)]).await.unwrap();
    assert!(place.sequences().len() > 5);
    drop((log, group));

    let log = place.log();
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    let run = lease.next_run(9, 1 << 20).await.unwrap();
    assert_eq!(run.len(), 1, "the large one does not fit into the run");
    drop(run.into_iter().map(|delivery| delivery.ack(at(10)).unwrap()).collect::<Vec<_>>());
    let run = lease.next_run(9, 1 << 20).await.unwrap();
    assert_eq!((run.len(), run[0].meta().changes, run[0].bytes()), (1, changes, bytes));
    for _ in 0..2 {
        let mut number = 0;
        for chunk in run[0].chunks() {
            let chunk = chunk.unwrap();
            if number < PARTS {
                assert_eq!(chunk, part(number));
            }
            number += 1;
        }
        assert_eq!(number, PARTS + 1, "the parts, and an empty last chunk");
    }
}

/// Counts what is alive at the same time, by counting reads: a read of the whole would be larger than the largest record.
#[derive(Debug)]
struct Watched(tidegate_relay::power_cut::PowerCutDisk, Arc<AtomicU64>);

#[derive(Debug)]
struct WatchedFile(Box<dyn tidegate_relay::DiskFile>, Arc<AtomicU64>);

impl tidegate_relay::Disk for Watched {
    fn make_folder(&self, folder: &std::path::Path) -> std::io::Result<()> {
        self.0.make_folder(folder)
    }
    fn list(&self, folder: &std::path::Path) -> std::io::Result<Vec<String>> {
        self.0.list(folder)
    }
    fn create(&self, path: &std::path::Path) -> std::io::Result<Box<dyn tidegate_relay::DiskFile>> {
        Ok(Box::new(WatchedFile(self.0.create(path)?, Arc::clone(&self.1))))
    }
    fn open(&self, path: &std::path::Path) -> std::io::Result<Box<dyn tidegate_relay::DiskFile>> {
        Ok(Box::new(WatchedFile(self.0.open(path)?, Arc::clone(&self.1))))
    }
    fn remove(&self, path: &std::path::Path) -> std::io::Result<()> {
        self.0.remove(path)
    }
    fn sync_folder(&self, folder: &std::path::Path) -> std::io::Result<()> {
        self.0.sync_folder(folder)
    }
}

impl tidegate_relay::DiskFile for WatchedFile {
    fn size(&self) -> std::io::Result<u64> {
        self.0.size()
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
        self.1.fetch_max(buffer.len() as u64, Ordering::Relaxed);
        self.0.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> std::io::Result<()> {
        self.1.fetch_max(bytes.len() as u64, Ordering::Relaxed);
        self.0.write_at(bytes, offset)
    }
    fn cut(&self, length: u64) -> std::io::Result<()> {
        self.0.cut(length)
    }
    fn sync(&self) -> std::io::Result<()> {
        self.0.sync()
    }
}

#[tokio::test]
async fn no_buffer_grows_with_a_group_or_a_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let largest = Arc::new(AtomicU64::new(0));
    let disk = Arc::new(Watched(tidegate_relay::power_cut::PowerCutDisk::new(), Arc::clone(&largest)));
    let options = tidegate_relay::Options { segment_bytes: 64 << 20, ..options() };
    let log = tidegate_relay::Relay::open(folder.path(), disk, options).unwrap().log(SOURCE).unwrap();
    log.begin_creation().unwrap();
    log.created(&identity()).unwrap();
    let group = log.group("a").unwrap();
    let whole = large(10, 39, 256, 4096);
    log.append(whole.clone()).await.unwrap(); // 40 MiB in one group
    let mut lease = group.acquire("test").unwrap();
    assert_eq!(read_through(&mut lease, 10).await, held(&whole));
    let largest = largest.load(Ordering::Relaxed);
    assert!(largest < 10 << 20, "{largest}");
}
