use tidegate_api::code;
use tidegate_relay::power_cut::Survival;

use crate::support::*;

#[tokio::test]
async fn after_a_failed_sync_nothing_of_the_group_counts_and_the_segment_is_left_alone() {
    let place = Place::new();
    let log = place.log();
    let group = log.group("a").unwrap();
    log.append(vec![transaction(10, 1)]).await.unwrap();
    place.disk.fail_syncs(1);
    let error = log.append(vec![transaction(20, 1)]).await.unwrap_err();
    assert!(is(&error, &code::RELAY_WRITE) && error.is_transient(), "{error}");
    assert_eq!((log.head(), durable(&log)), (at(10), 10));
    log.append(vec![transaction(20, 2), transaction(30, 1)]).await.unwrap();
    assert_eq!(place.sequences(), [1, 2], "a segment whose sync failed is not synced again");
    place.disk.cut();
    place.disk.restart(Survival::Nothing);
    let expected = held(&[transaction(10, 1), transaction(20, 2), transaction(30, 1)]);
    drop((group, log));
    let log = place.log();
    assert_eq!(durable(&log), 30);
    assert_eq!(read_through(&mut log.group("a").unwrap().acquire("test").unwrap(), 30).await, expected);
}

#[tokio::test]
async fn a_segment_that_lost_durable_bytes_with_a_failed_sync_is_not_continued() {
    let place = Place::new();
    let log = place.log();
    log.append(vec![transaction(10, 1)]).await.unwrap();
    place.disk.fail_syncs(1);
    assert!(log.append(vec![transaction(20, 1)]).await.is_err());
    place.disk.corrupt(&place.segment(1), |bytes| *bytes.last_mut().unwrap() ^= 1);
    let error = log.append(vec![transaction(20, 1)]).await.unwrap_err();
    assert!(is(&error, &code::RELAY_CORRUPT) && !error.is_transient(), "{error}");
    assert_eq!(log.head(), at(10), "and the capture ends with it");
}

/// The bytes are still in the page cache, clean: the next process sees them and a sync of them succeeds without writing.
#[tokio::test]
async fn what_the_next_process_calls_durable_survives_even_if_the_sync_before_it_had_failed() {
    let place = Place::new();
    let log = place.log();
    log.group("a").unwrap();
    log.append(vec![transaction(10, 1)]).await.unwrap();
    let dead = tidegate_relay::power_cut::PowerCutDisk::clone(&place.disk);
    dead.fail_syncs(1);
    dead.fail_cuts(true); // killed before it could cut the file
    assert!(log.append(vec![transaction(20, 1)]).await.is_err());
    dead.fail_cuts(false);
    drop(log);
    let log = place.log();
    let said = durable(&log);
    place.disk.cut();
    place.disk.restart(Survival::Nothing);
    drop(log);
    assert_eq!(durable(&place.log()), said);
}

#[tokio::test]
async fn a_full_disk_acknowledges_nothing_and_goes_on_when_there_is_space() {
    let place = Place::new();
    let log = place.log();
    let group = log.group("a").unwrap();
    log.append(vec![transaction(10, 1)]).await.unwrap();
    let used = log.bytes();
    for room in [0, 10, 104, 105, 200, 300] {
        place.disk.set_capacity(Some(used + room));
        let error = log.append(vec![transaction(20, 9)]).await.unwrap_err();
        assert!(is(&error, &code::RELAY_WRITE) && error.is_transient(), "{error}");
        assert_eq!(log.head(), at(10));
        assert!(place.disk.files().iter().map(|(_, length)| length).sum::<u64>() <= used, "what does not count is given back");
    }
    assert!(place.sequences().len() <= 2, "failing does not pile up files");
    place.disk.set_capacity(None);
    log.append(vec![transaction(20, 9)]).await.unwrap();
    let expected = held(&[transaction(10, 1), transaction(20, 9)]);
    assert_eq!(read_through(&mut group.acquire("test").unwrap(), 20).await, expected);
    drop((group, log));
    assert_eq!(durable(&place.log()), 20);
}

#[tokio::test]
async fn a_full_disk_takes_what_is_kept_only_for_comfort() {
    let place = Place::with(tidegate_relay::Options { keep: std::time::Duration::from_secs(3600), ..options() });
    let log = place.log();
    let mut lease = log.group("a").unwrap().acquire("test").unwrap();
    for position in 1..40 {
        log.append(vec![transaction(position, 3)]).await.unwrap();
    }
    read_through(&mut lease, 39).await;
    drop(lease);
    place.disk.set_capacity(Some(log.bytes()));
    assert!(log.append(vec![transaction(40, 3)]).await.is_err());
    log.append(vec![transaction(40, 3)]).await.unwrap();
    assert_eq!(log.head(), at(40));
}

#[derive(Debug)]
struct Panics(tidegate_relay::power_cut::PowerCutDisk, std::sync::Arc<std::sync::atomic::AtomicBool>);

#[derive(Debug)]
struct PanicsFile(Box<dyn tidegate_relay::DiskFile>, std::sync::Arc<std::sync::atomic::AtomicBool>);

impl tidegate_relay::Disk for Panics {
    fn make_folder(&self, folder: &std::path::Path) -> std::io::Result<()> {
        self.0.make_folder(folder)
    }
    fn list(&self, folder: &std::path::Path) -> std::io::Result<Vec<String>> {
        self.0.list(folder)
    }
    fn create(&self, path: &std::path::Path) -> std::io::Result<Box<dyn tidegate_relay::DiskFile>> {
        Ok(Box::new(PanicsFile(self.0.create(path)?, self.1.clone())))
    }
    fn open(&self, path: &std::path::Path) -> std::io::Result<Box<dyn tidegate_relay::DiskFile>> {
        self.0.open(path)
    }
    fn remove(&self, path: &std::path::Path) -> std::io::Result<()> {
        self.0.remove(path)
    }
    fn sync_folder(&self, folder: &std::path::Path) -> std::io::Result<()> {
        self.0.sync_folder(folder)
    }
}

impl tidegate_relay::DiskFile for PanicsFile {
    fn size(&self) -> std::io::Result<u64> {
        self.0.size()
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
        self.0.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> std::io::Result<()> {
        self.0.write_at(bytes, offset)
    }
    fn cut(&self, length: u64) -> std::io::Result<()> {
        self.0.cut(length)
    }
    fn sync(&self) -> std::io::Result<()> {
        assert!(!self.1.swap(false, std::sync::atomic::Ordering::SeqCst), "the thread that syncs dies");
        self.0.sync()
    }
}

#[tokio::test]
async fn a_writer_that_died_in_the_middle_is_followed_by_one_that_trusts_nothing() {
    let place = Place::new();
    let armed = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let disk = std::sync::Arc::new(Panics(place.disk.clone(), armed.clone()));
    let log = tidegate_relay::Relay::open(place.folder.path(), disk, options()).unwrap().log(SOURCE).unwrap();
    log.begin_creation().unwrap();
    log.created(&identity()).unwrap();
    let group = log.group("a").unwrap();
    log.append(vec![transaction(10, 1)]).await.unwrap();
    armed.store(true, std::sync::atomic::Ordering::SeqCst);
    let error = log.append(vec![transaction(20, 1)]).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert_eq!(log.head(), at(10));
    log.append(vec![transaction(20, 2)]).await.unwrap();
    assert_eq!(place.sequences(), [1, 2]);
    let expected = held(&[transaction(10, 1), transaction(20, 2)]);
    assert_eq!(read_through(&mut group.acquire("test").unwrap(), 20).await, expected);
}
