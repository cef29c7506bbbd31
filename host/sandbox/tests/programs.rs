//! Programs in the built-in guest.

use tidegate_api::{Change, ChunkBuilder, Operation, Transformed};

use crate::support::{Came, ROW, came, inserts, kept, kept_in, poison, run, transform};

pub(crate) const ORDERS: &str = r#"{"name":"public-orders","version":"v4","instructions":[
    {"op":"require-equals","path":"kind","value":"order"},
    {"op":"copy","from":"customer.name","to":"displayName"},
    {"op":"remove","path":"customer.email"},
    {"op":"set","path":"metadata.source","value":"cdc"},
    {"op":"route","path":"tenant.id"},
    {"op":"drop-when-equals","path":"status","value":"cancelled"}]}"#;

#[tokio::test]
async fn the_six_instructions_do_what_they_say() {
    let transform = transform(ORDERS).await;
    let chunk = inserts([
        r#"{"id":9007199254740993,"kind":"order","customer":{"name":"Ada","email":"a@x"},"tenant":{"id":"acme"},"total":1.10}"#,
        r#"{"id":2,"kind":"order","customer":{"name":"Bob","email":"b@x"},"tenant":{"id":7},"status":"cancelled"}"#,
    ]);
    let expected = concat!(
        r#"{"id":9007199254740993,"kind":"order","customer":{"name":"Ada"},"tenant":{"id":"acme"},"total":1.10,"#,
        r#""displayName":"Ada","metadata":{"source":"cdc"}}"#
    );
    assert_eq!(came(run(&*transform, &chunk).await), [kept_in("acme", expected), Came::Drop]);

    let chunk = inserts([r#"{"kind":"order","customer":{"name":1},"tenant":{"id":1}}"#, r#"{"kind":"invoice"}"#, "not json"]);
    let poison = poison(&*transform, &chunk).await;
    assert_eq!((poison.kind.as_str(), poison.ordinal), ("required-value-differs", Some(11)));
    assert!(!poison.reason.contains("invoice"), "{}", poison.reason);
}

#[tokio::test]
async fn deletes_and_truncates_pass_without_a_document() {
    let pass = transform(r#"{"name":"p","version":"1","instructions":[{"op":"remove","path":"a"}]}"#).await;
    let mut chunk = ChunkBuilder::default();
    chunk.push(&Change { operation: Operation::Delete, old: Some(b"{\"a\":1}"), partition_key: Some("acme"), ..ROW });
    chunk.push(&Change { ordinal: 1, operation: Operation::Truncate, key: "", ..ROW });
    chunk.push(&Change { ordinal: 2, operation: Operation::Row, new: Some(b"{\"a\":1}"), ..ROW });
    chunk.push(&Change { ordinal: 3, operation: Operation::Update, old: Some(b"{}"), new: Some(b"{\"b\":1}"), ..ROW });
    let chunk = chunk.finish();
    let gone = || Came::Keep { partition_key: None, document: None };
    assert_eq!(came(run(&*pass, &chunk).await), [gone(), gone(), kept("{}"), kept(r#"{"b":1}"#)]);

    let route = transform(r#"{"name":"p","version":"1","instructions":[{"op":"route","path":"a"}]}"#).await;
    let poison = poison(&*route, &chunk).await;
    assert_eq!((poison.kind.as_str(), poison.ordinal), ("collection-delete-with-route", Some(1)));
}

#[tokio::test]
async fn a_change_that_the_source_could_not_render_is_poison_behind_those_before_it() {
    let transform = transform(ORDERS).await;
    let good = r#"{"kind":"order","customer":{"name":1},"tenant":{"id":1}}"#;
    let mut chunk = ChunkBuilder::default();
    chunk.push(&Change { new: Some(good.as_bytes()), ..ROW });
    chunk.push(&Change { ordinal: 1, operation: Operation::Update, unavailable: Some("body"), ..ROW });
    let refused = poison(&*transform, &chunk.finish()).await;
    assert_eq!((refused.kind.as_str(), refused.ordinal), ("unchanged-toast", Some(1)));
    assert!(refused.reason.contains("body"));

    let mut chunk = ChunkBuilder::default();
    chunk.push(&Change { new: Some(b"[]"), ..ROW });
    chunk.push(&Change { ordinal: 1, operation: Operation::Update, unavailable: Some("body"), ..ROW });
    let refused = poison(&*transform, &chunk.finish()).await;
    assert_eq!((refused.kind.as_str(), refused.ordinal), ("not-an-object", Some(0)));
}

#[tokio::test]
async fn outcomes_that_are_far_larger_than_their_chunk_come_whole() {
    let literal = "x".repeat(100_000);
    let program = format!(r#"{{"name":"p","version":"1","instructions":[{{"op":"set","path":"a","value":"{literal}"}}]}}"#);
    let transform = transform(&program).await;
    let documents: Vec<String> = (0..300).map(|id| format!(r#"{{"id":{id}}}"#)).collect();
    let outcomes = came(run(&*transform, &inserts(documents.iter().map(String::as_str))).await);
    let expected: Vec<_> = (0..300).map(|id| kept(&format!(r#"{{"id":{id},"a":"{literal}"}}"#))).collect();
    assert!(outcomes == expected);
}

#[tokio::test]
async fn the_same_chunk_gives_the_same_bytes_in_every_sandbox() {
    // Invariant 5
    let chunk = inserts([r#"{"kind":"order","customer":{"name":"\u0041"},"tenant":{"id":"t"}}"#]);
    let bytes = async || match run(&*transform(ORDERS).await, &chunk).await {
        Transformed::Outcomes(outcomes) => outcomes,
        Transformed::Poison(poison) => panic!("{poison:?}"),
    };
    assert_eq!(bytes().await, bytes().await);
}

#[tokio::test]
async fn an_empty_chunk_has_no_outcomes() {
    let transform = transform(ORDERS).await;
    assert_eq!(came(run(&*transform, &tidegate_api::Chunk::empty()).await), []);
}

#[tokio::test]
async fn the_definition_holds_everything_that_the_outcome_depends_on() {
    let with = async |program: &str| transform(program).await.definition().to_owned();
    let plain = with(r#"{"name":"p","version":"1","instructions":[{"op":"set","path":"a","value":1.10}]}"#).await;
    let same = with(r#"{"instructions":[{"value":1.10,"path":"a","op":"set"}],"version":"1","name":"p","limits":{"depth":64}}"#).await;
    assert_eq!(plain, same);
    for other in [
        r#"{"name":"q","version":"1","instructions":[{"op":"set","path":"a","value":1.10}]}"#,
        r#"{"name":"p","version":"2","instructions":[{"op":"set","path":"a","value":1.10}]}"#,
        r#"{"name":"p","version":"1","instructions":[{"op":"set","path":"a","value":1.1}]}"#,
        r#"{"name":"p","version":"1","limits":{"milliseconds":7},"instructions":[{"op":"set","path":"a","value":1.10}]}"#,
        r#"{"name":"p","version":"1","require_partitioned_deletes":false,"instructions":[{"op":"set","path":"a","value":1.10}]}"#,
    ] {
        assert_ne!(plain, with(other).await);
    }
    let value: serde_json::Value = serde_json::from_str(&plain).unwrap();
    assert_eq!(value["kind"], "program");
    assert_eq!(value["world"], "tidegate:transform/frames@1.0.0");
    assert_eq!(value["module"], tidegate_builtin_transforms::program_guest().sha256);
}
