//! Documents: snapshot and stream give the server's own bytes.

use std::fmt::Write as _;

use tidegate_api::Source as _;
use tidegate_postgres::source::Unchanged;
use tidegate_testkit::Version;

use super::oracle::assert_same;
use super::types::{CASES, KEYS, USER_TYPES, inserts, literal};
use super::{Scene, apply, read_snapshot};

/// Tables of every type, filled with the first half of everything. Every second one has a full replica identity.
fn every_type() -> String {
    let mut sql = USER_TYPES.to_owned();
    sql.push_str("CREATE TABLE v.short_table (id int PRIMARY KEY);");
    for (index, case) in CASES.iter().enumerate() {
        let table = format!("v.t{index}");
        write!(sql, "CREATE TABLE {table} (id int PRIMARY KEY, v {name}, a {name}[]); {}", inserts(&table, case, 0), name = case.0)
            .unwrap();
        if index % 2 == 1 {
            write!(sql, "ALTER TABLE {table} REPLICA IDENTITY FULL;").unwrap();
        }
    }
    for (index, (name, values)) in KEYS.iter().enumerate() {
        write!(
            sql,
            "CREATE TABLE v.k{index} (n int, k {name} PRIMARY KEY); INSERT INTO v.k{index} VALUES (1, {});",
            literal(values[0], name)
        )
        .unwrap();
    }
    sql
}

