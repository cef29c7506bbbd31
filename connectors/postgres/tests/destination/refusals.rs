//! What is refused, by which code, and left as it is.

use tidegate_api::{Code, Destination as _, Error, Mutation, MutationKind, Severity, SnapshotEpoch, code};
use tidegate_conformance::batches::{transaction, upsert};
use tidegate_postgres::destination::{Config, PostgresDestination};
use tidegate_testkit::{Postgres, Version};

use super::harness::{Server, owner};

async fn refusals(destination: &PostgresDestination) -> Vec<Error> {
    vec![
        destination.provision(&owner(1)).await.unwrap_err(),
        destination.begin_snapshot(&owner(1), &SnapshotEpoch("e".into())).await.unwrap_err(),
        destination.apply(&owner(1), &[transaction(105, &[upsert("public.a", "1", "{}")])]).await.unwrap_err(),
    ]
}

async fn is_left_as_it_is(server: &Server<'_>, code: &'static Code) {
    let before = server.content().await;
    let destination = server.destination();
    assert_eq!(refusals(&destination).await[0].code(), code);
    let findings = destination.preflight().await.unwrap();
    assert_eq!((findings[0].severity, findings[0].code), (Severity::Failed, Some(code)), "{findings:?}");
    assert_eq!(server.content().await, before);
}

#[tokio::test]
async fn another_applications_tables_are_refused_and_left_as_they_are() {
    for setup in ["CREATE TABLE tidegate.documents (id int)", "CREATE TABLE tidegate.metadata (name text, value text)"] {
        let server = Server::shared(Version::V15).await;
        server.execute(&format!("CREATE SCHEMA tidegate; {setup}")).await;
        is_left_as_it_is(&server, &code::DESTINATION_UNUSABLE).await;
    }
}

#[tokio::test]
async fn tables_of_a_newer_release_are_refused_and_left_as_they_are() {
    let server = Server::shared(Version::V15).await;
    server.destination().provision(&owner(1)).await.unwrap();
    server.execute("UPDATE tidegate.metadata SET value = '2' WHERE name = 'format'").await;
    is_left_as_it_is(&server, &code::DESTINATION_FORMAT).await;
}

#[tokio::test]
async fn a_database_in_another_encoding_is_refused() {
    let server = Postgres::shared(Version::V15);
    let database = server.create_database_with("latin", "ENCODING 'LATIN1' LOCALE 'C'").await;
    is_left_as_it_is(&Server { server, database }, &code::DESTINATION_UNUSABLE).await;
}

#[tokio::test]
async fn who_may_not_is_told_what_to_grant() {
    let server = Server::shared(Version::V15).await;
    let role = Postgres::unique("nobody");
    server.execute(&format!("CREATE ROLE {role} LOGIN")).await;
    let destination = server.destination_as(&role);
    let error = destination.provision(&owner(1)).await.unwrap_err();
    assert!(!error.is_transient());
    assert!(error.advice().starts_with("CREATE SCHEMA \"tidegate\" AUTHORIZATION"), "{error:?}");
    let findings = destination.preflight().await.unwrap();
    assert_eq!(findings[0].severity, Severity::Failed, "{findings:?}");

    server.destination().provision(&owner(1)).await.unwrap();
    server.execute(&format!("GRANT USAGE ON SCHEMA tidegate TO {role}; GRANT SELECT ON ALL TABLES IN SCHEMA tidegate TO {role}")).await;
    let error = destination.provision(&owner(1)).await.unwrap_err();
    assert!(error.advice().contains("GRANT SELECT, INSERT, UPDATE, DELETE"), "{error:?}");
    server.execute(&format!("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tidegate TO {role}")).await;
    destination.provision(&owner(1)).await.unwrap();
    assert_eq!(destination.preflight().await.unwrap()[0].severity, Severity::Passed);
}

