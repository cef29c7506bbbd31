//! The source: a reader that keeps the state that the changes lead to, and the server's own truth.

mod changes;
mod doctor;
mod documents;
mod feedback;
mod login;
mod oracle;
mod slots;
mod types;

use std::collections::{BTreeMap, HashMap};

use tidegate_api::{Capture, Captured, Chunk, CommitPosition, Operation, Resume, Snapshot, Source, SourceIdentity, TableName};
use tidegate_postgres::source::{PostgresSource, SourceConfig, Unchanged};
use tidegate_testkit::{Postgres, Version};

/// Every row by collection and key, as it is after everything that was read.
pub(crate) type State = BTreeMap<String, BTreeMap<String, String>>;

/// A database with a source that reads some of its tables.
pub(crate) struct Scene {
    pub(crate) server: &'static Postgres,
    pub(crate) database: String,
    pub(crate) source: PostgresSource,
    pub(crate) tables: Vec<TableName>,
}

impl Scene {
    /// A database of its own with these tables, all of which are read.
    pub(crate) async fn new(version: Version, setup: &str) -> Self {
        let server = Postgres::shared(version);
        let database = server.create_database("source").await;
        server.execute(&database, &format!("CREATE TABLE marker (id int PRIMARY KEY); {setup}")).await;
        let mut scene = Self { server, source: source(&server.url(&database), &database, &[]), database, tables: Vec::new() };
        scene.read_all().await;
        scene
    }

    /// Another policy for unchanged large values.
    pub(crate) fn with_policies(mut self, policies: &[(&str, Unchanged)]) -> Self {
        self.source = source(&self.server.url(&self.database), &self.database, policies);
        self
    }

    /// Reads every ordinary table that is there now.
    pub(crate) async fn read_all(&mut self) {
        let sql = "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 1, 2";
        let names = self.server.rows(&self.database, sql).await;
        let name = |row: Vec<Option<String>>| TableName::new(row[0].clone().unwrap(), row[1].clone().unwrap());
        self.tables = names.into_iter().map(name).collect();
    }

    pub(crate) async fn execute(&self, statements: &str) {
        self.server.execute(&self.database, statements).await;
    }

    pub(crate) async fn value(&self, query: &str) -> String {
        self.server.value(&self.database, query).await
    }

    pub(crate) async fn open(&self) -> Reader {
        self.open_at(&Resume::New).await
    }

    pub(crate) async fn open_at(&self, resume: &Resume) -> Reader {
        Reader::new(self.source.open(resume, &self.tables).await.unwrap())
    }

    pub(crate) async fn refusal(&self, resume: &Resume) -> tidegate_api::Error {
        match self.source.open(resume, &self.tables).await {
            Ok(_) => panic!("the source was opened"),
            Err(error) => error,
        }
    }

    /// The rows that a snapshot finds, and its boundary.
    pub(crate) async fn snapshot(&self) -> (State, CommitPosition) {
        let mut snapshot = self.source.snapshots().unwrap().begin(&self.tables).await.unwrap();
        let mut state = State::new();
        read_snapshot(snapshot.as_mut(), &mut state).await;
        (state, snapshot.boundary())
    }

    /// Commits a marker and reads until it has come.
    pub(crate) async fn catch_up(&self, reader: &mut Reader) {
        let id = self.value("INSERT INTO marker SELECT coalesce(max(id), 0) + 1 FROM marker RETURNING id").await;
        reader.until(|reader| reader.state.get("public.marker").is_some_and(|rows| rows.contains_key(&id))).await;
    }
}

impl Drop for Scene {
    /// A slot that nobody reads keeps the log of the whole shared server.
    fn drop(&mut self) {
        let (url, database) = (self.server.url(&self.database), self.database.clone());
        let clear = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let _ = runtime.block_on(async { source(&url, &database, &[]).remove().await });
        };
        let _ = std::thread::spawn(clear).join();
    }
}

pub(crate) fn source(url: &str, slot: &str, policies: &[(&str, Unchanged)]) -> PostgresSource {
    let tables: HashMap<_, _> = policies.iter().map(|(name, policy)| (name.parse().unwrap(), *policy)).collect();
    PostgresSource::new(SourceConfig { url: url.to_owned(), publication: "tg_pub".to_owned(), slot: slot.to_owned(), tables }).unwrap()
}