async fn snapshot_and_stream_equal_the_servers_own(version: Version) {
    let scene = Scene::new(version, &every_type()).await;
    let mut reader = scene.open().await;
    let (state, boundary) = scene.snapshot().await;
    let truth = scene.truth().await;
    assert!(truth.len() > CASES.len());
    assert_same("snapshot", &state, &truth);

    reader.until(|reader| reader.position >= boundary).await;
    reader.state = state;
    for (index, case) in CASES.iter().enumerate() {
        scene.execute(&inserts(&format!("v.t{index}"), case, 1000)).await;
    }
    for (index, (name, values)) in KEYS.iter().enumerate() {
        for value in &values[1..] {
            scene.execute(&format!("INSERT INTO v.k{index} VALUES (1, {})", literal(value, name))).await;
        }
    }
    scene.catch_up(&mut reader).await;
    assert_same("inserts", &reader.state, &scene.truth().await);

    for index in 0..CASES.len() {
        let t = format!("v.t{index}");
        let sql = format!(
            "UPDATE {t} SET v = (SELECT v FROM {t} WHERE id = 1), a = (SELECT a FROM {t} WHERE id = 1) WHERE v IS NULL;
             UPDATE {t} SET v = NULL WHERE id = 1001; UPDATE {t} SET id = id + 10000 WHERE id = 1; DELETE FROM {t} WHERE id = 1002"
        );
        scene.execute(&sql).await;
    }
    for index in 0..KEYS.len() {
        scene.execute(&format!("UPDATE v.k{index} SET n = 2")).await;
    }
    scene.catch_up(&mut reader).await;
    assert_same("updates", &reader.state, &scene.truth().await);
    for index in 0..KEYS.len() {
        scene.execute(&format!("DELETE FROM v.k{index}")).await;
    }
    scene.catch_up(&mut reader).await;
    assert_same("deletes", &reader.state, &scene.truth().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_is_what_the_server_itself_makes_of_it_on_the_oldest_version() {
    snapshot_and_stream_equal_the_servers_own(Version::V15).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_is_what_the_server_itself_makes_of_it_on_the_newest_version() {
    snapshot_and_stream_equal_the_servers_own(Version::V18).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_names_come_through_unchanged() {
    let scene = Scene::new(
        Version::V15,
        r#"CREATE SCHEMA "Sch.1"; CREATE TABLE "Sch.1"."We""ird Täble.x" ("Id" int PRIMARY KEY, "select" text, "a b'c" text, "quo""ted" int,
            "back\slash" int, "ключ" text, "tab	here" int, "{}" int);
           INSERT INTO "Sch.1"."We""ird Täble.x" VALUES (1, 's', 'q', 1, 2, 'v', 4, 5);
           CREATE TABLE "Orders" (id int PRIMARY KEY, t text); INSERT INTO "Orders" VALUES (1, 'upper');
           CREATE TABLE orders (id int PRIMARY KEY, t text); INSERT INTO orders VALUES (1, 'lower')"#,
    )
    .await;
    let mut reader = scene.open().await;
    let (state, _) = scene.snapshot().await;
    assert_same("snapshot", &state, &scene.truth().await);
    reader.state = state;
    scene
        .execute(
            r#"UPDATE "Sch.1"."We""ird Täble.x" SET "quo""ted" = 9, "Id" = "Id" + 100; UPDATE "Orders" SET t = 'x'; DELETE FROM orders"#,
        )
        .await;
    scene.catch_up(&mut reader).await;
    assert_same("stream", &reader.state, &scene.truth().await);
    assert!(reader.seen.iter().any(|seen| seen.relation == r#""Sch.1"."We""ird Täble.x""#));
}

#[tokio::test(flavor = "multi_thread")]
async fn column_lists_row_filters_and_generated_columns_hold_for_snapshot_and_stream() {
    for version in Version::ALL {
        let mut scene = Scene::new(
            version,
            "CREATE TABLE narrow (a int, id int PRIMARY KEY, hidden text, b text); INSERT INTO narrow VALUES (1, 1, 'secret', 'x');
             CREATE TABLE filtered (id int PRIMARY KEY, a int); INSERT INTO filtered VALUES (1, 5), (2, 50);
             CREATE TABLE generated (id int PRIMARY KEY, a int, twice int GENERATED ALWAYS AS (a * 2) STORED, b text); INSERT INTO generated VALUES (1, 2);
             CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent);
             INSERT INTO parent VALUES (1); INSERT INTO child VALUES (2);
             CREATE PUBLICATION tg_pub FOR TABLE marker, narrow (b, id, a), filtered WHERE (a > 10), generated, ONLY parent, child",
        )
        .await;
        scene.execute("ALTER TABLE filtered REPLICA IDENTITY FULL").await;
        scene.read_all().await;
        let mut reader = scene.open().await;
        let (state, _) = scene.snapshot().await;
        assert_eq!(state["public.narrow"]["1"], r#"{"a":1,"id":1,"b":"x"}"#);
        assert_same("snapshot", &state, &scene.truth().await);
        reader.state = state;
        scene.execute(
            "INSERT INTO narrow VALUES (2, 2, 'secret', 'y'); INSERT INTO filtered VALUES (3, 7), (4, 70); UPDATE filtered SET a = 1 WHERE id = 2;
             UPDATE filtered SET a = 11 WHERE id = 1; UPDATE generated SET a = 3; INSERT INTO child VALUES (3)",
        ).await;
        scene.catch_up(&mut reader).await;
        assert_same("stream", &reader.state, &scene.truth().await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hstore_is_an_object_and_no_other_cast_to_json_is_run() {
    let scene = Scene::new(
        Version::V15,
        r#"CREATE EXTENSION hstore; CREATE TABLE h (id int PRIMARY KEY, h hstore, a hstore[]);
           CREATE TYPE pair AS ENUM ('x'); CREATE FUNCTION pair_json(pair) RETURNS json LANGUAGE sql AS $$ SELECT '{"cast": true}'::json $$;
           CREATE CAST (pair AS json) WITH FUNCTION pair_json(pair); CREATE TABLE p (id int PRIMARY KEY, p pair); INSERT INTO p VALUES (1, 'x');
           INSERT INTO h VALUES (1, '"a"=>"1", "b c"=>NULL, "q\"\\"=>"NULL"', ARRAY['x=>1'::hstore, NULL]), (2, '', '{}')"#,
    )
    .await;
    let mut reader = scene.open().await;
    let (state, _) = scene.snapshot().await;
    assert_eq!(state["public.p"]["1"], r#"{"id":1,"p":"x"}"#);
    scene.execute("UPDATE h SET id = id + 10; UPDATE p SET id = 2").await;
    reader.state = state;
    scene.catch_up(&mut reader).await;
    assert_eq!(reader.state["public.p"]["2"], r#"{"id":2,"p":"x"}"#);
    assert_eq!(reader.state["public.h"], scene.truth().await["public.h"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_s_own_settings_do_not_change_the_text_of_documents() {
    let scene = Scene::new(
        Version::V15,
        "CREATE TABLE t (id int PRIMARY KEY, ts timestamptz, i interval, f float8, b bytea, d date, m money, r regclass);
         INSERT INTO t VALUES (1, '2024-07-01 12:00:00+00', '1 day -02:03:04', 0.1, '\\x01', '2024-02-03', 1.5, 't')",
    )
    .await;
    let role = scene.database.as_str();
    scene.execute(&format!(
        "CREATE ROLE {role} LOGIN SUPERUSER; ALTER ROLE {role} SET DateStyle = 'German'; ALTER ROLE {role} SET IntervalStyle = 'iso_8601';
         ALTER ROLE {role} SET TimeZone = 'Asia/Tokyo'; ALTER ROLE {role} SET extra_float_digits = -10; ALTER ROLE {role} SET bytea_output = 'escape';
         ALTER ROLE {role} SET client_encoding = 'LATIN1'; ALTER ROLE {role} SET search_path = 'pg_catalog'; ALTER ROLE {role} SET statement_timeout = '1ms'"
    )).await;
    let source = super::source(&scene.server.url_as(role, &scene.database), &scene.database, &[]);
    let mut reader = super::Reader::new(source.open(&tidegate_api::Resume::New, &scene.tables).await.unwrap());
    let mut state = super::State::new();
    read_snapshot(source.snapshots().unwrap().begin(&scene.tables).await.unwrap().as_mut(), &mut state).await;
    assert_same("snapshot", &state, &scene.truth().await);
    reader.state = state;
    scene.execute("INSERT INTO t SELECT 2, ts, i, f, b, d, m, r FROM t").await;
    scene.catch_up(&mut reader).await;
    assert_same("stream", &reader.state, &scene.truth().await);
    drop((reader, source, scene.source.remove().await));
    scene.server.execute(&scene.database, &format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_of_many_rows_comes_in_bounded_chunks() {
    let scene = Scene::new(
        Version::V15,
        "CREATE TABLE many (id int PRIMARY KEY, t text); INSERT INTO many SELECT g, repeat('x', 300) FROM generate_series(1, 10000) g;
         CREATE TABLE few (id int PRIMARY KEY, t text); INSERT INTO few VALUES (1, repeat('y', 3000000)); ANALYZE many",
    )
    .await;
    let _reader = scene.open().await;
    let snapshot = scene.source.snapshots().unwrap().begin(&scene.tables).await.unwrap();
    assert_eq!(snapshot.estimated_rows(), None, "nobody knows how many rows a table has that was never analysed");
    drop(snapshot);
    scene.execute("ANALYZE").await;
    let mut snapshot = scene.source.snapshots().unwrap().begin(&scene.tables).await.unwrap();
    assert_eq!(snapshot.estimated_rows(), Some(10_001));
    let mut state = super::State::new();
    while let Some(chunk) = snapshot.next().await.unwrap() {
        assert!(chunk.len() <= tidegate_api::chunk::MAX_CHUNK_CHANGES);
        assert!(chunk.bytes().len() <= tidegate_api::chunk::MAX_CHUNK_BYTES || chunk.len() == 1);
        apply(&chunk, &mut state);
    }
    assert_eq!((state["public.many"].len(), state["public.few"]["1"].len()), (10_000, 3_000_000 + r#"{"id":1,"t":""}"#.len()));
}

#[tokio::test(flavor = "multi_thread")]
async fn unchanged_large_values_come_from_the_old_image_or_the_table_or_are_named() {
    let setup = |identity: &str| {
        format!(
            "CREATE TABLE big (id int PRIMARY KEY, small int, big text, arr text[]); ALTER TABLE big ALTER big SET STORAGE EXTERNAL, ALTER arr SET STORAGE EXTERNAL;
             ALTER TABLE big REPLICA IDENTITY {identity};
             INSERT INTO big SELECT k, k, repeat('abc\"\\é', 3000), array_fill('el,em'::text, ARRAY[3000]) FROM generate_series(1, 4) k"
        )
    };
    let changes = "UPDATE big SET small = small + 100 WHERE id < 3; UPDATE big SET id = id + 500 WHERE id = 2; UPDATE big SET arr = NULL WHERE id = 3; DELETE FROM big WHERE id = 4";
    for (identity, policy) in [("FULL", Unchanged::Refuse), ("DEFAULT", Unchanged::Reselect)] {
        let scene = Scene::new(Version::V15, &setup(identity)).await.with_policies(&[("public.big", policy)]);
        let mut reader = scene.open().await;
        let (state, _) = scene.snapshot().await;
        reader.state = state;
        scene.execute(changes).await;
        scene.catch_up(&mut reader).await;
        assert_same(identity, &reader.state, &scene.truth().await);
    }
    let scene = Scene::new(Version::V15, &setup("DEFAULT")).await;
    let mut reader = scene.open().await;
    scene.execute("UPDATE big SET small = 7 WHERE id = 1; UPDATE big SET id = 500 WHERE id = 2").await;
    let mut found = Vec::new();
    while found.len() < 3 {
        for item in reader.capture.next().await.unwrap() {
            if let tidegate_api::Captured::Commit { chunk, .. } = item {
                found.extend(super::seen(&chunk).into_iter().map(|seen| (seen.operation, seen.key, seen.new, seen.unavailable)));
            }
        }
    }
    use tidegate_api::Operation::{Delete, Insert, Update};
    let missing = Some("big, arr".to_owned());
    assert_eq!(
        found,
        [(Update, "1".to_owned(), None, missing.clone()), (Delete, "2".to_owned(), None, None), (Insert, "500".to_owned(), None, missing)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_gone_before_it_can_be_read_again_is_handed_on_as_deleted() {
    let setup = "CREATE TABLE big (id int PRIMARY KEY, small int, big text); ALTER TABLE big ALTER big SET STORAGE EXTERNAL;
        INSERT INTO big SELECT k, k, repeat('abc', 3000) FROM generate_series(1, 2) k";
    let scene = Scene::new(Version::V15, setup).await.with_policies(&[("public.big", Unchanged::Reselect)]);
    let reader = scene.open().await;
    let resume = super::Resume::At { identity: reader.identity(), durable: reader.identity().epoch.parse().unwrap() };
    drop(reader);
    scene.execute("UPDATE big SET small = 7 WHERE id = 1").await;
    scene.execute("DELETE FROM big WHERE id = 1").await;
    let mut reader = scene.open_at(&resume).await;
    scene.catch_up(&mut reader).await;
    let operations: Vec<_> = reader.seen.iter().filter(|seen| seen.relation == "public.big").map(|seen| seen.operation).collect();
    assert_eq!(operations, [super::Operation::Delete, super::Operation::Delete]);
}
