//! What is published beside the code: error pages and schemas.

use std::path::Path;

use crate::tidegate::run;

#[test]
fn the_pages_of_errors_are_those_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["schema", "errors", "--markdown-dir", "made"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let names = |folder: &Path| {
        let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let made = folder.path().join("made");
    assert_eq!(names(&made), names(&published), "make them again: tidegate schema errors --markdown-dir docs/errors");
    for name in names(&made) {
        let page = |folder: &Path| std::fs::read_to_string(folder.join(&name)).unwrap();
        assert_eq!(page(&made), page(&published), "make them again: tidegate schema errors --markdown-dir docs/errors");
    }
}

#[test]
fn a_code_is_explained_by_number_and_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let by_number = run(folder.path(), &["explain", "tg0104"]);
    assert_eq!(by_number.code, 0);
    assert!(by_number.out.contains("wal_level is not logical") && by_number.out.contains("ALTER SYSTEM"), "{}", by_number.out);
    assert_eq!(run(folder.path(), &["explain", "wal-level"]).out, by_number.out);
    let unknown = run(folder.path(), &["explain", "wal-levle"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("did you mean `wal-level`?"), "{}", unknown.err);
}

#[test]
fn the_schemas_are_json_and_say_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, words) in [("config", "max_transaction"), ("program", "require_partitioned_deletes")] {
        let ran = run(folder.path(), &["schema", kind]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let schema: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert!(schema["properties"].is_object(), "{kind}");
        assert!(ran.out.contains(words), "{kind}");
    }
}

#[test]
fn a_wrong_command_line_has_a_code_and_a_daemon_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = run(folder.path(), &["pipelin", "list"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.starts_with("error[TG0007]: ") && wrong.err.contains("'pipeline'"), "{}", wrong.err);
    let absent = run(folder.path(), &["status", "--data-dir", "."]);
    assert_eq!((absent.code, absent.err.starts_with("error[TG0011]: ")), (3, true), "{}", absent.err);
}

#[test]
fn the_version_names_everything_that_a_fingerprint_depends_on() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["version", "--json"]);
    let envelope: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    for member in ["version", "rustc", "wasmtime"] {
        let text = envelope["result"][member].as_str().unwrap();
        assert!(text.split('.').count() >= 3, "{member}: {text}");
    }
    assert_eq!(envelope["result"]["program_guest"].as_str().unwrap().len(), 64);
}
