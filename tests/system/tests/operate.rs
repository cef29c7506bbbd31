//! What an operator does all day: look, pause, resume, stop, and be told when something is not allowed.

use tidegate_system_tests::writers::Writers;
use tidegate_system_tests::{Daemon, Kind, PIPELINE, Scene, Target};

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
