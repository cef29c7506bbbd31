//! `tidegate.yaml`: what is refused, where, and with which code.

use crate::tidegate::{Ran, run, run_with};

const GOOD: &str = "\
version: 1
data_dir: data
sources:
  shop:
    kind: postgres
    url: \"postgres://me:geheim@127.0.0.1:1/db\"
    publication: tg_pub
    slot: tg_slot
relay: {kind: files}
pipelines:
  all:
    source: shop
    tables:
      - public.orders
      - {name: 'odd.\"Name x\"', unchanged: reselect}
    transform: []
    on_drop: retain
    on_poison: pause
    retry: {attempts: 3, base: 100ms, max: 5s, factor: 2, jitter: 0.2}
    max_transaction: {rows: 1000, bytes: 4GiB}
    destination:
      kind: sqlite
      path: out.db
";

fn validate(text: &str) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tidegate.yaml"), text).unwrap();
    run(folder.path(), &["validate", "-c", "tidegate.yaml"])
}

#[test]
fn everything_that_may_be_said_is_read() {
    let ran = validate(GOOD);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_eq!(ran.out, "tidegate.yaml: valid (1 sources, 1 pipelines, 0 programs)\n");
}

/// What is replaced in the good file, by what, and the code, line and words of the error.
type Case = (&'static str, &'static str, &'static str, usize, &'static str);

const CASES: &[Case] = &[
    ("version: 1\n", "version: 1\nversoin: 2\n", "TG0002", 2, "path=versoin): unknown key `versoin` (did you mean `version`?)"),
    ("    slot:", "    slott:", "TG0002", 8, "path=sources.shop.slott): unknown key `slott` (did you mean `slot`?)"),
    ("    source: shop\n", "    source: shop\n    tabels: []\n", "TG0002", 13, "path=pipelines.all.tabels)"),
    ("      path:", "      paht:", "TG0002", 23, "path=pipelines.all.destination.paht)"),
    ("jitter: 0.2", "jiter: 0.2", "TG0002", 19, "path=pipelines.all.retry.jiter): unknown key `jiter` (did you mean `jitter`?)"),
    ("    source: shop\n", "    source: shop\n    source: shop\n", "TG0002", 13, "the key `source` is there twice"),
    ("    source: shop\n", "\tsource: shop\n", "TG0002", 12, ""),
    ("base: 100ms", "base: 5 parsecs", "TG0003", 19, "path=pipelines.all.retry.base): a duration is"),
    ("base: 100ms", "base: 100", "TG0002", 19, "path=pipelines.all.retry.base): expected"),
    ("base: 100ms", "base: 6s", "TG0003", 19, "path=pipelines.all.retry.base): the first delay is longer"),
    ("attempts: 3", "attempts: 0", "TG0003", 19, "path=pipelines.all.retry.attempts)"),
    ("attempts: 3", "attempts: -3", "TG0003", 19, "path=pipelines.all.retry.attempts)"),
    ("factor: 2", "factor: .nan", "TG0002", 19, ""),
    ("bytes: 4GiB", "bytes: 4Gi", "TG0003", 20, "path=pipelines.all.max_transaction.bytes): a size is"),
    ("rows: 1000", "rows: 0", "TG0003", 20, "path=pipelines.all.max_transaction.rows)"),
    ("version: 1\n", "version: 99\n", "TG0006", 1, "version"),
    ("version: 1\n", "", "TG0002", 1, "the key `version` is missing"),
    ("data_dir: data\n", "", "TG0002", 1, "the key `data_dir` is missing"),
    ("source: shop\n", "source: shopp\n", "TG0004", 12, "no source `shopp` is declared (did you mean `shop`?)"),
    ("kind: postgres", "kind: postgress", "TG0003", 5, "path=sources.shop.kind): unknown word `postgress` (did you mean `postgres`?)"),
    ("    kind: postgres\n", "", "TG0002", 5, "path=sources.shop): the key `kind` is missing"),
    ("    publication: tg_pub\n", "", "TG0002", 5, "path=sources.shop): the key `publication` is missing"),
    ("{kind: files}", "{kind: files, max_bytes: lots}", "TG0003", 9, "path=relay.max_bytes)"),
    ("public.orders", "orders", "TG0003", 14, "path=pipelines.all.tables[0]): a table is named schema.table"),
    ("unchanged: reselect", "unchanged: guess", "TG0003", 15, "path=pipelines.all.tables[1].unchanged)"),
    ("- public.orders", "- 'odd.\"Name x\"'", "TG0003", 15, "path=pipelines.all.tables[1]): the table odd.\"Name x\" is there twice"),
    ("    transform: []", "    transform: [{filter: x}]", "TG0309", 16, "path=pipelines.all.transform[0])"),
    ("    transform: []", "    transform: [{program: p, filter: x}]", "TG0003", 16, "exactly one of the keys"),
    ("on_drop: retain", "on_drop: forget", "TG0003", 17, "path=pipelines.all.on_drop): unknown word `forget`"),
    ("  all:", "  a/b:", "TG0003", 11, "path=pipelines.a/b): a name is"),
    ("geheim", "${env:TG_NO_SUCH}", "TG0005", 6, "path=sources.shop.url): the environment variable TG_NO_SUCH is not set"),
    ("geheim", "${file:missing}", "TG0005", 6, "path=sources.shop.url): the file missing:"),
    ("geheim", "${nothing}", "TG0003", 6, "a reference is ${env:NAME} or ${file:PATH}"),
];

