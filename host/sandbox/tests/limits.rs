//! Every limit has its own kind of poison, and says which change it was where one is to blame.

use std::time::Duration;

use tidegate_api::{Chunk, Origin, Transformed};

use crate::guests;
use crate::support::{came, inserts, kept, open, parse, poison, run, transform};

fn program(limits: &str) -> String {
    format!(r#"{{"name":"p","version":"1","limits":{{{limits}}},"instructions":[{{"op":"set","path":"b","value":1}}]}}"#)
}

async fn refused(limits: &str, chunk: &Chunk) -> (String, Option<u32>) {
    let transform = transform(&program(limits)).await;
    let poison = poison(&*transform, chunk).await;
    (poison.kind, poison.ordinal)
}

fn named(kind: &str, ordinal: Option<u32>) -> (String, Option<u32>) {
    (kind.to_owned(), ordinal)
}

#[tokio::test]
async fn each_limit_that_is_counted_has_its_kind() {
    // Invariant 11
    let chunk = inserts([r#"{"a":1}"#, r#"{"a":[[1]]}"#]);
    assert_eq!(refused(r#""mutations":1"#, &chunk).await, named("limit-mutations", None));
    assert_eq!(refused(r#""document_bytes":6"#, &chunk).await, named("limit-document-bytes", Some(10)));
    assert_eq!(refused(r#""document_bytes":12"#, &chunk).await, named("limit-document-bytes", Some(10)));
    assert_eq!(refused(r#""document_bytes":16"#, &chunk).await, named("limit-document-bytes", Some(11)));
    assert_eq!(refused(r#""batch_bytes":30"#, &chunk).await, named("limit-batch-bytes", Some(11)));
    assert_eq!(refused(r#""operations":1"#, &chunk).await, named("limit-operations", Some(11)));
    assert_eq!(refused(r#""depth":2"#, &chunk).await, named("limit-depth", Some(11)));
}

#[tokio::test]
async fn budgets_are_counted_over_all_chunks_of_a_transaction() {
    let transform = transform(&program(r#""operations":3"#)).await;
    let chunk = inserts([r#"{"a":1}"#, r#"{"a":2}"#]);
    let mut transaction = transform.begin(4, Origin::default());
    came(transaction.chunk(&chunk).await.unwrap());
    let second = transaction.chunk(&chunk).await.unwrap();
    assert!(matches!(second, Transformed::Poison(poison) if poison.kind == "limit-operations" && poison.ordinal == Some(11)));
    came(transform.begin(2, Origin::default()).chunk(&chunk).await.unwrap());
}

#[tokio::test]
async fn a_document_that_is_too_large_does_not_hide_an_earlier_poison() {
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(2 << 20));
    let transform = transform(&program("")).await;
    let refused = poison(&*transform, &inserts(["{}", &large])).await;
    assert_eq!((refused.kind.as_str(), refused.ordinal), ("limit-document-bytes", Some(11)));
    let refused = poison(&*transform, &inserts(["{}", "no", &large])).await;
    assert_eq!((refused.kind.as_str(), refused.ordinal), ("invalid-json", Some(11)));
}

#[tokio::test]
async fn memory_is_limited_and_the_change_that_needs_it_is_found() {
    let transform = transform(&program(r#""memory_bytes":4194304,"document_bytes":8388608"#)).await;
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(3 << 20));
    let mut documents = vec![r#"{"a":1}"#; 100];
    documents[70] = &large;
    let refused = poison(&*transform, &inserts(documents.iter().copied())).await;
    assert_eq!((refused.kind.as_str(), refused.ordinal), ("limit-memory", Some(80)));
    // The instance that trapped is gone: the next one works.
    assert_eq!(came(run(&*transform, &inserts([r#"{"a":1}"#])).await), [kept(r#"{"a":1,"b":1}"#)]);
}

#[tokio::test]
async fn a_guest_that_cannot_start_within_its_memory_refuses_every_transaction() {
    assert_eq!(refused(r#""memory_bytes":1"#, &inserts(["{}"])).await, named("limit-memory", Some(10)));
}

#[tokio::test]
async fn processor_time_is_limited() {
    let instructions = vec![r#"{"op":"remove","path":"z"}"#; 256].join(",");
    let program = format!(r#"{{"name":"p","version":"1","limits":{{"milliseconds":1}},"instructions":[{instructions}]}}"#);
    let transform = transform(&program).await;
    let document = format!("{{{}}}", (0..200).map(|name| format!(r#""{name}":0"#)).collect::<Vec<_>>().join(","));
    let refused = poison(&*transform, &inserts(vec![document.as_str(); 400])).await;
    assert_eq!((refused.kind.as_str(), refused.ordinal), ("limit-time", None));
    let folder = tempfile::tempdir().unwrap();
    let (sandbox, module) = guests::store(folder.path(), guests::ENDLESS);
    let endless = r#"{"name":"p","version":"1","limits":{"milliseconds":20},"instructions":[{"op":"remove","path":"a"}]}"#;
    let endless = sandbox.program(parse(endless), &module).await.unwrap();
    assert_eq!(poison(&*endless, &inserts(["{}"])).await.kind, "limit-time");
}

#[tokio::test]
async fn fuel_ends_a_guest_that_does_not_end() {
    let folder = tempfile::tempdir().unwrap();
    let (sandbox, module) = guests::store(folder.path(), guests::ENDLESS);
    let limits = r#""milliseconds":600000,"document_bytes":100"#;
    let endless = sandbox.program(parse(&program(limits)), &module).await.unwrap();
    let refused = poison(&*endless, &inserts(["{}", "{}"])).await;
    assert_eq!((refused.kind.as_str(), refused.ordinal), ("limit-fuel", Some(10)));
}

#[tokio::test]
async fn an_endless_guest_neither_holds_up_others_nor_outlives_its_caller() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = open(folder.path());
    let module = guests::add(folder.path(), guests::ENDLESS);
    let endless = sandbox.program(parse(&program(r#""milliseconds":600000"#)), &module).await.unwrap();
    let guest = sandbox.provision_program_guest().unwrap();
    let other = sandbox.program(parse(&program("")), &guest).await.unwrap();

    let owner = std::sync::Arc::new(inserts(["{}"]).bytes().to_vec());
    let chunk = Chunk::parse(bytes::Bytes::from_owner(Owner(owner.clone()))).unwrap();
    let waiting = tokio::spawn(async move { endless.begin(1, Origin::default()).chunk(&chunk).await });
    for _ in 0..20 {
        came(run(&*other, &inserts([r#"{"a":1}"#])).await);
    }
    assert!(!waiting.is_finished());
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    // The only thread drops the work, and with it the chunk, at the next slice.
    while std::sync::Arc::strong_count(&owner) > 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

struct Owner(std::sync::Arc<Vec<u8>>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
