//! The file source, captured into the relay and replayed as a snapshot into SQLite.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use tidegate_api::{Destination, Source};
use tidegate_file::{Config, FileSource};
use tidegate_pipeline::{Handle, Parts, Stored, start};
use tidegate_relay::{Log, Options, RealDisk, Relay, capture};
use tidegate_sqlite::SqliteDestination;
use tokio::task::JoinHandle;

use crate::batches::stored;
use crate::support::{World, until_at};

/// Every kind of change, a table of its own among them.
const BEFORE: &str = r#"{"position":10,"changes":[{"relation":"public.orders","op":"insert","key":"gone","new":{"v":0}}]}
{"position":20,"changes":[{"relation":"public.orders","op":"truncate"},{"relation":"public.orders","op":"insert","key":"1","new":{"v":1}},{"relation":"public.orders","op":"insert","key":"2","new":{"v":2}}]}
{"position":30,"changes":[{"relation":"public.orders","op":"insert","key":"3","new":{"v":3}},{"relation":"public.other","op":"truncate"}]}
{"position":40,"changes":[{"relation":"public.orders","op":"update","key":"1","new":{"v":10}},{"relation":"public.orders","op":"delete","key":"2"}]}
{"position":50,"changes":[{"relation":"public.orders","op":"update","key":"4","old_key":"3","new":{"v":3}}]}
"#;

const BEHIND: &str = r#"{"position":60,"changes":[{"relation":"public.orders","op":"delete","key":"1"},{"relation":"public.orders","op":"insert","key":"5","new":{"v":5}}]}
"#;

struct Running {
    handle: Handle,
    capture: JoinHandle<()>,
}

/// Captures the file and runs a pipeline on it.
fn run(world: &World, file: &Path, destination: Arc<dyn Destination>) -> Running {
    let relay = Relay::open(&world.folder.path().join("files"), Arc::new(RealDisk), Options::default()).unwrap();
    let log: Arc<Log> = relay.log("file").unwrap();
    let source: Arc<dyn Source> = Arc::new(FileSource::new(Config { path: file.to_owned() }));
    let (reading, tables) = (Arc::clone(&source), world.settings().tables);
    let captured = Arc::clone(&log);
    let capture = tokio::spawn(async move {
        capture(&*reading, &captured, &tables, &|_| ()).await;
    });
    Running { handle: start(Parts { destination, source, log, ..world.parts() }, Stored::default()), capture }
}

#[tokio::test]
async fn what_stood_in_the_file_is_replayed_into_the_state_that_it_led_to_and_the_stream_follows() {
    let world = World::new();
    let (file, out) = (world.folder.path().join("source.ndjson"), world.folder.path().join("out.db"));
    std::fs::write(&file, BEFORE).unwrap();
    let destination = Arc::new(SqliteDestination::new(tidegate_sqlite::Config { path: out.clone() }).unwrap());
    let running = run(&world, &file, destination);
    until_at(&running.handle, 50).await;
    let row = |key: &str, document: &str| (key.to_owned(), document.to_owned());
    assert_eq!(stored(&out), [row("1", "{\"v\":10}"), row("4", "{\"v\":3}")]);

    std::fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(BEHIND.as_bytes()).unwrap();
    until_at(&running.handle, 60).await;
    assert_eq!(stored(&out), [row("4", "{\"v\":3}"), row("5", "{\"v\":5}")]);
    running.handle.stop().await;
    running.capture.abort();
}