#[test]
fn what_is_wrong_is_refused_with_its_code_its_line_and_its_path() {
    for (from, to, code, line, words) in CASES {
        assert!(GOOD.contains(from), "{from}");
        let ran = validate(&GOOD.replacen(from, to, 1));
        let about = format!("{to:?}: {}", ran.err);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{about}");
        assert!(ran.err.starts_with(&format!("error[{code}]: read configuration: ")), "{about}");
        assert!(ran.err.contains(&format!("at=tidegate.yaml:{line}:")), "{about}");
        assert!(ran.err.contains(words), "{about}");
        assert!(ran.err.contains("\n  fix: "), "{about}");
        assert!(!ran.err.contains("geheim"), "{about}");
    }
}

#[test]
fn a_file_that_is_no_configuration_is_refused() {
    for (text, code) in [
        ("", "TG0002"),
        ("# nothing\n", "TG0002"),
        ("- a\n- b\n", "TG0002"),
        ("just text", "TG0002"),
        ("version: 1\ndata_dir: d\nsources: {}\npipelines: {}\n", "TG0003"),
        ("version: 1\ndata_dir: d\nsources: {s: {kind: file, path: x}}\npipelines: {}\n", "TG0003"),
        ("version: 1\ndata_dir: d\nsources: {s: {kind: file, path: x}}\n", "TG0002"),
        ("a: &x [*x]", "TG0002"),
        ("version: 1\ndata_dir: postgres://u:geheim@h/d\nsources: 'postgres://u:geheim@h/d'\npipelines: {}\n", "TG0002"),
    ] {
        let ran = validate(text);
        assert_eq!(ran.code, 2, "{text:?}: {}", ran.err);
        assert!(ran.err.starts_with(&format!("error[{code}]: ")), "{text:?}: {}", ran.err);
        assert!(!ran.err.contains("geheim"), "{}", ran.err);
    }
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["validate", "-c", "none.yaml"]);
    assert_eq!((ran.code, ran.err.starts_with("error[TG0001]")), (3, true), "{}", ran.err);
}

#[test]
fn two_sources_on_one_slot_are_refused() {
    let twice =
        "  shop:\n    kind: postgres\n    url: \"postgres://me:geheim@127.0.0.1:1/db\"\n    publication: tg_pub\n    slot: tg_slot\n";
    let text = GOOD.replacen(twice, &format!("{twice}{}", twice.replace("shop", "zoo")), 1);
    let ran = validate(&text);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("at=tidegate.yaml:9:") && ran.err.contains("path=sources.zoo)"), "{}", ran.err);
}

#[test]
fn secrets_come_from_the_environment_and_from_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tidegate.yaml"), GOOD.replace("geheim", "${env:TG_PASSWORD}").replace("tg_slot", "${file:slot}"))
        .unwrap();
    std::fs::write(folder.path().join("slot"), "tg_slot\n").unwrap();
    let ran = run_with(folder.path(), &["validate"], &[("TG_PASSWORD", "x")]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

#[test]
fn a_refusal_behind_json_is_one_envelope() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tidegate.yaml"), GOOD.replace("on_drop", "on_dorp")).unwrap();
    let ran = run(folder.path(), &["validate", "--json"]);
    let envelope: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, ran.err.as_str()), (2, ""));
    assert_eq!((&envelope["command"], &envelope["ok"], &envelope["result"]), (&"validate".into(), &false.into(), &serde_json::Value::Null));
    assert_eq!((&envelope["error"]["code"], &envelope["error"]["path"]), (&"TG0002".into(), &"pipelines.all.on_dorp".into()));
}

#[test]
fn a_program_is_checked_offline_too() {
    let folder = tempfile::tempdir().unwrap();
    let text = GOOD.replace("transform: []", "transform: [{program: ./p.json}]");
    std::fs::write(folder.path().join("tidegate.yaml"), text).unwrap();
    let ran = run(folder.path(), &["validate"]);
    assert_eq!((ran.code, ran.err.starts_with("error[TG0301]")), (3, true), "{}", ran.err);
    std::fs::write(folder.path().join("p.json"), r#"{"name":"p","version":"1","instructions":[{"op":"sett"}]}"#).unwrap();
    let ran = run(folder.path(), &["validate"]);
    assert_eq!((ran.code, ran.err.starts_with("error[TG0303]")), (2, true), "{}", ran.err);
    assert!(ran.err.contains("$.instructions[0]"), "{}", ran.err);
}
