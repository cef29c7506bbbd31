//! What an operator does all day: look, pause, resume, stop, and be told when something is not allowed.

use tidegate_system_tests::config::Config;
use tidegate_system_tests::daemon::{Signal, for_ever_unless, text};
use tidegate_system_tests::writers::Writers;
use tidegate_system_tests::{Daemon, Kind, PIPELINE, Scene, Shop, Target};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_holds_over_a_restart_and_a_resume_loses_nothing() {
    let mut scene = Scene::programmed(Kind::Sqlite, 500).await;
    scene.daemon.start();
    scene.assert_equal().await;
    scene.daemon.json(&["pipeline", "pause", PIPELINE]);
    scene.daemon.reaches(PIPELINE, "paused").await;
    let before = scene.target.documents(PIPELINE).await;
    let position = scene.daemon.pipeline(PIPELINE).unwrap()["position"].take();
    let writers = Writers::start(&scene.shop, scene.rows(), 2000, 3);
    scene.daemon.kill();
    scene.daemon.start();
    let status = scene.daemon.reaches(PIPELINE, "paused").await;
    assert!(position.is_string() && status["position"] == position, "it still shows where it is: {position}, {status}");
    writers.stop().await;
    assert!(scene.target.documents(PIPELINE).await == before, "a paused pipeline writes nothing");
    scene.daemon.json(&["pipeline", "resume", PIPELINE]);
    scene.daemon.reaches(PIPELINE, "running").await;
    scene.assert_equal().await;
    let status = scene.daemon.pipeline(PIPELINE).unwrap();
    assert!(status["transactions"].as_u64() > Some(0) && status["rows"].as_u64() > Some(0), "{status}");
}

#[tokio::test]
async fn a_reset_fills_the_destination_anew() {
    let mut scene = Scene::plain(Kind::Postgres, 500).await;
    scene.daemon.start();
    scene.assert_equal().await;
    let tampered = "UPDATE documents SET document = '{}' WHERE key = '1'; DELETE FROM documents WHERE key = '2'";
    let Target::Postgres(server, database) = &scene.target else { unreachable!("a PostgreSQL scene") };
    server.execute(database, &format!("SET search_path = tidegate; {tampered}")).await;
    scene.daemon.json(&["pipeline", "reset", PIPELINE, "--yes"]);
    scene.assert_equal().await;
    let list = scene.daemon.json(&["pipeline", "list"]);
    assert_eq!(list[0]["name"], PIPELINE);
}

#[tokio::test]
async fn a_second_daemon_on_the_same_data_is_refused() {
    let mut scene = Scene::plain(Kind::Sqlite, 10).await;
    scene.daemon.start();
    scene.arrives().await;
    let mut second = Daemon::new(&scene.path().join("tidegate.yaml"));
    second.start();
    assert_eq!(second.wait().code(), Some(3));
    assert!(second.log().contains("TG0009"), "{}", second.log());
    scene.assert_equal().await;
}

#[tokio::test]
async fn the_socket_answers_to_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let mut scene = Scene::plain(Kind::Sqlite, 10).await;
    scene.daemon.start();
    scene.arrives().await;
    let socket = scene.daemon.socket().expect("a socket in data_dir");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let ask = |path: &str| scene.daemon.get(path).expect("an answer");
    assert!(ask("/livez").starts_with("HTTP/1.1 200"));
    assert!(ask("/readyz").starts_with("HTTP/1.1 200"));
    let metrics = ask("/metrics");
    assert!(metrics.starts_with("HTTP/1.1 200") && metrics.contains("tidegate_"), "{metrics}");
    assert!(ask("/nowhere").starts_with("HTTP/1.1 4"));
}

#[tokio::test]
async fn slots_are_shown_and_dropped() {
    let mut scene = Scene::plain(Kind::Sqlite, 10).await;
    scene.daemon.start();
    scene.arrives().await;
    let slots = scene.daemon.json(&["slots", "list"]);
    assert_eq!(slots[0]["name"], "shop");
    assert_eq!(scene.daemon.terminate(), Some(0));
    let count = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()";
    assert_eq!(scene.shop.server.value(&scene.shop.database, count).await, "1");
    scene.daemon.json(&["slots", "drop", "shop", "--yes"]);
    assert_eq!(scene.shop.server.value(&scene.shop.database, count).await, "0");
    assert_eq!(scene.shop.server.value(&scene.shop.database, "SELECT count(*) FROM pg_publication").await, "0");
}

