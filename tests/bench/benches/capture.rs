//! WAL → durable relay, against `pg_recvlogical` writing the same changes to nowhere.
//!
//! Both read copies of one slot that was made before the changes; the rounds alternate, the medians are compared.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_api::CommitPosition;
use tidegate_bench::{ratio, workload};
use tidegate_postgres::source::{PostgresSource, SourceConfig};
use tidegate_relay::{Log, Options, RealDisk, Relay, capture};
use tidegate_testkit::{Postgres, Version};

const CHANGES: u32 = 500_000;
const ROUNDS: usize = 3;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime can be built");
    runtime.block_on(async {
        let server = Postgres::start_with(Version::V15, &[("max_wal_size", "8GB"), ("wal_sender_timeout", "60s")]);
        for rows in [1, 10, 1000] {
            measure(&server, rows).await;
        }
    });
}

async fn measure(server: &Postgres, rows: u32) {
    let database = server.create_database("capture").await;
    workload::prepare(server, &database).await;
    let mut readers = Vec::new();
    for round in 0..ROUNDS {
        readers.push(Reader::new(server, &database, round).await);
    }
    workload::change(server, &database, CHANGES, rows).await;
    let end = workload::log_end(server, &database).await;
    workload::one_more(server, &database).await;
    server.execute(&database, "CHECKPOINT").await;

    let (mut peer, mut ours) = (Vec::new(), Vec::new());
    for reader in &readers {
        peer.push(reader.peer(server, &database, &end));
        ours.push(reader.ours(end.parse().expect("a position")).await);
        server.execute(&database, &format!("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name IN ('{0}', 'peer_{0}') AND NOT active", reader.slot)).await;
    }
    let (peer, ours) = (ratio::median(peer), ratio::median(ours));
    println!(
        "{CHANGES} changes, {rows} a transaction: pg_recvlogical {:.2} s, into the relay {:.2} s",
        peer.as_secs_f64(),
        ours.as_secs_f64()
    );
    ratio::print(&format!("capture/{rows}"), peer, ours, 0.9);
}

/// One round's slot, its copy for the peer, and a relay folder that was opened at it.
struct Reader {
    slot: String,
    source: PostgresSource,
    log: Arc<Log>,
    _folder: tempfile::TempDir,
}

impl Reader {
    async fn new(server: &Postgres, database: &str, round: usize) -> Self {
        let slot = format!("{database}_{round}");
        let config = SourceConfig {
            url: server.url(database),
            publication: workload::PUBLICATION.to_owned(),
            slot: slot.clone(),
            tables: HashMap::new(),
        };
        let source = PostgresSource::new(config).expect("the settings are valid");
        // On the disk that holds the build, as a daemon's data_dir would be: a temporary folder may be in memory.
        let folder = tempfile::tempdir_in(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")).expect("a folder can be made");
        let relay = Relay::open(folder.path(), Arc::new(RealDisk), Options::default()).expect("the relay can be opened");
        let log = relay.log("shop").expect("the log can be opened");
        let reader = Self { slot, source, log, _folder: folder };
        reader.capture_until(|log| log.identity().is_some()).await;
        server.execute(database, &format!("SELECT pg_copy_logical_replication_slot('{0}', 'peer_{0}')", reader.slot)).await;
        reader
    }

    async fn ours(&self, end: CommitPosition) -> Duration {
        let began = Instant::now();
        self.capture_until(|log| log.head() > end).await;
        began.elapsed()
    }

    async fn capture_until(&self, done: impl Fn(&Log) -> bool) {
        let tables = [workload::TABLE.parse().expect("a table name")];
        let wait = async {
            while !done(&self.log) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::select! {
            error = capture(&self.source, &self.log, &tables, &|_| ()) => panic!("{error}"),
            () = wait => (),
        }
    }

    fn peer(&self, server: &Postgres, database: &str, end: &str) -> Duration {
        let began = Instant::now();
        let status = Command::new("pg_recvlogical")
            .args(["-h", "127.0.0.1", "-p", &server.port().to_string(), "-U", "postgres", "-d", database])
            .args(["--slot", &format!("peer_{}", self.slot), "--start", "--no-loop", "-f", "/dev/null", "--endpos", end])
            .args(["-o", "proto_version=1", "-o", &format!("publication_names={}", workload::PUBLICATION)])
            .stderr(Stdio::null())
            .status()
            .expect("pg_recvlogical is installed with PostgreSQL's client programs");
        assert!(status.success(), "pg_recvlogical ends at the end position");
        began.elapsed()
    }
}
