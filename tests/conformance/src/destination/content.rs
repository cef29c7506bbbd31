//! What is stored.

use tidegate_api::destination::MAX_KEY_BYTES;
use tidegate_api::{Mutation, code};

use super::scene::{Outcome, Scene, Unexpected, same};
use crate::batches::{transaction, upsert};

/// Documents that a store would change if it parsed them, normalised them or took them for something else.
const DELICATE: &[&str] = &[
    "{}",
    r#"{"big":9007199254740993,"scaled":1.10,"long":123456789012345678901234567890.123456789012345678901234567890}"#,
    r#"{"exponent":1e400,"minus":-0,"zero":0.000}"#,
    r#"{"b":1,"a":2,"b":3}"#,
    r#"{ "spaces" :  [ 1 ,2 ] }"#,
    r#"{"nul":"\u0000","escape":"\u0041\/","lone":"\ud800"}"#,
    r#"{"quote":"it's \"quoted\" \\ back","percent":"100%","dollar":"$1","tab":"\t"}"#,
    "{\"text\":\"žluťoučký 😀 \u{feff}\u{2028}\u{7f}\"}",
    r#"{"empty":"","array":[],"null":null,"true":true}"#,
    r#"{"copy":"a\tb\\N","comma":"a,b","brace":"{x}"}"#,
];

pub(super) async fn documents_come_back_byte_for_byte(scene: &mut Scene<'_>) -> Outcome {
    let keys: Vec<String> = (0..DELICATE.len()).map(|key| key.to_string()).collect();
    let place = |collection: &'static str| keys.iter().zip(DELICATE).map(move |(key, document)| upsert(collection, key, document));
    let rows: Vec<Mutation<'_>> = place("public.snapshot").collect();
    scene.begin_with(&rows).await?;
    let changes: Vec<Mutation<'_>> = place("odd.\"Name x\"").collect();
    scene.apply_new(&transaction(105, &changes)).await?;
    let mut expected = Vec::new();
    for (key, document) in keys.iter().zip(DELICATE) {
        expected.extend([("public.snapshot", key.as_str(), *document), ("odd.\"Name x\"", key.as_str(), *document)]);
    }
    scene.holds("afterwards", &expected).await
}

pub(super) async fn keys_are_told_apart_by_their_bytes(scene: &mut Scene<'_>) -> Outcome {
    let keys =
        ["", " ", "a", "A", "a ", "ä", "a\u{308}", "[1,\"x\"]", "[1, \"x\"]", "1", "1.0", "ß", "ss", "\\N", "\t", "'", "%", "😀", "null"];
    let rows: Vec<_> = keys.iter().map(|key| upsert("public.a", key, "{}")).collect();
    scene.begin_with(&rows).await?;
    let changed: Vec<_> = keys.iter().step_by(2).map(|key| upsert("public.a", key, r#"{"changed":true}"#)).collect();
    scene.apply_new(&transaction(105, &changed)).await?;
    let documents = ["{}", r#"{"changed":true}"#];
    let expected: Vec<_> =
        keys.iter().enumerate().map(|(place, key)| ("public.a", *key, if place % 2 == 0 { documents[1] } else { documents[0] })).collect();
    scene.holds("afterwards", &expected).await
}

pub(super) async fn a_large_document_comes_back_whole(scene: &mut Scene<'_>) -> Outcome {
    let text: String = (0..500_000_u64).map(|number| char::from(b'a' + (number * number % 26) as u8)).collect();
    let (first, second) = (format!(r#"{{"text":"{text}"}}"#), format!(r#"{{"twice":"{text}{text}"}}"#));
    scene.begin_with(&[upsert("public.a", "1", &first)]).await?;
    scene.apply_new(&transaction(105, &[upsert("public.a", "2", &first), upsert("public.a", "1", &second)])).await?;
    let mut found = scene.documents().await;
    found.sort();
    let whole = found.len() == 2 && found[0].document == second.as_bytes() && found[1].document == first.as_bytes();
    if whole { Ok(()) } else { Err(Unexpected("a document of half a megabyte did not come back whole".to_owned())) }
}

pub(super) async fn a_key_of_the_largest_size_is_stored(scene: &mut Scene<'_>) -> Outcome {
    let room = MAX_KEY_BYTES - scene.owner.pipeline.len() - "public.a".len();
    // Digits without a pattern: a store that compresses keys must not get away with it.
    let key: String = (0_u64..).map(|n| char::from(b'!' + (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as u8 % 90)).take(room).collect();
    scene.begin_with(&[upsert("public.a", &key, "{}")]).await?;
    scene.apply_new(&transaction(105, &[upsert("public.a", &key, r#"{"n":2}"#)])).await?;
    scene.holds("afterwards", &[("public.a", &key, r#"{"n":2}"#)]).await
}

pub(super) async fn a_key_beyond_the_bound_is_refused_before_anything_is_written(scene: &mut Scene<'_>) -> Outcome {
    let room = MAX_KEY_BYTES - scene.owner.pipeline.len() - "public.a".len();
    let key = "confidential".repeat(room / 12 + 1);
    scene.begin_with(&[]).await?;
    let run = [transaction(105, &[upsert("public.a", "1", "{}")]), transaction(110, &[upsert("public.a", &key, "{}")])];
    let run = if scene.destination().max_run() < 2 { &run[1..] } else { &run[..] };
    let error = match scene.destination().apply(&scene.owner, run).await {
        Err(error) => error,
        Ok(answer) => return Err(Unexpected(format!("answered {answer:?}"))),
    };
    same("the code", error.code().name, code::KEY_TOO_LARGE.name)?;
    same("the key in the message", format!("{error:?}").contains("confidential"), false)?;
    scene.holds("afterwards", &[]).await?;
    scene.is_at("afterwards", 100).await
}

pub(super) async fn a_partition_key_is_stored_and_replaced(scene: &mut Scene<'_>) -> Outcome {
    let placed = |key: &'static str, partition_key: Option<&'static str>| Mutation { partition_key, ..upsert("public.a", key, "{}") };
    scene.begin_with(&[placed("1", Some("acme")), placed("2", None), placed("3", Some("acme"))]).await?;
    scene.apply_new(&transaction(105, &[placed("1", Some("other")), placed("2", Some("")), placed("3", None)])).await?;
    let mut found: Vec<_> = scene.documents().await.into_iter().map(|one| (one.key, one.partition_key)).collect();
    found.sort();
    let expected = [("1", Some("other")), ("2", Some("")), ("3", None)];
    same("partition keys", found, expected.map(|(key, place)| (key.to_owned(), place.map(str::to_owned))).to_vec())
}
