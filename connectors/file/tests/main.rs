//! The file source as the relay uses it.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
async fn a_bad_line_is_told_with_its_number_behind_the_good_ones_and_the_source_goes_on_once_it_is_corrected() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bad, wanted) in
        [("backwards", SECOND.replace("20", "5"), &code::FILE_ORDER), ("nonsense", "not json".to_owned(), &code::FILE_MALFORMED)]
    {
        let path = folder.path().join(name);
        append(&path, &format!("{FIRST}\n{bad}\n{THIRD}\n"));
        let source = source(&path);
        let mut capture = source.open(&Resume::New, &tables()).await.unwrap();
        let identity = capture.identity().clone();
        assert_eq!(positions(&capture.next().await.unwrap()), [(10, true)]);
        let error = capture.next().await.unwrap_err();
        assert_eq!(error.code(), wanted);
        assert!(error.is_transient(), "{error}");
        assert!(error.context().any(|fact| fact == ("line", "2")), "{error}");

        let resume = Resume::At { identity, durable: CommitPosition::new(10) };
        assert_eq!(source.open(&resume, &tables()).await.unwrap().next().await.unwrap_err().code(), wanted);
        fs::write(&path, format!("{FIRST}\n{SECOND}\n{THIRD}\n")).unwrap();
        let mut capture = source.open(&resume, &tables()).await.unwrap();
        assert_eq!(positions(&capture.next().await.unwrap()), [(20, false), (30, true)]);
    }
}

#[tokio::test]
async fn a_bad_first_line_identifies_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.ndjson");
    append(&path, "not json\n");
    let source = source(&path);
    let error = source.open(&Resume::New, &tables()).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), (&code::FILE_MALFORMED, true));
    fs::write(&path, format!("{FIRST}\n")).unwrap();
    assert!(source.open(&Resume::Interrupted, &tables()).await.is_ok());
}

#[tokio::test]
async fn a_file_that_becomes_shorter_or_is_replaced_while_it_is_read_is_refused_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.ndjson");
    for replaced in [false, true] {
        fs::write(&path, format!("{FIRST}\n{THIRD}\n")).unwrap();
        let mut capture = source(&path).open(&Resume::New, &tables()).await.unwrap();
        capture.next().await.unwrap();
        if replaced {
            let other = folder.path().join("other");
            fs::write(&other, format!("{FIRST}\n{THIRD}\n")).unwrap();
            fs::rename(&other, &path).unwrap();
        } else {
            OpenOptions::new().write(true).open(&path).unwrap().set_len(10).unwrap();
        }
        let error = capture.next().await.unwrap_err();
        assert_eq!((error.code(), error.is_transient()), (&code::FILE_CHANGED, false), "{error}");
    }
}

/// Invariant 7
#[tokio::test]
async fn a_file_that_does_not_hold_the_durable_position_any_more_is_refused_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.ndjson");
    append(&path, &format!("{FIRST}\n{SECOND}\n"));
    let source = source(&path);
    let identity = source.open(&Resume::New, &tables()).await.unwrap().identity().clone();
    let resume = Resume::At { identity, durable: CommitPosition::new(20) };
    assert!(source.open(&resume, &tables()).await.is_ok());
    for text in [format!("{FIRST}\n"), format!("{FIRST}\n{THIRD}\n"), format!("{FIRST}\n{SECOND}")] {
        fs::write(&path, text).unwrap();
        let error = source.open(&resume, &tables()).await.unwrap_err();
        assert_eq!((error.code(), error.is_transient()), (&code::FILE_CHANGED, false), "{error}");
    }
}

/// About 8 MiB of transactions of `relation`; gives the last position.
fn large(path: &Path, relation: &str) -> u64 {
    let pad = "x".repeat(1000);
    let line = |position: u64| {
        format!(
            "{{\"position\":{position},\"changes\":[{{\"relation\":\"{relation}\",\"op\":\"insert\",\"key\":\"{position}\",\"new\":{{\"pad\":\"{pad}\"}}}}]}}\n"
        )
    };
    append(path, &(1..=8000).map(line).collect::<String>());
    8000
}

#[tokio::test]
async fn a_long_file_is_read_in_steps_between_which_others_have_their_turn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.ndjson");
    let last = large(&path, "public.a");
    let turns = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&turns);
    let counter = tokio::spawn(async move {
        loop {
            counting.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let source = source(&path);
    let identity = source.open(&Resume::New, &tables()).await.unwrap().identity().clone();
    let before = turns.load(Ordering::Relaxed);
    let resume = Resume::At { identity, durable: CommitPosition::new(last) };
    source.open(&resume, &tables()).await.unwrap();
    let passed = turns.load(Ordering::Relaxed);
    assert!(passed - before >= 7, "{} turns", passed - before);
    let mut view = source.snapshots().unwrap().begin(&tables()).await.unwrap();
    assert!(turns.load(Ordering::Relaxed) - passed >= 7);
    assert_eq!(view.boundary(), CommitPosition::new(last));
    let mut rows = 0;
    while let Some(chunk) = view.next().await.unwrap() {
        rows += chunk.len();
    }
    assert_eq!(rows as u64, last);
    counter.abort();
}

#[tokio::test]
async fn lines_of_foreign_tables_are_bounded_like_others_and_only_the_last_of_them_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.ndjson");
    let last = large(&path, "public.b");
    let mut capture = source(&path).open(&Resume::New, &tables()).await.unwrap();
    let mut reached = 0;
    let mut calls = 0;
    while reached < last {
        let [(position, false)] = positions(&capture.next().await.unwrap())[..] else { panic!("one idle position") };
        reached = position;
        calls += 1;
    }
    assert_eq!(calls, 3);
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
