//! Changes: keys that move, truncates, transactions of every size, tables that change between transactions.

use tidegate_api::{Captured, Operation, code};
use tidegate_testkit::Version;

use super::oracle::assert_same;
use super::{Reader, Scene};

fn of<'a>(reader: &'a Reader, relation: &str) -> Vec<(Operation, &'a str)> {
    reader.seen.iter().filter(|seen| seen.relation == relation).map(|seen| (seen.operation, seen.key.as_str())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_key_is_a_delete_and_an_insert_in_order_also_where_two_are_swapped() {
    let scene = Scene::new(Version::V15, "CREATE TABLE t (id int PRIMARY KEY, t text); INSERT INTO t VALUES (1, 'one'), (2, 'two')").await;
    let mut reader = scene.open().await;
    reader.state = scene.snapshot().await.0;
    scene.execute("UPDATE t SET id = -1 WHERE id = 1; UPDATE t SET id = 1 WHERE id = 2; UPDATE t SET id = 2 WHERE id = -1").await;
    scene.execute("INSERT INTO t VALUES (3001, 'x'); UPDATE t SET id = 3002 WHERE id = 3001").await;
    scene.execute("DELETE FROM t WHERE id = 3002; INSERT INTO t VALUES (3002, 'again')").await;
    scene.catch_up(&mut reader).await;
    use Operation::{Delete, Insert};
    let expected = [
        (Delete, "1"),
        (Insert, "-1"),
        (Delete, "2"),
        (Insert, "1"),
        (Delete, "-1"),
        (Insert, "2"),
        (Insert, "3001"),
        (Delete, "3001"),
        (Insert, "3002"),
        (Delete, "3002"),
        (Insert, "3002"),
    ];
    assert_eq!(of(&reader, "public.t"), expected);
    assert_same("stream", &reader.state, &scene.truth().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_identity_gives_the_row_before_and_keeps_the_primary_key_as_key() {
    let scene = Scene::new(
        Version::V15,
        "CREATE TABLE t (n int, id int PRIMARY KEY); ALTER TABLE t REPLICA IDENTITY FULL; INSERT INTO t VALUES (1, 7)",
    )
    .await;
    let mut reader = scene.open().await;
    scene.execute("UPDATE t SET n = 2; UPDATE t SET id = 8; DELETE FROM t").await;
    scene.catch_up(&mut reader).await;
    let seen: Vec<_> = reader.seen.iter().filter(|seen| seen.relation == "public.t").cloned().collect();
    let texts: Vec<_> = seen.iter().map(|seen| (seen.operation, seen.key.as_str(), seen.old.as_deref(), seen.new.as_deref())).collect();
    use Operation::{Delete, Insert, Update};
    assert_eq!(
        texts,
        [
            (Update, "7", Some(r#"{"n":1,"id":7}"#), Some(r#"{"n":2,"id":7}"#)),
            (Delete, "7", Some(r#"{"n":2,"id":7}"#), None),
            (Insert, "8", None, Some(r#"{"n":2,"id":8}"#)),
            (Delete, "8", Some(r#"{"n":2,"id":8}"#), None),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_by_index_is_the_key_even_beside_a_primary_key() {
    let scene = Scene::new(
        Version::V15,
        "CREATE TABLE t (id int PRIMARY KEY, first text NOT NULL, last text NOT NULL, n int); CREATE UNIQUE INDEX names ON t (last, first) INCLUDE (n);
         ALTER TABLE t REPLICA IDENTITY USING INDEX names; INSERT INTO t VALUES (1, 'f', 'l', 0), (2, 'g', 'm', 0)",
    ).await;
    let mut reader = scene.open().await;
    reader.state = scene.snapshot().await.0;
    scene.execute("UPDATE t SET id = 11 WHERE id = 1; UPDATE t SET first = 'new' WHERE id = 2; DELETE FROM t WHERE id = 11").await;
    scene.catch_up(&mut reader).await;
    use Operation::{Delete, Insert, Update};
    assert_eq!(
        of(&reader, "public.t"),
        [(Update, r#"["l","f"]"#), (Delete, r#"["m","g"]"#), (Insert, r#"["m","new"]"#), (Delete, r#"["l","f"]"#)]
    );
    assert_same("stream", &reader.state, &scene.truth().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncate_empties_every_table_that_it_reaches_and_keeps_its_place() {
    let scene = Scene::new(
        Version::V15,
        "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY REFERENCES a); INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)",
    ).await;
    let mut reader = scene.open().await;
    reader.state = scene.snapshot().await.0;
    scene.execute("INSERT INTO a VALUES (7); TRUNCATE a CASCADE; INSERT INTO a VALUES (8)").await;
    scene.catch_up(&mut reader).await;
    use Operation::{Insert, Truncate};
    assert_eq!(of(&reader, "public.a"), [(Insert, "7"), (Truncate, ""), (Insert, "8")]);
    assert_eq!(of(&reader, "public.b"), [(Truncate, "")]);
    assert_same("stream", &reader.state, &scene.truth().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_transaction_comes_in_bounded_parts_that_are_the_same_when_read_again() {
    let scene = Scene::new(Version::V15, "CREATE TABLE t (id int PRIMARY KEY, t text)").await;
    let reader = scene.open().await;
    let resume = super::Resume::At { identity: reader.identity(), durable: reader.identity().epoch.parse().unwrap() };
    drop(reader);
    scene.execute("INSERT INTO t SELECT g, repeat('x', g % 1000) FROM generate_series(1, 60000) g").await;
    let mut runs = Vec::new();
    for _ in 0..2 {
        let mut reader = scene.open_at(&resume).await;
        let mut chunks = Vec::new();
        'read: loop {
            for item in reader.capture.next().await.unwrap() {
                match item {
                    Captured::Part(chunk) => chunks.push(chunk),
                    Captured::Commit { chunk, meta } => {
                        chunks.push(chunk);
                        assert_eq!(meta.changes, 60_000);
                        break 'read;
                    }
                    Captured::Idle { .. } => assert!(chunks.is_empty()),
                }
            }
        }
        assert!(chunks.len() > 15 && chunks.iter().all(|chunk| chunk.bytes().len() <= tidegate_api::chunk::MAX_CHUNK_BYTES));
        runs.push(chunks);
    }
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn savepoints_that_were_rolled_back_leave_nothing() {
    let scene = Scene::new(Version::V15, "CREATE TABLE t (id int PRIMARY KEY)").await;
    let mut reader = scene.open().await;
    scene
        .execute("BEGIN; INSERT INTO t VALUES (1); SAVEPOINT a; INSERT INTO t VALUES (2); ROLLBACK TO a; INSERT INTO t VALUES (3); COMMIT")
        .await;
    scene.catch_up(&mut reader).await;
    assert_eq!(of(&reader, "public.t"), [(Operation::Insert, "1"), (Operation::Insert, "3")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_may_change_between_transactions() {
    let scene = Scene::new(
        Version::V15,
        "CREATE TYPE pair AS (a int); CREATE TABLE t (id int PRIMARY KEY, gone int, a text, p pair); CREATE TABLE u (id int PRIMARY KEY); INSERT INTO t VALUES (1, 1, 'x')",
    ).await;
    let mut reader = scene.open().await;
    reader.state = scene.snapshot().await.0;
    scene.catch_up(&mut reader).await;
    for statement in [
        "INSERT INTO u VALUES (1)",
        "ALTER TABLE t ADD COLUMN b numeric DEFAULT 1.10",
        "ALTER TABLE u ADD COLUMN c text DEFAULT 'c'",
        "INSERT INTO t (id) VALUES (2)",
        "INSERT INTO u VALUES (2)",
        "ALTER TABLE t DROP COLUMN gone, ALTER a TYPE varchar(20)",
        "UPDATE t SET a = 'y', p = '(1)'",
        "ALTER TYPE pair ADD ATTRIBUTE b text",
        "UPDATE t SET p = '(2,z)'; UPDATE u SET c = 'd'",
        "ALTER TABLE t RENAME a TO renamed",
        "UPDATE t SET id = id + 10",
        "ALTER TABLE t DROP COLUMN renamed; ALTER TABLE t ADD COLUMN renamed int",
        "UPDATE t SET renamed = 5; ALTER TABLE t REPLICA IDENTITY FULL",
        "UPDATE t SET renamed = 6; ALTER TABLE t ALTER id TYPE bigint; UPDATE t SET renamed = 7",
    ] {
        scene.execute(statement).await;
        // A composite's fields are those of the catalogue: they may not change while its values are on the way.
        scene.catch_up(&mut reader).await;
    }
    assert_same("stream", &reader.state, &scene.truth().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_identity_of_other_columns_in_mid_stream_is_a_fault_by_name() {
    let scene = Scene::new(Version::V15, "CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL UNIQUE)").await;
    let mut reader = scene.open().await;
    scene.execute("INSERT INTO t VALUES (1, 1)").await;
    scene.catch_up(&mut reader).await;
    scene.execute("ALTER TABLE t REPLICA IDENTITY USING INDEX t_n_key").await;
    scene.execute("UPDATE t SET id = 2").await;
    let error = reader.until_error().await;
    assert_eq!((error.code(), error.is_transient()), (&code::KEY_MOVED, false), "{error}");
    assert!(error.to_string().contains("public.t"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_composite_that_changed_while_its_values_are_on_the_way_is_a_fault_by_name() {
    let scene = Scene::new(Version::V15, "CREATE TYPE pair AS (a int, b text); CREATE TABLE t (id int PRIMARY KEY, p pair)").await;
    let reader = scene.open().await;
    let resume = super::Resume::At { identity: reader.identity(), durable: reader.identity().epoch.parse().unwrap() };
    drop(reader);
    scene.execute("INSERT INTO t VALUES (1, '(1,secret)')").await;
    scene.execute("ALTER TYPE pair DROP ATTRIBUTE b").await;
    let mut reader = scene.open_at(&resume).await;
    let error = reader.until_error().await;
    assert_eq!((error.code(), error.is_transient()), (&code::TYPE_MOVED, false), "{error}");
    assert!(error.to_string().contains("public.t") && !format!("{error:?}").contains("secret"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn logical_messages_and_origins_are_passed_over() {
    let scene = Scene::new(Version::V15, "CREATE TABLE t (id int PRIMARY KEY)").await;
    let mut reader = scene.open().await;
    scene.execute("SELECT pg_logical_emit_message(false, 'x', 'y')").await;
    scene
        .execute("SELECT pg_logical_emit_message(true, 'x', 'y'); INSERT INTO t VALUES (1); SELECT pg_logical_emit_message(true, 'x', 'z')")
        .await;
    scene
        .execute(
            "BEGIN; SELECT pg_replication_origin_create('o'); SELECT pg_replication_origin_session_setup('o'); INSERT INTO t VALUES (2); \
             COMMIT; SELECT pg_replication_origin_session_reset(); SELECT pg_replication_origin_drop('o')",
        )
        .await;
    scene.catch_up(&mut reader).await;
    let resume = reader.resume();
    drop(reader);
    let mut reader = scene.open_at(&resume).await;
    scene.catch_up(&mut reader).await;
    assert_eq!(of(&reader, "public.t"), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_in_front_of_a_long_transaction_loses_and_repeats_nothing() {
    let scene = Scene::new(Version::V15, "CREATE TABLE t (id int PRIMARY KEY)").await;
    let mut reader = scene.open().await;
    let long = scene.server.connect(&scene.database).await;
    long.batch_execute("BEGIN; INSERT INTO t VALUES (1)").await.unwrap();
    scene.execute("INSERT INTO t SELECT g FROM generate_series(10, 29) g").await;
    scene.catch_up(&mut reader).await;
    let (resume, before) = (reader.resume(), reader.state.clone());
    drop(reader);
    long.batch_execute("INSERT INTO t VALUES (2); COMMIT").await.unwrap();
    let mut reader = scene.open_at(&resume).await;
    reader.state = before;
    scene.catch_up(&mut reader).await;
    assert_eq!(of(&reader, "public.t"), [(Operation::Insert, "1"), (Operation::Insert, "2")]);
    assert_same("stream", &reader.state, &scene.truth().await);
}
