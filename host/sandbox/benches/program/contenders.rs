//! Those who do the six instructions.

use std::cell::RefCell;
use std::sync::Arc;

use serde_json::Value;
use tidegate_api::{Chunk, Origin, Transform, Transformed};
use tidegate_program::{Executor, Input as Record, InputKind, Program, Spent, Verdict};
use tidegate_sandbox::{Sandbox, Settings};
use tokio::runtime::Runtime;

use crate::documents::Input;

const PROGRAM: &str = r#"{"name":"public-orders","version":"v4","instructions":[
    {"op":"require-equals","path":"kind","value":"order"},
    {"op":"copy","from":"customer.name","to":"displayName"},
    {"op":"remove","path":"customer.email"},
    {"op":"set","path":"metadata.source","value":"cdc"},
    {"op":"route","path":"tenant.id"},
    {"op":"drop-when-equals","path":"status","value":"cancelled"}]}"#;

pub(crate) struct Contenders {
    runtime: Runtime,
    sandbox: Arc<Sandbox>,
    transform: Arc<dyn Transform>,
    executor: RefCell<Executor>,
    _modules: tempfile::TempDir,
}

impl Contenders {
    pub(crate) fn start() -> Self {
        let modules = tempfile::tempdir().unwrap();
        let worker = env!("CARGO_BIN_EXE_tidegate-compile-worker").into();
        let sandbox = Sandbox::open(Settings { modules: modules.path().to_owned(), worker, threads: Some(1) }).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let transform = build(&runtime, &sandbox, PROGRAM);
        let executor = RefCell::new(Executor::new(parse(PROGRAM)));
        Self { runtime, sandbox, transform, executor, _modules: modules }
    }

    /// Another program in the same sandbox.
    pub(crate) fn transform(&self, program: &str) -> Arc<dyn Transform> {
        build(&self.runtime, &self.sandbox, program)
    }

    /// A chunk as a transaction of its own.
    pub(crate) fn run(&self, transform: &dyn Transform, chunk: &Chunk) -> Transformed {
        self.runtime.block_on(transform.begin(chunk.len() as u64, Origin::default()).chunk(chunk)).unwrap()
    }

    pub(crate) fn sandbox(&self, input: &Input) -> Transformed {
        self.run(&*self.transform, &input.chunk)
    }

    pub(crate) fn native(&self, input: &Input) -> (Vec<u8>, usize) {
        let mut executor = self.executor.borrow_mut();
        executor.begin(Spent::default());
        let (mut out, mut kept) = (Vec::with_capacity(input.chunk.bytes().len()), 0);
        for document in &input.documents {
            let record = Record { kind: InputKind::Upsert, document, partition_key: None, content_type: None };
            match executor.run(&record, &mut out) {
                Verdict::Keep { .. } => kept += 1,
                Verdict::Drop => {}
                Verdict::Poison { reason, .. } => panic!("{reason}"),
            }
        }
        (out, kept)
    }

    pub(crate) fn dom(&self, input: &Input) -> (Vec<u8>, usize) {
        let (mut out, mut kept) = (Vec::with_capacity(input.chunk.bytes().len()), 0);
        for document in &input.documents {
            if edit(document, &mut out).is_some() {
                kept += 1;
            }
        }
        (out, kept)
    }
}

fn build(runtime: &Runtime, sandbox: &Arc<Sandbox>, program: &str) -> Arc<dyn Transform> {
    let module = sandbox.provision_program_guest().unwrap();
    runtime.block_on(sandbox.program(parse(program), &module)).unwrap()
}

fn parse(program: &str) -> Program {
    Program::parse(program.as_bytes()).unwrap_or_else(|error| panic!("{}: {}", error.path, error.reason))
}

/// The program, by hand, on a `Value`. Gives the route of a document that is kept.
fn edit(document: &[u8], out: &mut Vec<u8>) -> Option<String> {
    let mut value: Value = serde_json::from_slice(document).unwrap();
    let root = value.as_object_mut().unwrap();
    assert_eq!(root.get("kind"), Some(&Value::from("order")));
    let name = root["customer"]["name"].clone();
    root.insert("displayName".to_owned(), name);
    root["customer"].as_object_mut().unwrap().remove("email");
    root.entry("metadata").or_insert_with(|| Value::Object(serde_json::Map::new()))["source"] = Value::from("cdc");
    let route = root["tenant"]["id"].as_str().unwrap().to_owned();
    if root.get("status").is_some_and(|status| status == "cancelled") {
        return None;
    }
    serde_json::to_writer(out, &value).unwrap();
    Some(route)
}
