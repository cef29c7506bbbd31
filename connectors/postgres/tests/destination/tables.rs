//! What readers and neighbours of the tables find.

use tidegate_api::{Destination as _, Severity};
use tidegate_conformance::batches::{delete, transaction, transaction_in_chunks, upsert};
use tidegate_testkit::{Postgres, Version};

use super::harness::{Server, owner};

#[tokio::test]
async fn a_preflight_leaves_nothing_behind() {
    let server = Server::shared(Version::V15).await;
    let findings = server.destination().preflight().await.unwrap();
    assert_eq!(findings[0].severity, Severity::Passed, "{findings:?}");
    assert!(server.content().await.is_empty());
    assert_eq!(server.value("SELECT count(*) FROM pg_namespace WHERE nspname = 'tidegate'").await, "0");
    server.destination().provision(&owner(1)).await.unwrap();
    let before = server.content().await;
    assert_eq!(server.destination().preflight().await.unwrap()[0].severity, Severity::Passed);
    assert_eq!(server.content().await, before);
}

#[tokio::test]
async fn keys_are_ordered_as_bytes_whatever_the_databases_collation_is() {
    let server = Postgres::shared(Version::V15);
    let database = server.create_database_with("collated", "LOCALE 'C' LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'").await;
    let server = Server { server, database };
    let destination = server.destination();
    destination.provision(&owner(1)).await.unwrap();
    let rows = ["b", "B", "a", "Z", "é", "z", "😀", "\u{ffee}"].map(|key| upsert("public.a", key, "{}"));
    destination.apply(&owner(1), &[transaction(105, &rows)]).await.unwrap();
    let query = "SELECT string_agg(key, ' ' ORDER BY key) FROM tidegate.documents";
    assert_eq!(server.value(query).await, "B Z a b z é \u{ffee} 😀");
    let collations = "SELECT string_agg(DISTINCT collation_name, ' ') FROM information_schema.columns
                      WHERE table_schema = 'tidegate' AND table_name = 'documents' AND column_name IN ('pipeline', 'collection', 'key')";
    assert_eq!(server.value(collations).await, "C");
}

#[tokio::test]
async fn readers_use_the_documents_as_json_and_find_the_hash_of_their_content() {
    let server = Server::shared(Version::V15).await;
    let destination = server.destination();
    destination.provision(&owner(1)).await.unwrap();
    let document = r#"{"b":1.10,"a":"é"}"#;
    destination.apply(&owner(1), &[transaction(105, &[upsert("public.a", "1", document)])]).await.unwrap();
    assert_eq!(server.value("SELECT document::jsonb ->> 'a' FROM tidegate.documents").await, "é");
    let expected = tidegate_api::hash::content_hash(r#"{"a":"\u00e9","b":11e-1}"#.as_bytes());
    let found = server.value("SELECT encode(content_hash, 'hex') FROM tidegate.documents").await;
    assert_eq!(found, expected.map(|byte| format!("{byte:02x}")).concat());
    assert_eq!(server.value("SELECT checkpoint FROM tidegate.pipelines").await, "0/69");
}

#[tokio::test]
async fn a_run_is_one_transaction_of_the_destination_however_large_it_is() {
    let server = Server::shared(Version::V15).await;
    let destination = server.destination();
    destination.provision(&owner(1)).await.unwrap();
    let keys: Vec<String> = (0..12_000).map(|key| key.to_string()).collect();
    let rows: Vec<_> = keys.iter().map(|key| upsert("public.a", key, "{}")).collect();
    let run = [
        transaction_in_chunks(105, &rows.chunks(1000).collect::<Vec<_>>()),
        transaction(110, &[delete("public.a", "7"), upsert("public.b", "1", "{}")]),
    ];
    destination.apply(&owner(1), &run).await.unwrap();
    let written = "SELECT count(*) || ' by ' || count(DISTINCT xmin::text) FROM tidegate.documents";
    assert_eq!(server.value(written).await, "12000 by 1");
}

#[tokio::test]
async fn an_odd_schema_name_and_a_roles_own_settings_change_nothing() {
    let server = Server::shared(Version::V15).await;
    let role = Postgres::unique("odd");
    server
        .execute(&format!(
            "CREATE ROLE {role} LOGIN SUPERUSER; ALTER ROLE {role} SET search_path = pg_temp; ALTER ROLE {role} SET synchronous_commit = off;
             ALTER ROLE {role} SET default_transaction_isolation = 'serializable'; ALTER ROLE {role} SET bytea_output = 'escape';
             ALTER ROLE {role} SET standard_conforming_strings = off; ALTER ROLE {role} SET statement_timeout = 1"
        ))
        .await;
    let schema = "We\"ird, \\ schema";
    let destination = server.destination_in(schema, &role);
    assert_eq!(destination.preflight().await.unwrap()[0].severity, Severity::Passed);
    destination.provision(&owner(1)).await.unwrap();
    destination.apply(&owner(1), &[transaction(105, &[upsert("public.a", "1", r#"{"back":"\\"}"#)])]).await.unwrap();
    assert_eq!(server.value(r#"SELECT document FROM "We""ird, \ schema".documents"#).await, r#"{"back":"\\"}"#);
}

#[tokio::test]
async fn pipelines_that_start_at_once_share_a_schema_that_nobody_had_made() {
    let server = Server::shared(Version::V15).await;
    let provision = |number: u32| {
        let destination = server.destination();
        async move {
            let mut owner = owner(1);
            owner.pipeline = format!("pipeline-{number}");
            destination.provision(&owner).await.unwrap();
            destination.apply(&owner, &[transaction(105, &[upsert("public.a", "1", "{}")])]).await.unwrap();
        }
    };
    let all: Vec<_> = (0..8).map(|number| tokio::spawn(provision(number))).collect();
    for one in all {
        one.await.unwrap();
    }
    assert_eq!(server.count().await, 8);
}
