//! A row that the transform refuses: the pipeline pauses in front of it, says enough to find it and nothing of what it holds,
//! and the operator always has a way out.

use std::path::Path;

use serde_json::{Value, json};
use tidegate_system_tests::config::{Config, write_program};
use tidegate_system_tests::{Kind, PIPELINE, Scene};

const SECRET: &str = "what-only-the-row-knows";

fn requiring(path: &Path, note: &str) -> std::path::PathBuf {
    write_program(path, "markers", &json!([{"op": "require-equals", "path": "note", "value": note}]))
}

/// A pipeline of `shop.marker` alone, whose notes must be `marker`, paused in front of one that is not.
async fn paused_in_front_of_poison(kind: Kind) -> (Scene, Value) {
    let mut scene = Scene::plain(kind, 10).await;
    let program = requiring(&scene.path().join("program.json"), "marker");
    let config = Config::new(scene.path()).source(&scene.shop).pipeline(PIPELINE, &["shop.marker"], Some(&program), &scene.target);
    scene.configure(&config);
    scene.daemon.start();
    scene.arrives().await;
    scene.shop.execute(&format!("INSERT INTO shop.marker (note) VALUES ('marker'), ('{SECRET}')")).await;
    let status = scene.daemon.reaches(PIPELINE, "paused").await;
    (scene, status)
}

async fn assert_markers_equal(scene: &mut Scene) {
    scene.arrives().await;
    let expected = scene.shop.documents().await.remove("shop.marker");
    assert_eq!(scene.target.documents(PIPELINE).await.remove("shop.marker"), expected);
}

#[tokio::test]
async fn the_report_finds_the_row_and_tells_nothing_of_it() {
    let (mut scene, status) = paused_in_front_of_poison(Kind::Sqlite).await;
    let poison = &status["poison"];
    assert_eq!(poison["kind"], "required-value-differs");
    assert_eq!(poison["relation"], "shop.marker");
    assert_eq!(poison["ordinal"], 1);
    assert_eq!(status["error"]["code"], "TG0304");
    let query = format!("SELECT left(encode(sha256(id::text::bytea), 'hex'), 16) FROM shop.marker WHERE note = '{SECRET}'");
    let key_hash = scene.shop.server.value(&scene.shop.database, &query).await;
    assert_eq!(poison["key_hash"], key_hash);
    assert!(poison["position"].is_string() && poison["size_bytes"].as_u64() > Some(10), "{poison}");
    // Invariant 12
    assert!(!status.to_string().contains(SECRET) && !scene.daemon.log().contains(SECRET));
    let documents = scene.target.documents(PIPELINE).await;
    assert_eq!(documents["shop.marker"].len(), 1, "nothing of the refused transaction is written");
    assert_eq!(scene.daemon.terminate(), Some(0));
}

#[tokio::test]
async fn a_resume_without_a_cure_pauses_again_and_a_reset_over_the_mended_row_goes_on() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let (mut scene, before) = paused_in_front_of_poison(kind).await;
        scene.daemon.json(&["pipeline", "resume", PIPELINE]);
        let again = scene.daemon.reaches(PIPELINE, "paused").await;
        assert_eq!(again["poison"], before["poison"]);
        scene.shop.execute("UPDATE shop.marker SET note = 'marker'; INSERT INTO shop.marker (note) VALUES ('marker')").await;
        scene.daemon.json(&["pipeline", "reset", PIPELINE, "--yes"]);
        assert_markers_equal(&mut scene).await;
    }
}

#[tokio::test]
async fn a_pause_in_front_of_poison_is_found_again_after_a_restart() {
    let (mut scene, before) = paused_in_front_of_poison(Kind::Postgres).await;
    scene.daemon.kill();
    scene.daemon.start();
    let again = scene.daemon.reaches(PIPELINE, "paused").await;
    assert_eq!(again["poison"]["kind"], before["poison"]["kind"]);
    assert_eq!(again["poison"]["position"], before["poison"]["position"]);
}

#[tokio::test]
async fn a_changed_program_leaves_the_destination_alone_until_a_reset() {
    let (mut scene, _) = paused_in_front_of_poison(Kind::Sqlite).await;
    let before = scene.target.documents(PIPELINE).await;
    assert_eq!(scene.daemon.terminate(), Some(0));
    write_program(&scene.path().join("program.json"), "markers", &json!([{"op": "set", "path": "seen", "value": true}]));
    scene.daemon.start();
    // Invariant 6
    let status = scene.daemon.reaches(PIPELINE, "rebuilding").await;
    assert_eq!(status["error"]["code"], "TG0402");
    assert_eq!(scene.target.documents(PIPELINE).await, before);
    scene.daemon.json(&["pipeline", "reset", PIPELINE, "--yes"]);
    scene.arrives().await;
    let documents = scene.target.documents(PIPELINE).await.remove("shop.marker").unwrap();
    assert_eq!(documents.len(), 4);
    assert!(documents.values().all(|document| document.ends_with(r#","seen":true}"#)), "{documents:?}");
}