#[tokio::test]
async fn a_pipeline_that_is_taken_out_of_the_configuration_is_told_until_the_operator_lets_it_go() {
    let mut scene = Scene::plain(Kind::Sqlite, 100).await;
    let old = Target::Sqlite(scene.path().join("old.db"));
    let alone = Config::new(scene.path()).source(&scene.shop).pipeline(PIPELINE, &Shop::TABLES, None, &scene.target);
    scene.configure(&alone.clone().pipeline("old", &["shop.marker"], None, &old));
    scene.daemon.start();
    scene.assert_equal().await;
    scene.daemon.reaches("old", "running").await;
    let refused = scene.daemon.cli(&["pipeline", "remove", "old", "--yes"]);
    assert_eq!(refused.status.code(), Some(2), "it is configured");
    assert!(text(&refused.stderr).contains("TG0409"), "{}", text(&refused.stderr));
    assert_eq!(scene.daemon.terminate(), Some(0));

    scene.configure(&alone);
    scene.daemon.start();
    scene.assert_equal().await;
    let status = scene.daemon.status().unwrap();
    let left = &status["removed"][0];
    assert_eq!((&left["name"], &left["source"]), (&"old".into(), &"shop".into()), "{status}");
    assert!(left["position"].is_string() && left["relay_bytes"].is_number(), "{left}");
    let shown = text(&scene.daemon.cli(&["status"]).stdout);
    assert!(shown.contains("TG0410") && shown.contains("tidegate pipeline remove"), "{shown}");
    let log = scene.daemon.log();
    let warnings = log.lines().filter(|line| line.contains("TG0410") && line.contains(r#""pipeline":"old""#)).count();
    assert_eq!(warnings, 1, "one warning at the start\n{log}");

    let unknown = scene.daemon.cli(&["pipeline", "remove", "odl", "--yes"]);
    assert!(text(&unknown.stderr).contains("TG0015") && text(&unknown.stderr).contains("`old`"), "{}", text(&unknown.stderr));
    scene.daemon.json(&["pipeline", "remove", "old", "--yes"]);
    assert_eq!(scene.daemon.status().unwrap()["removed"].as_array().map(Vec::len), Some(0));
    scene.assert_equal().await;
    assert_eq!(scene.daemon.terminate(), Some(0));
    let control = rusqlite::Connection::open(scene.path().join("data/control.db")).unwrap();
    let acts = "SELECT group_concat(act || ' ' || object || ' ' || outcome, ', ') FROM (SELECT * FROM audit ORDER BY id)";
    let acts: String = control.query_row(acts, [], |row| row.get(0)).unwrap();
    // Invariant 10
    assert_eq!(acts, "pipeline remove old begun, pipeline remove old failed, pipeline remove old begun, pipeline remove old done");
    scene.daemon.start();
    scene.assert_equal().await;
    assert_eq!(scene.daemon.log().matches("TG0410").count(), 1, "nothing is left of it at the next start");
    assert!(old.count("old").await > 0, "what it wrote stays");
}

#[tokio::test]
async fn a_pipeline_that_is_left_of_an_unknown_source_is_let_go_with_the_sources_log() {
    let mut scene = Scene::plain(Kind::Sqlite, 10).await;
    scene.daemon.start();
    scene.assert_equal().await;
    assert_eq!(scene.daemon.terminate(), Some(0));
    let source = std::path::Path::new("shop.ndjson");
    std::fs::write(scene.path().join(source), "").unwrap();
    scene.configure(&Config::new(scene.path()).file_source(source).pipeline("other", &["public.orders"], None, &scene.target));
    scene.daemon.start();
    let left = for_ever_unless(&mut scene.daemon, "what is left is told", async |daemon| {
        daemon.status().filter(|status| status["started"] == true).map(|status| status["removed"][0].clone())
    })
    .await;
    assert_eq!((&left["name"], &left["relay_bytes"]), (&PIPELINE.into(), &serde_json::Value::Null), "{left}");
    let segments = || std::fs::read_dir(scene.path().join("data/relay/shop")).unwrap().count();
    assert!(segments() > 0);
    scene.daemon.json(&["pipeline", "remove", PIPELINE, "--yes"]);
    assert_eq!(segments(), 0, "nobody is left who could read them");
}

#[tokio::test]
async fn a_second_signal_cuts_a_stop_short_and_loses_nothing() {
    let mut scene = Scene::plain(Kind::Postgres, 10).await;
    scene.daemon.start();
    scene.assert_equal().await;
    let Target::Postgres(server, database) = scene.target.clone() else { unreachable!("a PostgreSQL scene") };
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let holder = server.connect(&database).await;
        holder.batch_execute("BEGIN; LOCK TABLE tidegate.documents IN ACCESS EXCLUSIVE MODE").await.unwrap();
        scene.shop.mark().await;
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        for_ever_unless(&mut scene.daemon, "a run is in work", async |_| (server.value(&database, waits).await != "0").then_some(())).await;
        scene.daemon.signal(signal);
        for_ever_unless(&mut scene.daemon, "it stops", async |daemon| daemon.status().filter(|status| status["stopping"] == true)).await;
        scene.daemon.signal(signal);
        assert_eq!(scene.daemon.wait().code(), Some(code), "{}", scene.daemon.tail());
        drop(holder);
        scene.daemon.start();
        scene.assert_equal().await;
    }
}
