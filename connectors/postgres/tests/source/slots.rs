//! The slot and what the relay remembers of it: everything that cannot be resumed has a name.

use tidegate_api::{CommitPosition, Resume, Source as _, SourceIdentity, code};
use tidegate_testkit::{Postgres, Version, wait};

use super::{Reader, Scene, source};

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY)";

fn first(reader: &Reader) -> Resume {
    Resume::At { identity: reader.identity(), durable: reader.identity().epoch.parse().unwrap() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_source_never_takes_a_slot_that_is_there() {
    let scene = Scene::new(Version::V15, TABLE).await;
    drop(scene.open().await);
    let error = scene.refusal(&Resume::New).await;
    assert_eq!((error.code(), error.is_transient()), (&code::SOURCE_AHEAD_OF_RELAY, false), "{error}");
    assert!(error.advice().contains(&scene.database), "{error:?}");
    assert_eq!(scene.value(&format!("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{}'", scene.database)).await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creation_that_was_interrupted_is_made_again() {
    let scene = Scene::new(Version::V15, TABLE).await;
    let before = scene.open().await.identity();
    let mut reader = scene.open_at(&Resume::Interrupted).await;
    assert_ne!(reader.identity().epoch, before.epoch);
    scene.catch_up(&mut reader).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_was_read_is_never_taken_for_an_interrupted_creation() {
    let scene = Scene::new(Version::V15, TABLE).await;
    let mut reader = scene.open().await;
    scene.catch_up(&mut reader).await;
    drop(reader);
    let error = scene.refusal(&Resume::Interrupted).await;
    assert_eq!((error.code(), error.is_transient()), (&code::SOURCE_AHEAD_OF_RELAY, false), "{error}");
    assert_eq!(scene.source.slots().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_of_another_plugin_is_foreign_whatever_the_relay_remembers() {
    let scene = Scene::new(Version::V15, TABLE).await;
    let identity = scene.open().await.identity();
    scene.source.drop_slot(&scene.database).await.unwrap();
    scene.execute(&format!("SELECT pg_create_logical_replication_slot('{}', 'test_decoding')", scene.database)).await;
    let at = Resume::At { durable: identity.epoch.parse().unwrap(), identity };
    for resume in [Resume::New, Resume::Interrupted, at] {
        let error = scene.refusal(&resume).await;
        assert_eq!((error.code(), error.is_transient()), (&code::SLOT_FOREIGN, false), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_is_gone_is_a_fault_by_name() {
    let scene = Scene::new(Version::V15, TABLE).await;
    let reader = scene.open().await;
    let resume = first(&reader);
    drop(reader);
    scene.source.drop_slot(&scene.database).await.unwrap();
    let error = scene.refusal(&resume).await;
    assert_eq!((error.code(), error.is_transient()), (&code::SLOT_MISSING, false), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_beyond_what_the_relay_holds_is_a_fault_by_name() {
    let scene = Scene::new(Version::V15, TABLE).await;
    let mut reader = scene.open().await;
    let earlier = first(&reader);
    scene.catch_up(&mut reader).await;
    let confirmed =
        format!("SELECT confirmed_flush_lsn >= '{}' FROM pg_replication_slots WHERE slot_name = '{}'", reader.position, scene.database);
    wait::until("the server has heard of the position", async || (scene.value(&confirmed).await == "t").then_some(())).await;
    drop(reader);
    let error = scene.refusal(&earlier).await;
    assert_eq!((error.code(), error.is_transient()), (&code::SOURCE_AHEAD_OF_RELAY, false), "{error}");

    // One that was dropped and made again shows in the same way.
    scene.source.drop_slot(&scene.database).await.unwrap();
    scene.execute("INSERT INTO t VALUES (1)").await;
    scene.execute(&format!("SELECT pg_create_logical_replication_slot('{}', 'pgoutput')", scene.database)).await;
    let error = scene.refusal(&earlier).await;
    assert_eq!((error.code(), error.is_transient()), (&code::SOURCE_AHEAD_OF_RELAY, false), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_system_timeline_database_or_creation_is_another_source() {
    let scene = Scene::new(Version::V15, TABLE).await;
    let mut reader = scene.open().await;
    scene.catch_up(&mut reader).await;
    let Resume::At { identity, durable } = reader.resume() else { unreachable!() };
    drop(reader);
    let others = [
        SourceIdentity { system: "7000000000000000000".to_owned(), ..identity.clone() },
        SourceIdentity { timeline: identity.timeline + 1, ..identity.clone() },
        SourceIdentity { database: "other".to_owned(), ..identity.clone() },
        SourceIdentity { epoch: "FFFF/0".to_owned(), ..identity.clone() },
    ];
    for other in others {
        let error = scene.refusal(&Resume::At { identity: other, durable }).await;
        assert_eq!((error.code(), error.is_transient()), (&code::SOURCE_IDENTITY, false), "{error}");
    }
    let behind = Resume::At { identity, durable: CommitPosition::new(u64::MAX / 2) };
    assert_eq!(scene.refusal(&behind).await.code(), &code::SOURCE_IDENTITY);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_somebody_reads_is_waited_for() {
    let scene = Scene::new(Version::V15, TABLE).await;
    let mut reader = scene.open().await;
    scene.catch_up(&mut reader).await;
    let resume = reader.resume();
    let error = scene.refusal(&resume).await;
    assert_eq!((error.code(), error.is_transient()), (&code::SLOT_IN_USE, true), "{error}");
    assert!(error.to_string().contains(&scene.database), "{error}");
    drop(reader);
    let mut reader = scene.open_at(&resume).await;
    scene.catch_up(&mut reader).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_the_server_gave_up_is_a_fault_by_name_at_the_start_and_in_mid_stream() {
    let server =
        Postgres::start_with(Version::V15, &[("max_slot_wal_keep_size", "1MB"), ("max_wal_size", "32MB"), ("wal_sender_timeout", "60s")]);
    let database = server.create_database("lost").await;
    server.execute(&database, "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE unseen (t text)").await;
    let source = source(&server.url(&database), "lost", &[]);
    let tables = ["public.t".parse().unwrap()];
    let mut reader = Reader::new(source.open(&Resume::New, &tables).await.unwrap());
    let resume = first(&reader);
    server.execute(&database, "INSERT INTO t VALUES (1)").await;
    assert!(!reader.capture.next().await.unwrap().is_empty());
    for _ in 0..6 {
        server.execute(&database, "INSERT INTO unseen SELECT repeat(md5(g::text), 30) FROM generate_series(1, 16000) g").await;
        server.execute(&database, "SELECT pg_switch_wal()").await;
        server.execute(&database, "CHECKPOINT").await;
    }
    assert_eq!(server.value(&database, "SELECT wal_status FROM pg_replication_slots").await, "lost");
    // The server ends the reader that has not confirmed anything; whoever opens again learns why.
    reader.capture.confirm(CommitPosition::ZERO);
    loop {
        match reader.capture.next().await {
            Ok(_) => {}
            Err(error) if error.is_transient() => break,
            Err(error) => {
                assert_eq!(error.code(), &code::SLOT_LOST, "{error}");
                break;
            }
        }
    }
    drop(reader);
    let Err(error) = source.open(&resume, &tables).await else { panic!("a lost slot was opened") };
    assert_eq!((error.code(), error.is_transient()), (&code::SLOT_LOST, false), "{error}");
    assert_eq!(source.status().await.unwrap().slot_state.as_deref(), Some("lost"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_created_is_removed_and_what_was_there_before_stays() {
    let scene = Scene::new(Version::V15, TABLE).await;
    drop(scene.open().await);
    let ours = scene.source.slots().await.unwrap().into_iter().find(|slot| slot.ours).unwrap();
    assert_eq!((ours.name, ours.plugin.as_str(), ours.temporary), (scene.database.clone(), "pgoutput", false));
    let status = scene.source.status().await.unwrap();
    assert_eq!(status.slot_state.as_deref(), Some("reserved"));
    assert!(status.head.is_some() && status.retained_bytes.is_some());
    scene.source.remove().await.unwrap();
    let left =
        "SELECT (SELECT count(*) FROM pg_publication) + (SELECT count(*) FROM pg_replication_slots WHERE database = current_database())";
    assert_eq!(scene.value(left).await, "0");
    scene.source.remove().await.unwrap();

    scene.execute("CREATE PUBLICATION tg_pub FOR TABLE t, marker").await;
    drop(scene.open().await);
    scene.source.remove().await.unwrap();
    assert_eq!(scene.value(left).await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_without_a_usable_key_is_refused_before_anything_is_created() {
    for (setup, named) in [
        ("CREATE TABLE keyless (a int); ALTER TABLE keyless REPLICA IDENTITY FULL", "keyless"),
        ("CREATE TABLE nothing (id int PRIMARY KEY); ALTER TABLE nothing REPLICA IDENTITY NOTHING", "nothing"),
        ("CREATE TABLE late (id int PRIMARY KEY DEFERRABLE)", "late"),
        (
            "CREATE TABLE i (id int PRIMARY KEY, n int NOT NULL UNIQUE); ALTER TABLE i REPLICA IDENTITY USING INDEX i_n_key; ALTER TABLE i DROP CONSTRAINT i_n_key",
            "public.i",
        ),
    ] {
        let scene = Scene::new(Version::V15, setup).await;
        let error = scene.refusal(&Resume::New).await;
        assert_eq!((error.code(), error.is_transient()), (&code::TABLE_WITHOUT_KEY, false), "{error}");
        assert!(error.to_string().contains(named), "{error}");
        assert_eq!(scene.value("SELECT count(*) FROM pg_publication").await, "0");
        assert!(scene.source.slots().await.unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_table_is_refused_by_name() {
    let mut scene = Scene::new(Version::V15, TABLE).await;
    scene.tables.push("odd.\"No such\"".parse().unwrap());
    let error = scene.refusal(&Resume::New).await;
    assert_eq!((error.code(), error.is_transient()), (&code::TABLE_MISSING, false));
    assert!(error.to_string().contains("odd.\"No such\""), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_is_created_widened_or_refused_with_the_statement() {
    let scene = Scene::new(Version::V15, TABLE).await;
    let role = scene.database.as_str();
    scene.execute(&format!("CREATE ROLE {role} LOGIN REPLICATION; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")).await;
    let restricted = source(&scene.server.url_as(role, &scene.database), &scene.database, &[]);
    let refusal = async || match restricted.open(&Resume::New, &scene.tables).await {
        Ok(_) => panic!("the source was opened"),
        Err(error) => error,
    };
    let error = refusal().await;
    assert_eq!(error.code(), &code::PUBLICATION_MISSING);
    assert!(error.advice().contains(r#"CREATE PUBLICATION "tg_pub" FOR TABLE ONLY "public"."marker""#), "{error:?}");
    scene.execute("CREATE PUBLICATION tg_pub FOR TABLE marker").await;
    let error = refusal().await;
    assert_eq!(error.code(), &code::PUBLICATION_TABLES);
    assert!(error.to_string().contains("public.t") && error.advice().contains("ADD TABLE"), "{error:?}");
    // The owner's own source adds the table, and keeps a publication that was there before.
    drop(scene.open().await);
    assert_eq!(scene.value("SELECT count(*) FROM pg_publication_tables").await, "2");
    scene.source.drop_slot(&scene.database).await.unwrap();
    scene.execute("ALTER PUBLICATION tg_pub SET (publish = 'insert')").await;
    let error = refusal().await;
    assert_eq!(error.code(), &code::PUBLICATION_OPERATIONS);
    assert!(error.to_string().contains("update delete truncate"), "{error}");
    scene.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}
