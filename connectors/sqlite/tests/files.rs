//! Which files are taken, and which are left as they are.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rusqlite::Connection;
use tidegate_api::{Destination as _, Error, Severity, code};
use tidegate_conformance::batches::{transaction, upsert};

use crate::harness::{Files, owner};

async fn refusals(files: &Files) -> Vec<Error> {
    let destination = files.destination();
    let epoch = tidegate_api::SnapshotEpoch("e".into());
    vec![
        destination.provision(&owner(1)).await.unwrap_err(),
        destination.begin_snapshot(&owner(1), &epoch).await.unwrap_err(),
        destination.apply(&owner(1), &[transaction(105, &[upsert("public.a", "1", "{}")])]).await.unwrap_err(),
    ]
}

async fn is_left_as_it_is(files: &Files, code: &'static tidegate_api::Code) {
    let before = files.content();
    for error in refusals(files).await {
        assert_eq!(error.code(), code, "{error}");
        assert!(!error.is_transient());
    }
    let findings = files.destination().preflight().await.unwrap();
    assert_eq!(findings.iter().map(|finding| finding.severity).max(), Some(Severity::Failed), "{findings:?}");
    assert_eq!(files.content(), before);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_as_it_is() {
    for content in [&b"remember the milk\n"[..], b"x", &[0; 8192], b"SQLite format 3\0 and then nothing"] {
        let files = Files::new();
        fs::write(files.path(), content).unwrap();
        is_left_as_it_is(&files, &code::DESTINATION_UNUSABLE).await;
    }
}

#[tokio::test]
async fn another_applications_database_is_refused_and_left_as_it_is() {
    for setup in ["CREATE TABLE documents (id)", "PRAGMA journal_mode = WAL; CREATE TABLE t (id); PRAGMA application_id = 7"] {
        let files = Files::new();
        Connection::open(files.path()).unwrap().execute_batch(setup).unwrap();
        is_left_as_it_is(&files, &code::DESTINATION_UNUSABLE).await;
    }
}

#[tokio::test]
async fn a_file_of_a_newer_release_is_refused_and_left_as_it_is() {
    let files = Files::new();
    files.destination().provision(&owner(1)).await.unwrap();
    Connection::open(files.path()).unwrap().execute("UPDATE metadata SET value = '2' WHERE name = 'format'", []).unwrap();
    is_left_as_it_is(&files, &code::DESTINATION_FORMAT).await;
}

#[tokio::test]
async fn a_folder_and_a_missing_folder_are_refused() {
    let files = Files::new();
    fs::create_dir(files.path()).unwrap();
    assert_eq!(files.destination().provision(&owner(1)).await.unwrap_err().code(), &code::DESTINATION_UNUSABLE);
    let missing = files.path().join("deeper/out.db");
    fs::remove_dir(files.path()).unwrap();
    let destination = tidegate_sqlite::SqliteDestination::new(tidegate_sqlite::Config { path: missing }).unwrap();
    assert_eq!(destination.provision(&owner(1)).await.unwrap_err().code(), &code::DESTINATION_UNUSABLE);
    let findings = destination.preflight().await.unwrap();
    assert!(findings[0].fix.as_deref().unwrap().starts_with("mkdir -p "), "{findings:?}");
}

#[tokio::test]
async fn an_empty_file_becomes_ours_and_a_preflight_before_makes_nothing() {
    let files = Files::new();
    assert_eq!(files.destination().preflight().await.unwrap()[0].severity, Severity::Passed);
    assert!(files.content().is_empty());
    fs::write(files.path(), b"").unwrap();
    fs::set_permissions(files.path(), fs::Permissions::from_mode(0o600)).unwrap();
    files.destination().provision(&owner(1)).await.unwrap();
    assert_eq!(files.destination().preflight().await.unwrap()[0].severity, Severity::Passed);
}

#[tokio::test]
async fn a_file_that_is_removed_while_it_is_open_confirms_nothing() {
    let files = Files::new();
    let destination = files.destination();
    destination.provision(&owner(1)).await.unwrap();
    destination.apply(&owner(1), &[transaction(105, &[upsert("public.a", "1", "{}")])]).await.unwrap();
    fs::remove_file(files.path()).unwrap();
    let error = destination.apply(&owner(1), &[transaction(110, &[])]).await.unwrap_err();
    assert_eq!(error.code(), &code::DESTINATION_UNUSABLE);
    assert!(error.to_string().contains("removed or replaced"), "{error}");
    // A fresh file starts with nothing, which the pipeline learns by provisioning again.
    destination.provision(&owner(1)).await.unwrap();
    assert_eq!(files.count(), 0);
}

#[tokio::test]
async fn a_lock_that_is_held_too_long_is_transient_and_passes() {
    let files = Files::new();
    let destination = files.destination();
    destination.provision(&owner(1)).await.unwrap();
    let other = Connection::open(files.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let run = [transaction(105, &[upsert("public.a", "1", "{}")])];
    let error = destination.apply(&owner(1), &run).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    destination.apply(&owner(1), &run).await.unwrap();
    assert_eq!(files.count(), 1);
}

#[tokio::test]
async fn readers_use_the_documents_as_json_and_find_the_hash_of_their_content() {
    let files = Files::new();
    let destination = files.destination();
    destination.provision(&owner(1)).await.unwrap();
    let document = r#"{"b":1.10,"a":"é"}"#;
    destination.apply(&owner(1), &[transaction(105, &[upsert("public.a", "1", document)])]).await.unwrap();
    let read = "SELECT document ->> '$.a', hex(content_hash) FROM documents";
    let (a, hash): (String, String) = files.reader().query_row(read, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(a, "é");
    let expected = tidegate_api::hash::content_hash(r#"{"a":"\u00e9","b":11e-1}"#.as_bytes());
    assert_eq!(hash.to_lowercase(), expected.map(|byte| format!("{byte:02x}")).concat());
}
