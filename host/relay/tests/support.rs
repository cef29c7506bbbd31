//! A relay in a temporary place, and transactions to put into it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tempfile::TempDir;
use tidegate_api::{Captured, Change, Chunk, ChunkBuilder, CommitPosition, Operation, Resume, SourceIdentity, TransactionMeta, code};
use tidegate_relay::power_cut::PowerCutDisk;
use tidegate_relay::{Disk, Lease, Log, Options, Relay};

pub(crate) const SOURCE: &str = "shop";

/// A folder for the metadata and a disk in memory for the segments.
pub(crate) struct Place {
    pub(crate) disk: PowerCutDisk,
    pub(crate) folder: TempDir,
    pub(crate) options: Options,
}

/// Checkpoints are written when leases end, nothing is kept for comfort, segments are small.
pub(crate) fn options() -> Options {
    Options {
        segment_bytes: 2048,
        keep: Duration::ZERO,
        checkpoint_every: Duration::from_secs(3600),
        idle_every: Duration::ZERO,
        backoff: (Duration::from_millis(1), Duration::from_millis(2)),
        clock: Arc::new(|| SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)),
        ..Options::default()
    }
}

fn folder() -> TempDir {
    let memory = std::path::Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::with(options())
    }

    pub(crate) fn with(options: Options) -> Self {
        Self { disk: PowerCutDisk::new(), folder: folder(), options }
    }

    pub(crate) fn try_log(&self) -> tidegate_api::Result<Arc<Log>> {
        let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
        let log = Relay::open(self.folder.path(), disk, self.options.clone())?.log(SOURCE)?;
        if log.resume() == Resume::New {
            log.begin_creation()?;
            log.created(&identity())?;
        }
        Ok(log)
    }

    /// Opens the log; creates the source where it is new.
    pub(crate) fn log(&self) -> Arc<Log> {
        self.try_log().unwrap()
    }

    /// What the next process finds if this one is killed now: what was synced of the metadata, and the same disk.
    pub(crate) fn killed(&self) -> Self {
        let copy = folder();
        for entry in std::fs::read_dir(self.folder.path()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_file() && !name.ends_with("-shm") {
                std::fs::copy(&path, copy.path().join(name)).unwrap();
            }
        }
        // The names on the disk in memory stay those of the first folder.
        let place = Self { disk: self.disk.clone(), folder: copy, options: self.options.clone() };
        place.disk.rename_folder(&self.segments(), &place.segments());
        place
    }

    pub(crate) fn segments(&self) -> PathBuf {
        self.folder.path().join(SOURCE)
    }

    pub(crate) fn segment(&self, sequence: u64) -> PathBuf {
        self.segments().join(format!("{:016x}-{sequence:016x}.segment", 1))
    }

    pub(crate) fn sequences(&self) -> Vec<u64> {
        let name = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().split_once('-').unwrap().1.to_owned();
        self.disk.files().into_iter().map(|(path, _)| u64::from_str_radix(&name(path), 16).unwrap()).collect()
    }
}

pub(crate) fn identity() -> SourceIdentity {
    SourceIdentity { system: "7391".to_owned(), timeline: 1, database: "app".to_owned(), epoch: "0/20".to_owned() }
}

/// Rows of about `size` bytes that `tag` makes different from others.
pub(crate) fn chunk(tag: u64, first: u32, rows: u32, size: usize) -> Chunk {
    let mut builder = ChunkBuilder::default();
    for ordinal in first..first + rows {
        let document = format!("{{\"tag\":{tag},\"ordinal\":{ordinal},\"pad\":\"{}\"}}", "x".repeat(size));
        builder.push(&Change {
            ordinal,
            relation: "public.orders",
            operation: Operation::Insert,
            key: &format!("{tag}-{ordinal}"),
            partition_key: None,
            old: None,
            new: Some(document.as_bytes()),
            content_type: None,
            unavailable: None,
        });
    }
    builder.finish()
}

pub(crate) fn commit(position: u64, changes: u64, chunk: Chunk) -> Captured {
    let meta =
        TransactionMeta { xid: position as u32, position: CommitPosition::new(position), commit_time_us: position as i64 * 7, changes };
    Captured::Commit { meta, chunk }
}

/// A transaction of one chunk.
pub(crate) fn transaction(position: u64, rows: u32) -> Captured {
    commit(position, rows.into(), chunk(position, 0, rows, 40))
}

/// A transaction of `parts` parts and a last chunk.
pub(crate) fn large(position: u64, parts: u32, rows: u32, size: usize) -> Vec<Captured> {
    let mut items: Vec<Captured> = (0..parts).map(|part| Captured::Part(chunk(position, part * rows, rows, size))).collect();
    items.push(commit(position, u64::from(parts + 1) * u64::from(rows), chunk(position, parts * rows, rows, size)));
    items
}

pub(crate) fn idle(position: u64) -> Captured {
    Captured::Idle { position: CommitPosition::new(position) }
}

pub(crate) fn at(position: u64) -> CommitPosition {
    CommitPosition::new(position)
}

/// What a transaction holds: its position, and the bytes of its chunks.
pub(crate) type Held = (u64, Vec<Bytes>);

/// What was put in, as it should come out.
pub(crate) fn held(items: &[Captured]) -> Vec<Held> {
    let mut all = Vec::new();
    let mut chunks = Vec::new();
    for item in items {
        match item {
            Captured::Part(chunk) => chunks.push(chunk.bytes().clone()),
            Captured::Commit { meta, chunk } => {
                chunks.push(chunk.bytes().clone());
                all.push((meta.position.offset(), std::mem::take(&mut chunks)));
            }
            Captured::Idle { .. } => {}
        }
    }
    all
}

/// Reads and acknowledges up to the transaction at `last`.
pub(crate) async fn read_through(lease: &mut Lease, last: u64) -> Vec<Held> {
    let mut all: Vec<Held> = Vec::new();
    while all.last().is_none_or(|(position, _)| *position < last) {
        for delivery in lease.next_run(3, 4096).await.unwrap() {
            let position = delivery.meta().position;
            let chunks: Vec<Bytes> = delivery.chunks().map(|chunk| chunk.unwrap().bytes().clone()).collect();
            assert_eq!(delivery.bytes(), chunks.iter().map(|bytes| bytes.len() as u64).sum::<u64>());
            all.push((position.offset(), chunks));
            delivery.ack(position).map_err(|(_, error)| error).unwrap();
        }
    }
    all
}

/// The code of what must have failed.
pub(crate) fn refused<T: std::fmt::Debug>(outcome: tidegate_api::Result<T>) -> &'static str {
    outcome.unwrap_err().code().name
}

pub(crate) fn durable(log: &Log) -> u64 {
    match log.resume() {
        Resume::At { durable, identity: found } => {
            assert_eq!(found, identity());
            durable.offset()
        }
        other => panic!("{other:?}"),
    }
}

pub(crate) fn is(error: &tidegate_api::Error, expected: &'static code::Code) -> bool {
    error.code() == expected
}
