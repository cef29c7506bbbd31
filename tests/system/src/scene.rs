//! One test's folder, source, destination and daemon, and the steps that most tests take.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_testkit::{Postgres, Version};

use crate::config::{Config, write_program};
use crate::daemon::for_ever_unless;
use crate::{Daemon, Shop, Target, compare};

/// The pipeline that most tests have.
pub const PIPELINE: &str = "all";

/// Which destination a test is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A SQLite file.
    Sqlite,
    /// A PostgreSQL database.
    Postgres,
}

/// A shop of `rows` orders, and one pipeline of all its tables.
#[derive(Debug)]
pub struct Scene {
    folder: TempDir,
    /// The source.
    pub shop: Shop,
    /// The destination of [`PIPELINE`].
    pub target: Target,
    /// The daemon, not started.
    pub daemon: Daemon,
    /// The program of [`PIPELINE`]; none: documents pass unchanged.
    pub program: Option<PathBuf>,
    rows: u64,
}

impl Scene {
    /// Documents pass unchanged.
    pub async fn plain(kind: Kind, rows: u64) -> Self {
        Self::new(kind, rows, false).await
    }

    /// Documents go through a program that edits them and drops cancelled orders.
    pub async fn programmed(kind: Kind, rows: u64) -> Self {
        Self::new(kind, rows, true).await
    }

    async fn new(kind: Kind, rows: u64, programmed: bool) -> Self {
        let server = Postgres::shared(Version::V15);
        let folder = tempfile::Builder::new().prefix("tg-sys-").tempdir().expect("a temporary folder can be made");
        let shop = Shop::create(server, rows).await;
        let target = match kind {
            Kind::Sqlite => Target::Sqlite(folder.path().join("out.db")),
            Kind::Postgres => Target::postgres(server).await,
        };
        let program = programmed.then(|| write_program(&folder.path().join("program.json"), "shop", &instructions()));
        let config = Config::new(folder.path()).source(&shop).pipeline(PIPELINE, &Shop::TABLES, program.as_deref(), &target);
        let daemon = Daemon::new(&config.write(folder.path()));
        Self { folder, shop, target, daemon, program, rows }
    }

    /// The test's folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// How many orders there were before the start.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Starts with other settings than [`plain`](Self::plain) or [`programmed`](Self::programmed) wrote.
    pub fn configure(&mut self, config: &Config) {
        self.daemon = Daemon::new(&config.write(self.folder.path()));
    }

    /// Waits until everything that is committed now is at the destination.
    ///
    /// # Panics
    /// When it does not arrive, the pipeline stops, or the daemon ends.
    pub async fn arrives(&mut self) {
        let (target, key) = (&self.target, self.shop.mark().await);
        let asked = std::cell::Cell::new(0);
        let there = async |daemon: &Daemon| {
            asked.set(asked.get() + 1);
            let there = target.has(PIPELINE, "shop.marker", &key).await;
            if !there && asked.get() % 50 != 0 {
                return None;
            }
            let status = daemon.pipeline(PIPELINE)?;
            let state = status["state"].as_str().unwrap_or_default();
            assert!(!["paused", "faulted", "rebuilding"].contains(&state), "the pipeline has stopped: {status}\n{}", daemon.tail());
            // The marker may have come with a snapshot that is not complete yet.
            (there && ["running", "catching-up"].contains(&state)).then_some(())
        };
        for_ever_unless(&mut self.daemon, "everything arrives", there).await;
    }

    /// Waits until everything has arrived, then compares every document, byte for byte.
    ///
    /// # Panics
    /// When destination and transformed source differ.
    pub async fn assert_equal(&mut self) {
        self.arrives().await;
        let expected = match &self.program {
            Some(program) => self.shop.transformed(program, self.folder.path()).await,
            None => self.shop.documents().await,
        };
        compare::assert_equal(&expected, &self.target.documents(PIPELINE).await);
    }

    /// The number of the shop's last transaction.
    pub async fn last_number(&self) -> i64 {
        self.shop.server.value(&self.shop.database, "SELECT last_value FROM shop.tx_no").await.parse().unwrap_or(0)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.daemon.kill();
        self.shop.server.drop_slots(&self.shop.database);
    }
}

/// Edits for every table of the shop, which leave `tx_no` and `version` for the audit.
fn instructions() -> Value {
    json!([
        {"op": "remove", "path": "customer.email"},
        {"op": "set", "path": "metadata.source", "value": "cdc"},
        {"op": "drop-when-equals", "path": "status", "value": "cancelled"},
    ])
}