pub(crate) async fn read_snapshot(snapshot: &mut dyn Snapshot, state: &mut State) {
    while let Some(chunk) = snapshot.next().await.unwrap() {
        assert!(!chunk.is_empty());
        for (expected, change) in chunk.changes().enumerate() {
            assert_eq!((change.ordinal as usize, change.operation), (expected, Operation::Row));
        }
        apply(&chunk, state);
    }
}

/// A change that was read, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) relation: String,
    pub(crate) operation: Operation,
    pub(crate) key: String,
    pub(crate) old: Option<String>,
    pub(crate) new: Option<String>,
    pub(crate) unavailable: Option<String>,
}

/// Reads a capture like the relay does, and confirms what it has taken.
pub(crate) struct Reader {
    pub(crate) capture: Box<dyn Capture>,
    pub(crate) state: State,
    pub(crate) seen: Vec<Seen>,
    pub(crate) position: CommitPosition,
    pub(crate) transactions: usize,
    parts: Vec<Chunk>,
}

impl Reader {
    pub(crate) fn new(capture: Box<dyn Capture>) -> Self {
        let position = capture.identity().epoch.parse().unwrap();
        Self { capture, state: State::new(), seen: Vec::new(), position, transactions: 0, parts: Vec::new() }
    }

    pub(crate) fn resume(&self) -> Resume {
        Resume::At { identity: self.identity(), durable: self.position }
    }

    pub(crate) fn identity(&self) -> SourceIdentity {
        self.capture.identity().clone()
    }

    /// Reads until the condition holds.
    pub(crate) async fn until(&mut self, condition: impl Fn(&Self) -> bool) {
        let patience = tokio::time::sleep(tidegate_testkit::wait::PATIENCE);
        let mut patience = std::pin::pin!(patience);
        while !condition(self) {
            let captured = tokio::select! {
                captured = self.capture.next() => captured.unwrap(),
                () = &mut patience => panic!("not in time; seen: {:?}", self.seen),
            };
            captured.into_iter().for_each(|item| self.take(item));
            self.capture.confirm(self.position);
        }
    }

    /// Reads until the capture ends with an error.
    pub(crate) async fn until_error(&mut self) -> tidegate_api::Error {
        let patience = tokio::time::sleep(tidegate_testkit::wait::PATIENCE);
        let mut patience = std::pin::pin!(patience);
        loop {
            tokio::select! {
                captured = self.capture.next() => match captured {
                    Ok(captured) => captured.into_iter().for_each(|item| self.take(item)),
                    Err(error) => return error,
                },
                () = &mut patience => panic!("no error in time"),
            }
            self.capture.confirm(self.position);
        }
    }

    pub(crate) fn take(&mut self, item: Captured) {
        match item {
            Captured::Part(chunk) => self.parts.push(chunk),
            Captured::Commit { meta, chunk } => {
                assert!(meta.position > self.position, "positions grow");
                self.position = meta.position;
                self.transactions += 1;
                self.parts.push(chunk);
                let parts = std::mem::take(&mut self.parts);
                assert_eq!(meta.changes, parts.iter().map(|chunk| chunk.len() as u64).sum::<u64>());
                let ordinals: Vec<_> =
                    parts.iter().flat_map(|chunk| chunk.changes().map(|change| change.ordinal).collect::<Vec<_>>()).collect();
                assert!(ordinals.is_sorted_by(|a, b| a < b), "ordinals grow");
                for chunk in parts {
                    self.seen.extend(seen(&chunk));
                    apply(&chunk, &mut self.state);
                }
            }
            Captured::Idle { position } => {
                assert!(position > self.position, "positions grow");
                assert!(self.parts.is_empty(), "an idle moment within a transaction");
                self.position = position;
            }
        }
    }
}

fn seen(chunk: &Chunk) -> Vec<Seen> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let owned = |change: tidegate_api::Change<'_>| Seen {
        relation: change.relation.to_owned(),
        operation: change.operation,
        key: change.key.to_owned(),
        old: change.old.map(text),
        new: change.new.map(text),
        unavailable: change.unavailable.map(str::to_owned),
    };
    chunk.changes().map(owned).collect()
}

pub(crate) fn apply(chunk: &Chunk, state: &mut State) {
    for change in seen(chunk) {
        let rows = state.entry(change.relation).or_default();
        match (change.operation, change.new) {
            (Operation::Truncate, _) => rows.clear(),
            (Operation::Delete, _) => drop(rows.remove(&change.key)),
            (_, Some(document)) => drop(rows.insert(change.key, document)),
            (operation, None) => panic!("{operation:?} of {} without a document: {:?}", change.key, change.unavailable),
        }
    }
}
