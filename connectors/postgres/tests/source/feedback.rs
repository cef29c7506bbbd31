//! Feedback: in time while everything behind is stalled, never ahead of what is durable, and it lets an idle slot advance.

use std::time::Duration;

use tidegate_api::{Captured, Lsn, Resume, Source as _};
use tidegate_testkit::{Postgres, Version, wait};

use super::{Reader, Scene, source};

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_reader_keeps_its_connection_longer_than_the_server_s_patience() {
    let server = Postgres::start_with(Version::V15, &[("wal_sender_timeout", "1s")]);
    let database = server.create_database("stalled").await;
    server.execute(&database, "CREATE TABLE t (id int PRIMARY KEY, t text)").await;
    let source = source(&server.url(&database), "stalled", &[]);
    let tables = ["public.t".parse().unwrap()];
    let mut reader = Reader::new(source.open(&Resume::New, &tables).await.unwrap());
    server.execute(&database, "INSERT INTO t VALUES (-1)").await;
    reader.until(|reader| reader.transactions == 1).await;
    let pid = server.value(&database, "SELECT active_pid FROM pg_replication_slots").await;
    // More than the hand-over and both sockets hold.
    server.execute(&database, "INSERT INTO t SELECT g, repeat(md5(g::text), 60) FROM generate_series(1, 40000) g").await;
    server.execute(&database, "INSERT INTO t VALUES (0, 'last')").await;
    let stalled = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'walsender' AND wait_event IN ('WalSenderWriteData')";
    wait::until("the server waits for us", async || (server.value(&database, stalled).await == "1").then_some(())).await;
    let patience = "SELECT clock_timestamp() - min(reply_time) < '1s' AND min(backend_start) < clock_timestamp() - interval '4s' FROM pg_stat_replication";
    wait::until("we answered for 4 times its patience", async || (server.value(&database, patience).await == "t").then_some(())).await;
    reader.until(|reader| reader.state.get("public.t").is_some_and(|rows| rows.contains_key("0"))).await;
    assert_eq!(reader.state["public.t"].len(), 40_002);
    assert_eq!(server.value(&database, "SELECT active_pid FROM pg_replication_slots").await, pid);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_was_confirmed_is_told_to_the_server() {
    let scene = Scene::new(Version::V15, "CREATE TABLE t (id int PRIMARY KEY)").await;
    let mut reader = scene.open().await;
    let confirmed = format!("SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = '{}'", scene.database);
    let replies = format!(
        "SELECT write_lsn FROM pg_stat_replication WHERE pid = (SELECT active_pid FROM pg_replication_slots WHERE slot_name = '{}')",
        scene.database
    );
    let start: Lsn = scene.value(&confirmed).await.parse().unwrap();
    scene.execute("INSERT INTO t VALUES (1)").await;
    let mut position = None;
    while position.is_none() {
        for item in reader.capture.next().await.unwrap() {
            if let Captured::Commit { meta, .. } = item {
                position = Some(meta.position);
            }
        }
    }
    let position = position.unwrap();
    wait::until("the server has heard that it arrived", async || {
        let written: Lsn = scene.value(&replies).await.parse().unwrap_or_default();
        (written >= position.0).then_some(())
    })
    .await;
    assert_eq!(scene.value(&confirmed).await.parse::<Lsn>().unwrap(), start);
    reader.capture.confirm(position);
    wait::until("the position is confirmed", async || {
        let now: Lsn = scene.value(&confirmed).await.parse().unwrap();
        assert!(now <= position.0);
        (now == position.0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_database_lets_its_slot_advance_while_another_writes() {
    let scene = Scene::new(Version::V15, "CREATE TABLE t (id int PRIMARY KEY)").await;
    let mut reader = scene.open().await;
    scene.catch_up(&mut reader).await;
    let other = scene.server.create_database("other").await;
    scene.server.execute(&other, "CREATE TABLE o (t text); INSERT INTO o SELECT repeat('x', 1000) FROM generate_series(1, 1000)").await;
    let head: Lsn = scene.value("SELECT pg_current_wal_lsn()").await.parse().unwrap();
    scene.server.execute(&other, "CHECKPOINT").await;
    reader.until(|reader| reader.position.0 >= head).await;
    let advanced = format!("SELECT confirmed_flush_lsn >= '{head}' FROM pg_replication_slots WHERE slot_name = '{}'", scene.database);
    wait::until("the slot has advanced", async || (scene.value(&advanced).await == "t").then_some(())).await;
    assert_eq!(reader.transactions, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_of_tables_that_nobody_reads_are_idle_moments() {
    let mut scene = Scene::new(Version::V15, "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE unread (id int PRIMARY KEY)").await;
    scene.execute("CREATE PUBLICATION tg_pub FOR TABLE marker, t, unread").await;
    scene.tables.retain(|table| table.table != "unread");
    let mut reader = scene.open().await;
    scene.execute("INSERT INTO unread VALUES (1)").await;
    let head: Lsn = scene.value("SELECT pg_current_wal_lsn()").await.parse().unwrap();
    reader.until(|reader| reader.position.0 >= head).await;
    assert_eq!(reader.transactions, 0);
    scene.execute("INSERT INTO unread VALUES (2); INSERT INTO t VALUES (1)").await;
    scene.catch_up(&mut reader).await;
    assert_eq!(reader.seen.iter().map(|seen| seen.relation.as_str()).collect::<Vec<_>>(), ["public.t", "public.marker"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_waits_only_for_what_is_on_the_way_and_is_found_again() {
    let server = Postgres::start(Version::V15);
    let database = server.create_database("restarted").await;
    server.execute(&database, "CREATE TABLE t (id int PRIMARY KEY)").await;
    let source = source(&server.url(&database), "restarted", &[]);
    let tables = ["public.t".parse().unwrap()];
    let mut reader = Reader::new(source.open(&Resume::New, &tables).await.unwrap());
    for kill in [false, true] {
        server.execute(&database, "INSERT INTO t SELECT coalesce(max(id), 0) + 1 FROM t").await;
        let stop = async {
            tokio::task::block_in_place(|| if kill { server.kill() } else { server.stop() });
        };
        let ((), error) = tokio::join!(stop, reader.until_error());
        assert!(error.is_transient(), "{error:?}");
        assert_eq!(error.code(), &tidegate_api::code::SOURCE_UNREACHABLE, "{error}");
        let Err(error) = source.open(&reader.resume(), &tables).await else { panic!("a stopped server was opened") };
        assert!(error.is_transient(), "{error:?}");
        server.start_again();
        let again = tokio::time::timeout(Duration::from_secs(30), source.open(&reader.resume(), &tables)).await.unwrap().unwrap();
        let state = std::mem::take(&mut reader.state);
        reader = Reader { position: reader.position, state, ..Reader::new(again) };
    }
    server.execute(&database, "INSERT INTO t VALUES (100)").await;
    reader.until(|reader| reader.state.get("public.t").is_some_and(|rows| rows.contains_key("100"))).await;
    assert_eq!(reader.state["public.t"].keys().collect::<Vec<_>>(), ["1", "100", "2"]);
}
