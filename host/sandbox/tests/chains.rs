//! Several programs one behind the other.

use std::sync::Arc;

use tidegate_api::{Change, ChunkBuilder, Operation, Origin, Transform};
use tidegate_sandbox::chain;

use crate::support::{Came, ROW, came, inserts, kept_in, poison, run, transform};

async fn two(first: &str, second: &str) -> Arc<dyn Transform> {
    let program = |instructions: &str| format!(r#"{{"name":"p","version":"1","instructions":[{instructions}]}}"#);
    chain(vec![transform(&program(first)).await, transform(&program(second)).await])
}

#[tokio::test]
async fn a_stage_sees_what_the_one_before_it_gave() {
    let transform = two(
        r#"{"op":"route","path":"tenant"},{"op":"copy","from":"a","to":"b"},{"op":"drop-when-equals","path":"a","value":0}"#,
        r#"{"op":"remove","path":"a"},{"op":"drop-when-equals","path":"b","value":2}"#,
    )
    .await;
    let chunk = inserts([r#"{"tenant":"t1","a":1}"#, r#"{"tenant":"t2","a":0}"#, r#"{"tenant":"t3","a":2}"#, r#"{"tenant":"t4","a":3}"#]);
    let expected = [kept_in("t1", r#"{"tenant":"t1","b":1}"#), Came::Drop, Came::Drop, kept_in("t4", r#"{"tenant":"t4","b":3}"#)];
    assert_eq!(came(run(&*transform, &chunk).await), expected);
}

#[tokio::test]
async fn a_later_route_wins_and_deletes_go_through_every_stage() {
    let transform = two(r#"{"op":"route","path":"a"}"#, r#"{"op":"route","path":"b"}"#).await;
    let mut chunk = ChunkBuilder::default();
    chunk.push(&Change { new: Some(br#"{"a":"x","b":"y"}"#), ..ROW });
    chunk.push(&Change { ordinal: 1, operation: Operation::Delete, partition_key: Some("acme"), ..ROW });
    let deleted = Came::Keep { partition_key: None, document: None };
    assert_eq!(came(run(&*transform, &chunk.finish()).await), [kept_in("y", r#"{"a":"x","b":"y"}"#), deleted]);
}

#[tokio::test]
async fn the_poison_of_a_later_stage_names_the_original_change() {
    let transform = two(r#"{"op":"drop-when-equals","path":"a","value":0}"#, r#"{"op":"require-equals","path":"a","value":1}"#).await;
    let poison = poison(&*transform, &inserts([r#"{"a":0}"#, r#"{"a":1}"#, r#"{"a":0}"#, r#"{"a":2}"#])).await;
    assert_eq!((poison.kind.as_str(), poison.ordinal), ("required-value-differs", Some(13)));
}

#[tokio::test]
async fn a_later_stage_does_not_count_what_was_dropped_before() {
    let first = transform(r#"{"name":"p","version":"1","instructions":[{"op":"drop-when-equals","path":"a","value":0}]}"#).await;
    let few = transform(r#"{"name":"p","version":"1","limits":{"mutations":1},"instructions":[{"op":"remove","path":"b"}]}"#).await;
    let both = chain(vec![first, few]);
    assert_eq!(came(run(&*both, &inserts([r#"{"a":0}"#, r#"{"a":1}"#])).await).len(), 2);
    let mut transaction = both.begin(2, Origin::default());
    let chunk = inserts([r#"{"a":1}"#]);
    came(transaction.chunk(&chunk).await.unwrap());
    let second = transaction.chunk(&chunk).await.unwrap();
    assert!(matches!(second, tidegate_api::Transformed::Poison(poison) if poison.kind == "limit-mutations"));
}

#[tokio::test]
async fn the_definition_of_a_chain_is_the_list_of_its_stages() {
    let transform = two(r#"{"op":"remove","path":"a"}"#, r#"{"op":"remove","path":"b"}"#).await;
    let value: serde_json::Value = serde_json::from_str(transform.definition()).unwrap();
    assert_eq!(value.as_array().unwrap().len(), 2);
}