#[tokio::test]
async fn a_wrong_login_is_permanent_and_a_missing_server_is_not() {
    let server = Server::shared(Version::V15).await;
    let unknown = server.destination_as("nobody_at_all");
    let nowhere =
        PostgresDestination::new(Config { url: "postgres://u@127.0.0.1:1/db".to_owned(), schema: "tidegate".to_owned() }).unwrap();
    let missing = Server { server: server.server, database: "no_such_database".to_owned() };
    for (destination, code) in [
        (&unknown, &code::DESTINATION_AUTHENTICATION),
        (&missing.destination(), &code::DESTINATION_AUTHENTICATION),
        (&nowhere, &code::DESTINATION_UNREACHABLE),
    ] {
        let mut errors = refusals(destination).await;
        errors.push(destination.preflight().await.unwrap_err());
        for error in errors {
            assert_eq!(error.code(), code, "{error}");
            assert_eq!(error.is_transient(), code == &code::DESTINATION_UNREACHABLE, "{error}");
        }
    }
}

#[test]
fn settings_that_cannot_be_right_are_refused_before_anything_is_reached() {
    let config = |url: &str, schema: &str| PostgresDestination::new(Config { url: url.to_owned(), schema: schema.to_owned() });
    for (url, schema) in [
        ("mysql://u:secret@h/db", "tidegate"),
        ("postgres://u:secret@h/db", ""),
        ("postgres://u:secret@h/db", "pg_catalog"),
        ("postgres://u:secret@h/db", "information_schema"),
        ("postgres://u:secret@h/db", &"x".repeat(64)),
        ("postgres://u:secret@h/db", "a\0b"),
    ] {
        let error = config(url, schema).err().unwrap();
        assert_eq!(error.code(), &code::DESTINATION_SETTING, "{schema}");
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    }
    let shown = format!("{:?}", Config { url: "postgres://u:secret@h/db".to_owned(), schema: "s".to_owned() });
    assert!(!shown.contains("secret"), "{shown}");
}

#[tokio::test]
async fn what_text_cannot_hold_is_refused_before_anything_is_written() {
    let server = Server::shared(Version::V15).await;
    let destination = server.destination();
    destination.provision(&owner(1)).await.unwrap();
    let bytes = |document: &'static [u8]| Mutation {
        kind: MutationKind::Upsert { document, content_type: "application/octet-stream" },
        ..upsert("public.a", "1", "")
    };
    let cases = [
        upsert("public.a", "confidential\0", "{}"),
        Mutation { partition_key: Some("\0confidential"), ..upsert("public.a", "1", "{}") },
        bytes(b"confidential\0"),
        bytes(b"\xffconfidential"),
    ];
    for (mutation, position) in cases.iter().zip(105..) {
        let error = destination.apply(&owner(1), &[transaction(position, &[upsert("public.a", "0", "{}"), *mutation])]).await.unwrap_err();
        assert_eq!(error.code(), &code::DESTINATION_CONTENT, "{error}");
        let text = format!("{error:?}");
        assert!(text.contains("public.a") && text.contains("key_hash") && !text.contains("confidential"), "{text}");
    }
    assert_eq!(server.count().await, 0);
}

#[tokio::test]
async fn tables_that_were_dropped_are_named_and_provisioning_makes_them_anew() {
    let server = Server::shared(Version::V15).await;
    let destination = server.destination();
    destination.provision(&owner(1)).await.unwrap();
    let batch = [transaction(105, &[upsert("public.a", "1", "{}")])];
    destination.apply(&owner(1), &batch).await.unwrap();
    server.execute("DROP SCHEMA tidegate CASCADE").await;
    let next = [transaction(110, &[upsert("public.a", "1", "{}")])];
    for _ in 0..2 {
        let error = destination.apply(&owner(1), &next).await.unwrap_err();
        assert_eq!(error.code(), &code::DESTINATION_UNUSABLE, "{error}");
        assert!(!error.is_transient());
    }
    destination.provision(&owner(1)).await.unwrap();
    assert_eq!(server.count().await, 0);
}

#[tokio::test]
async fn a_server_that_takes_no_writes_may_take_them_later() {
    let server = Server::shared(Version::V15).await;
    server.destination().provision(&owner(1)).await.unwrap();
    let role = Postgres::unique("reader");
    server.execute(&format!("CREATE ROLE {role} LOGIN SUPERUSER; ALTER ROLE {role} SET default_transaction_read_only = on")).await;
    let destination = server.destination_as(&role);
    for error in
        [destination.provision(&owner(1)).await.unwrap_err(), destination.apply(&owner(1), &[transaction(105, &[])]).await.unwrap_err()]
    {
        assert_eq!(error.code(), &code::DESTINATION_UNUSABLE, "{error}");
        assert!(error.is_transient(), "{error}");
    }
}
