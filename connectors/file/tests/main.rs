//! The file source as the relay uses it.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use tidegate_api::{Captured, CommitPosition, Operation, Resume, Source, TableName, code};
use tidegate_file::{Config, FileSource};

const FIRST: &str = r#"{"position":10,"xid":1,"changes":[{"relation":"public.a","op":"insert","key":"1","new":{"v":1}}]}"#;
const SECOND: &str = r#"{"position":20,"xid":2,"changes":[{"relation":"public.b","op":"insert","key":"1","new":{}}]}"#;
const THIRD: &str = r#"{"position":30,"xid":3,"changes":[{"relation":"public.a","op":"delete","key":"1"}]}"#;

fn tables() -> Vec<TableName> {
    vec![TableName::new("public", "a")]
}

fn source(path: &Path) -> FileSource {
    FileSource::new(Config { path: path.to_owned() })
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn positions(captured: &[Captured]) -> Vec<(u64, bool)> {
    let position = |item: &Captured| match item {
        Captured::Commit { meta, .. } => Some((meta.position.offset(), true)),
        Captured::Idle { position } => Some((position.offset(), false)),
        Captured::Part(_) => None,
    };
    captured.iter().filter_map(position).collect()
}

#[tokio::test]
async fn transactions_arrive_as_their_lines_are_ended_and_foreign_ones_only_move_the_position() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.ndjson");
    append(&path, &format!("{FIRST}\n{SECOND}\n{}", &THIRD[..20]));
    let source = source(&path);
    let mut capture = source.open(&Resume::New, &tables()).await.unwrap();
    assert_eq!(positions(&capture.next().await.unwrap()), [(10, true), (20, false)]);
    append(&path, &format!("{}\n", &THIRD[20..]));
    assert_eq!(positions(&capture.next().await.unwrap()), [(30, true)]);
}

#[tokio::test]
async fn a_restart_goes_on_behind_the_durable_position_of_the_same_file_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.ndjson");
    append(&path, &format!("{FIRST}\n{THIRD}\n"));
    let source = source(&path);
    let identity = source.open(&Resume::New, &tables()).await.unwrap().identity().clone();
    let resume = Resume::At { identity, durable: CommitPosition::new(10) };
    let mut capture = source.open(&resume, &tables()).await.unwrap();
    assert_eq!(positions(&capture.next().await.unwrap()), [(30, true)]);
    fs::write(&path, format!("{SECOND}\n{THIRD}\n")).unwrap();
    let error = source.open(&resume, &tables()).await.unwrap_err();
    assert_eq!(*error.code(), code::FILE_CHANGED);
}

#[tokio::test]
async fn a_file_that_becomes_shorter_or_goes_backwards_or_holds_nonsense_stops_the_source_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text, wanted) in [
        ("backwards", format!("{THIRD}\n{FIRST}\n"), &code::FILE_ORDER),
        ("nonsense", format!("{FIRST}\nnot json\n"), &code::FILE_MALFORMED),
    ] {
        let path = folder.path().join(name);
        append(&path, &text);
        let source = source(&path);
        let error = source.open(&Resume::New, &tables()).await.unwrap().next().await.unwrap_err();
        assert_eq!(error.code(), wanted);
        assert!(error.context().any(|fact| fact == ("line", "2")), "{error}");
    }
    let path = folder.path().join("shorter");
    append(&path, &format!("{FIRST}\n{THIRD}\n"));
    let source = source(&path);
    let mut capture = source.open(&Resume::New, &tables()).await.unwrap();
    capture.next().await.unwrap();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(10).unwrap();
    assert_eq!(*capture.next().await.unwrap_err().code(), code::FILE_CHANGED);
}

#[tokio::test]
async fn a_snapshot_replays_the_whole_lines_that_are_there_and_nothing_behind_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.ndjson");
    append(&path, &format!("{FIRST}\n{SECOND}\n"));
    let source = source(&path);
    let mut view = source.snapshots().unwrap().begin(&tables()).await.unwrap();
    append(&path, &format!("{THIRD}\n"));
    assert_eq!(view.boundary(), CommitPosition::new(20));
    let chunk = view.next().await.unwrap().unwrap();
    let seen: Vec<(u32, Operation)> = chunk.changes().map(|change| (change.ordinal, change.operation)).collect();
    assert_eq!(seen, [(0, Operation::Insert)]);
    assert!(view.next().await.unwrap().is_none());
}
