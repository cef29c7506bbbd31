//! Durable append and reading, against the same bytes without any format in the same run.
//!
//! Baselines: one `write` and one `fdatasync` a group to a plain file; reading that file in 256 KiB blocks. Each figure is
//! the median over rounds in which ours and the baseline take turns.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_api::{Captured, Change, Chunk, ChunkBuilder, CommitPosition, Operation, SourceIdentity, TransactionMeta};
use tidegate_relay::{Log, Options, RealDisk, Relay};

const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(400);

struct Shape {
    name: &'static str,
    rows: u32,
    transactions: u64,
    goal: f64,
}

const SHAPES: [Shape; 3] = [
    Shape { name: "1x1", rows: 1, transactions: 1, goal: 0.9 },
    Shape { name: "1x1000", rows: 1, transactions: 1000, goal: 0.9 },
    Shape { name: "1000x1", rows: 1000, transactions: 1, goal: 0.9 },
];

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let Ok(runtime) = runtime else { return };
    for shape in &SHAPES {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("relay-append-{}", shape.name));
        let _ = std::fs::remove_dir_all(&folder);
        runtime.block_on(run(shape, &folder));
        let _ = std::fs::remove_dir_all(&folder);
    }
}

async fn run(shape: &Shape, folder: &Path) {
    let relay = Relay::open(folder, Arc::new(RealDisk), Options::default()).expect("a relay");
    let log = relay.log("bench").expect("a log");
    log.begin_creation().expect("a source");
    let identity = SourceIdentity { system: "bench".into(), timeline: 0, database: "bench".into(), epoch: "0".into() };
    log.created(&identity).expect("a source");
    let group = log.group("reader").expect("a group");
    let mut raw = File::create(folder.join("raw")).expect("a file");
    let chunk = rows(shape.rows);
    let bytes = chunk.bytes().len() * shape.transactions as usize;
    let block = vec![b'x'; bytes];
    let mut position = 0;
    let (mut ours, mut base) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(rate(async || append(&log, &chunk, shape.transactions, &mut position).await).await);
        let write = async || {
            raw.write_all(&block).expect("space");
            raw.sync_data().expect("a disk");
        };
        base.push(rate(write).await);
    }
    let (ours, base) = (median(ours), median(base));
    let mb = |groups: f64| groups * bytes as f64 / 1e6;
    println!(
        "relay-append-{}: {:.0} groups/s, {:.1} MB/s; write + fdatasync: {:.0} groups/s, {:.1} MB/s",
        shape.name,
        ours,
        mb(ours),
        base,
        mb(base)
    );
    println!("ratio relay-append-{} {:.2} goal {}", shape.name, ours / base, shape.goal);
    if shape.transactions * u64::from(shape.rows) > 1 {
        read(shape, &group, &log, &folder.join("raw")).await;
    }
}

async fn append(log: &Log, chunk: &Chunk, transactions: u64, position: &mut u64) {
    let mut group = Vec::with_capacity(transactions as usize);
    for _ in 0..transactions {
        *position += 1;
        let meta = TransactionMeta { xid: 1, position: CommitPosition::new(*position), commit_time_us: 0, changes: chunk.len() as u64 };
        group.push(Captured::Commit { meta, chunk: chunk.clone() });
    }
    log.append(group).await.expect("durable");
}

async fn read(shape: &Shape, group: &tidegate_relay::Group, log: &Log, raw: &Path) {
    let head = log.head();
    let mut rates = Vec::new();
    for _ in 0..3 {
        let mut lease = group.acquire("bench").expect("a lease");
        lease.seek(CommitPosition::ZERO).expect("the beginning");
        let start = Instant::now();
        let (mut bytes, mut at) = (0, CommitPosition::ZERO);
        while at < head {
            for delivery in lease.next_run(256, 4 << 20).await.expect("a run") {
                at = delivery.meta().position;
                bytes += delivery.chunks().map(|chunk| chunk.expect("a chunk").bytes().len()).sum::<usize>();
                delivery.ack(at).map_err(|(_, error)| error).expect("the loan");
            }
        }
        rates.push(bytes as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
    let mut base = Vec::new();
    for _ in 0..3 {
        let mut file = File::open(raw).expect("a file");
        let mut block = vec![0; 256 << 10];
        let start = Instant::now();
        let mut bytes = 0;
        while let Ok(count @ 1..) = file.read(&mut block) {
            bytes += count;
        }
        base.push(bytes as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
    let (ours, base) = (median(rates), median(base));
    println!("relay-read-{}: {ours:.0} MB/s with checks; plain read: {base:.0} MB/s", shape.name);
    println!("ratio relay-read-{}-over-150-MB/s {:.2} goal 1", shape.name, ours / 150.0);
}

/// How often a second `work` can be done.
async fn rate(mut work: impl AsyncFnMut()) -> f64 {
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < ROUND {
        work().await;
        count += 1;
    }
    f64::from(count) / start.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn rows(count: u32) -> Chunk {
    let mut builder = ChunkBuilder::default();
    for ordinal in 0..count {
        let document = format!("{{\"id\":{ordinal},\"pad\":\"{}\"}}", "a".repeat(940));
        builder.push(&Change {
            ordinal,
            relation: "public.orders",
            operation: Operation::Insert,
            key: &ordinal.to_string(),
            partition_key: None,
            old: None,
            new: Some(document.as_bytes()),
            content_type: None,
            unavailable: None,
        });
    }
    builder.finish()
}
