//! `tidegate transform`.

use crate::tidegate::run;

const PROGRAM: &str = r#"{"name":"p","version":"1","require_partitioned_deletes":false,"instructions":[
    {"op":"require-equals","path":"kind","value":"order"},
    {"op":"remove","path":"customer.email"},
    {"op":"drop-when-equals","path":"status","value":"cancelled"}]}"#;

fn folder(input: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.json"), PROGRAM).unwrap();
    std::fs::write(folder.path().join("lines"), input).unwrap();
    folder
}

const GOOD: &str = r#"{"kind":"order","n":1.10,"customer":{"email":"x","name":"A"}}"#;
const KEPT: &str =
    "{\"outcome\":\"keep\",\"partition_key\":null,\"document\":{\"kind\":\"order\",\"n\":1.10,\"customer\":{\"name\":\"A\"}}}\n";
const DROPPED: &str = r#"{"kind":"order","status":"cancelled"}"#;
const REFUSED: &str = r#"{"kind":"gift"}"#;

#[test]
fn each_line_has_an_outcome_of_its_own() {
    let folder = folder(format!("{GOOD}\n{DROPPED}\n{REFUSED}\n\n{GOOD}").as_bytes());
    let ran = run(folder.path(), &["transform", "run", "p.json", "--input", "lines"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines.len(), 5);
    assert_eq!((lines[0], lines[1], lines[4]), (KEPT.trim_end(), "{\"outcome\":\"drop\"}", KEPT.trim_end()));
    assert!(
        lines[2].starts_with("{\"outcome\":\"poison\",\"code\":\"TG0304\",\"kind\":\"required-value-differs\",\"reason\":\""),
        "{}",
        lines[2]
    );
    assert!(lines[3].contains("\"kind\":\"invalid-json\""), "{}", lines[3]);
    assert_eq!(run(folder.path(), &["transform", "run", "p.json", "--input", "lines", "--strict"]).code, 1);
}

#[test]
fn poison_takes_a_whole_batch_and_names_the_line() {
    let folder = folder(format!("{GOOD}\n{REFUSED}\n{GOOD}\n").as_bytes());
    let ran = run(folder.path(), &["transform", "run", "p.json", "--input", "lines", "--batch"]);
    assert_eq!((ran.code, ran.out.lines().count()), (0, 1), "{}", ran.err);
    assert!(
        ran.out.starts_with("{\"outcome\":\"poison\",\"code\":\"TG0304\",\"kind\":\"required-value-differs\",\"line\":2,\"reason\":\""),
        "{}",
        ran.out
    );
}

#[test]
fn a_batch_of_many_chunks_comes_out_in_order() {
    let lines: String = (0..10_000).map(|n| format!("{{\"kind\":\"order\",\"n\":{n}}}\n")).collect();
    let folder = folder(lines.as_bytes());
    let ran = run(folder.path(), &["transform", "run", "p.json", "--input", "lines", "--batch"]);
    let expected: String =
        lines.lines().map(|line| format!("{{\"outcome\":\"keep\",\"partition_key\":null,\"document\":{line}}}\n")).collect();
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out == expected);
}

#[test]
fn a_line_that_is_no_mutation_ends_the_run_with_its_number() {
    let folder = folder(b"{\"kind\":\"delete\",\"partition_key\":\"k\"}\n{\"kind\":\"remove\"}\n");
    let ran = run(folder.path(), &["transform", "run", "p.json", "--input", "lines", "--mutations"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, "{\"outcome\":\"keep\",\"partition_key\":\"k\",\"document\":null}\n"));
    assert!(ran.err.starts_with("error[TG0017]: ") && ran.err.contains("line=2"), "{}", ran.err);
}

#[test]
fn a_refused_program_leaves_the_output_empty() {
    let folder = folder(b"{}\n");
    std::fs::write(folder.path().join("p.json"), "{\"name\":").unwrap();
    for arguments in [&["transform", "run", "p.json", "--input", "lines"][..], &["transform", "fingerprint", "p.json"]] {
        let ran = run(folder.path(), arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(ran.err.starts_with("error[TG0302]: "), "{}", ran.err);
    }
}

#[test]
fn a_fingerprint_is_that_of_the_meaning() {
    let folder = folder(b"");
    let first = run(folder.path(), &["transform", "fingerprint", "p.json"]);
    assert_eq!((first.code, first.out.trim_end().len()), (0, 64), "{}", first.err);
    let rewritten = PROGRAM.replace(":[", ": [ ").replace("\"name\":\"p\",\"version\":\"1\"", "\"version\":\"\\u0031\",\"name\":\"p\"");
    std::fs::write(folder.path().join("p.json"), rewritten).unwrap();
    assert_eq!(run(folder.path(), &["transform", "fingerprint", "p.json"]).out, first.out);
    std::fs::write(folder.path().join("p.json"), PROGRAM.replace("cancelled", "canceled")).unwrap();
    assert_ne!(run(folder.path(), &["transform", "fingerprint", "p.json"]).out, first.out);
}

#[test]
fn what_cannot_be_read_or_cached_is_named() {
    let folder = folder(b"");
    let ran = run(folder.path(), &["transform", "run", "p.json", "--input", "none"]);
    assert_eq!((ran.code, ran.err.starts_with("error[TG0008]: ")), (3, true), "{}", ran.err);
}
