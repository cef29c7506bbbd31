//! WAL → PostgreSQL destination by the daemon, against a plain COPY of the same documents into the same table; the resident
//! memory of the daemon meanwhile; and the time from its start to the first row.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tidegate_bench::{ratio, workload};
use tidegate_testkit::process::{Child, Signal, bound_command};
use tidegate_testkit::{Postgres, Version};

const ROWS: u32 = 200_000;
const PATIENCE: Duration = Duration::from_secs(300);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime can be built");
    runtime.block_on(async {
        let server = Postgres::start_with(Version::V15, &[("max_wal_size", "8GB"), ("fsync", "on"), ("wal_sender_timeout", "60s")]);
        for rows in [1, 10, 1000] {
            measure(&server, rows).await;
        }
    });
}

async fn measure(server: &Postgres, rows: u32) {
    let source = server.create_database("source").await;
    let target = server.create_database("target").await;
    workload::prepare(server, &source).await;
    let folder = tempfile::tempdir_in(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")).expect("a folder can be made");
    let config = folder.path().join("tidegate.yaml");
    fs::write(&config, configuration(server, &source, &target)).expect("the folder is ours");

    let mut daemon = Daemon::start(&config);
    workload::insert(server, &source, 1, 1).await;
    let count = "SELECT count(*) FROM tidegate.documents";
    wait(server, &target, "SELECT (to_regclass('tidegate.documents') IS NOT NULL)::int", 1).await;
    wait(server, &target, count, 1).await;
    daemon.stop();

    workload::insert(server, &source, ROWS, rows).await;
    server.execute(&source, "CHECKPOINT").await;
    let began = Instant::now();
    let mut daemon = Daemon::start(&config);
    wait(server, &target, count, 2).await;
    let first = began.elapsed();
    wait(server, &target, count, u64::from(ROWS) + 1).await;
    let ours = began.elapsed();
    let resident = daemon.resident_bytes();
    daemon.stop();

    let copied = copy_again(server, &target).await;
    let rate = |time: Duration| f64::from(ROWS) / time.as_secs_f64();
    println!("{ROWS} rows, {rows} a transaction: COPY {:.0} rows/s, by the daemon {:.0} rows/s", rate(copied), rate(ours));
    ratio::print(&format!("destination/{rows}"), copied, ours, 0.5);
    println!("resident memory {:.0} MiB, start to first row {:.0} ms", resident / 1048576.0, first.as_secs_f64() * 1e3);
    ratio::print_bound(&format!("destination/{rows}/resident-64-MiB"), 64.0 * 1048576.0, resident);
    ratio::print_bound(&format!("destination/{rows}/first-row-1-s"), 1.0, first.as_secs_f64());
}

fn configuration(server: &Postgres, source: &str, target: &str) -> String {
    format!(
        "version: 1\ndata_dir: ./data\nsources:\n  shop: {{kind: postgres, url: \"{}\", publication: {}, slot: {source}}}\n\
         relay: {{kind: files}}\npipelines:\n  all:\n    source: shop\n    tables: [{}]\n    transform: []\n\
         \x20   destination: {{kind: postgres, url: \"{}\", schema: tidegate}}\n",
        server.url(source),
        workload::PUBLICATION,
        workload::TABLE,
        server.url(target),
    )
}

async fn wait(server: &Postgres, database: &str, query: &str, at_least: u64) {
    let end = Instant::now() + PATIENCE;
    while server.value(database, query).await.parse::<u64>().unwrap_or(0) < at_least {
        assert!(Instant::now() < end, "{query} does not reach {at_least}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// How long the server takes to COPY the documents into a table of the same definition.
async fn copy_again(server: &Postgres, database: &str) -> Duration {
    let file = server.socket_folder().join("documents.copy").display().to_string();
    server.execute(database, "CREATE TABLE again (LIKE tidegate.documents INCLUDING ALL)").await;
    server.execute(database, &format!("COPY tidegate.documents TO '{file}'")).await;
    let began = Instant::now();
    server.execute(database, &format!("COPY again FROM '{file}'")).await;
    began.elapsed()
}

struct Daemon(Child);

impl Daemon {
    fn start(config: &Path) -> Self {
        let mut command = bound_command(program(), "KILL", None);
        command.args(["run", "-c"]).arg(config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
        Self(Child::spawn(command))
    }

    fn stop(&mut self) {
        self.0.signal(Signal::TERM);
        self.0.wait(PATIENCE).expect("the daemon stops");
    }

    /// The most that it ever had.
    fn resident_bytes(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).expect("the daemon runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel tells it");
        line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0
    }
}

fn program() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/tidegate");
    assert!(path.exists(), "build the daemon first: cargo build --release --workspace");
    path
}
