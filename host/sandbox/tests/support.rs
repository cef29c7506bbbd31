//! A sandbox to test with, and transactions to send through it.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use tidegate_api::{Change, Chunk, ChunkBuilder, Operation, Origin, Outcome, Poison, Transform, Transformed};
use tidegate_program::Program;
use tidegate_sandbox::{Sandbox, Settings};

/// The worker that compiles for these tests.
pub(crate) const WORKER: &str = env!("CARGO_BIN_EXE_tidegate-compile-worker");

pub(crate) fn open(modules: &Path) -> Arc<Sandbox> {
    Sandbox::open(Settings { modules: modules.to_owned(), worker: WORKER.into(), threads: Some(1) }).unwrap()
}

/// One store for all tests that do no harm to it, so that the guest is compiled once.
pub(crate) fn sandbox() -> Arc<Sandbox> {
    static MODULES: OnceLock<tempfile::TempDir> = OnceLock::new();
    open(MODULES.get_or_init(|| tempfile::tempdir().unwrap()).path())
}

pub(crate) fn parse(program: &str) -> Program {
    Program::parse(program.as_bytes()).unwrap_or_else(|error| panic!("{}: {}", error.path, error.reason))
}

/// The program in the built-in guest.
pub(crate) async fn transform(program: &str) -> Arc<dyn Transform> {
    let sandbox = sandbox();
    let module = sandbox.provision_program_guest().unwrap();
    sandbox.program(parse(program), &module).await.unwrap()
}

pub(crate) const ROW: Change<'static> = Change {
    ordinal: 0,
    relation: "public.orders",
    operation: Operation::Insert,
    key: "1",
    partition_key: None,
    old: None,
    new: None,
    content_type: None,
    unavailable: None,
};

/// An insert of each document, with ordinals 10, 11, 12 …
pub(crate) fn inserts<'a>(documents: impl IntoIterator<Item = &'a str>) -> Chunk {
    let mut chunk = ChunkBuilder::default();
    for (ordinal, document) in (10..).zip(documents) {
        chunk.push(&Change { ordinal, new: Some(document.as_bytes()), ..ROW });
    }
    chunk.finish()
}

/// What came of a change, in the words of the acceptance interface.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Came {
    Keep { partition_key: Option<String>, document: Option<String> },
    Delete,
    Drop,
}

pub(crate) fn kept(document: &str) -> Came {
    Came::Keep { partition_key: None, document: Some(document.to_owned()) }
}

pub(crate) fn kept_in(partition_key: &str, document: &str) -> Came {
    Came::Keep { partition_key: Some(partition_key.to_owned()), document: Some(document.to_owned()) }
}

pub(crate) fn came(transformed: Transformed) -> Vec<Came> {
    let outcomes = match transformed {
        Transformed::Outcomes(outcomes) => outcomes,
        Transformed::Poison(poison) => panic!("{poison:?}"),
    };
    let text = |span| String::from_utf8(outcomes.get(span).unwrap().to_vec()).unwrap();
    let each = |outcome: &Outcome| match *outcome {
        Outcome::Keep { document, partition_key, .. } => {
            Came::Keep { partition_key: partition_key.map(text), document: document.map(text) }
        }
        Outcome::Delete => Came::Delete,
        Outcome::Drop => Came::Drop,
    };
    outcomes.items.iter().map(each).collect()
}

/// The chunk as a transaction of its own.
pub(crate) async fn run(transform: &dyn Transform, chunk: &Chunk) -> Transformed {
    transform.begin(chunk.len() as u64, Origin::default()).chunk(chunk).await.unwrap()
}

pub(crate) async fn poison(transform: &dyn Transform, chunk: &Chunk) -> Poison {
    match run(transform, chunk).await {
        Transformed::Poison(poison) => poison,
        Transformed::Outcomes(outcomes) => panic!("{} outcomes", outcomes.items.len()),
    }
}
