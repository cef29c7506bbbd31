//! A defect and a loss stay where they are: they are told by name, the others go on, and the operator has a way out.

use std::fs;

use tidegate_system_tests::config::{Config, write_program};
use tidegate_system_tests::daemon::for_ever_unless;
use tidegate_system_tests::{Kind, PIPELINE, Scene, Shop, Target};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_capture_that_panics_is_a_fault_of_its_source_and_a_resume_starts_it_again() {
    let mut scene = Scene::plain(Kind::Sqlite, 10).await;
    scene.daemon.start_failing("capture.after-decode=1*panic");
    scene.daemon.reaches(PIPELINE, "running").await;
    scene.shop.mark().await;
    let source = for_ever_unless(&mut scene.daemon, "the fault is told", async |daemon| daemon.source("faulted")).await;
    assert_eq!(source["error"]["code"], "TG0013", "{source}");
    assert!(source["error"]["fix"].as_str().unwrap().contains("tidegate pipeline resume"), "{source}");
    let ready = scene.daemon.get("/readyz").unwrap();
    assert!(ready.starts_with("HTTP/1.1 503") && ready.contains("TG0013"), "{ready}");
    assert!(scene.daemon.log().contains("source shop has stopped"), "{}", scene.daemon.log());
    scene.daemon.json(&["pipeline", "resume", PIPELINE]);
    scene.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pipeline_that_panics_at_work_is_faulted_and_a_resume_loses_nothing() {
    let mut scene = Scene::plain(Kind::Sqlite, 10).await;
    scene.daemon.start_failing("pipeline.before-apply=1*panic");
    scene.daemon.reaches(PIPELINE, "running").await;
    scene.shop.mark().await;
    let status = scene.daemon.reaches(PIPELINE, "faulted").await;
    assert_eq!(status["error"]["code"], "TG0013", "{status}");
    assert!(scene.daemon.get("/readyz").unwrap().starts_with("HTTP/1.1 503"));
    scene.daemon.json(&["pipeline", "resume", PIPELINE]);
    scene.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pipeline_that_panics_at_rest_says_so_and_can_still_be_resumed() {
    let mut scene = Scene::plain(Kind::Sqlite, 10).await;
    scene.daemon.start_failing("pipeline.at-rest=1*panic");
    scene.assert_equal().await;
    scene.daemon.json(&["pipeline", "pause", PIPELINE]);
    let told =
        async |daemon: &tidegate_system_tests::Daemon| daemon.pipeline(PIPELINE).filter(|status| status["error"]["code"] == "TG0013");
    for_ever_unless(&mut scene.daemon, "the defect is told", told).await;
    scene.daemon.json(&["pipeline", "resume", PIPELINE]);
    scene.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pipeline_whose_module_is_damaged_faults_alone_and_both_ways_out_work() {
    let mut scene = Scene::plain(Kind::Sqlite, 100).await;
    let program = write_program(&scene.path().join("pinned.json"), "pinned", &serde_json::json!([{"op": "remove", "path": "note"}]));
    let pinned = Target::Sqlite(scene.path().join("pinned.db"));
    let config = Config::new(scene.path()).source(&scene.shop).pipeline(PIPELINE, &Shop::TABLES, None, &scene.target).pipeline(
        "pinned",
        &["shop.orders", "shop.marker"],
        Some(&program),
        &pinned,
    );
    scene.configure(&config);
    scene.daemon.start();
    scene.assert_equal().await;
    let module = scene.daemon.reaches("pinned", "running").await["module"].as_str().unwrap().to_owned();
    let file = scene.path().join("data/modules").join(&module);
    let whole = fs::read(&file).unwrap();
    for restored in [true, false] {
        assert_eq!(scene.daemon.terminate(), Some(0));
        fs::remove_file(&file).unwrap();
        fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        scene.daemon.start();
        let status = scene.daemon.reaches("pinned", "faulted").await;
        assert_eq!((&status["error"]["code"], &status["module"]), (&"TG0306".into(), &module.as_str().into()), "{status}");
        assert!(status["position"].is_string(), "{status}");
        scene.assert_equal().await;
        assert!(!scene.daemon.cli(&["pipeline", "resume", "pinned"]).status.success(), "nothing was mended");
        assert_eq!(scene.daemon.pipeline("pinned").unwrap()["state"], "faulted");
        let way_out = if restored { "resume" } else { "reset" };
        if restored {
            fs::remove_file(&file).unwrap();
            fs::write(&file, &whole).unwrap();
        }
        scene.daemon.json(&["pipeline", way_out, "pinned"]);
        let key = scene.shop.mark().await;
        let there = async |_: &tidegate_system_tests::Daemon| pinned.has("pinned", "shop.marker", &key).await.then_some(());
        for_ever_unless(&mut scene.daemon, way_out, there).await;
    }
    let expected = scene.shop.transformed(&program, scene.path()).await;
    assert_eq!(pinned.documents("pinned").await["shop.orders"], expected["shop.orders"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelines_beside_one_that_began_its_source_anew_say_that_they_must_be_reset_too() {
    let mut scene = Scene::plain(Kind::Sqlite, 100).await;
    let beside = Target::Sqlite(scene.path().join("beside.db"));
    let config = Config::new(scene.path()).source(&scene.shop).pipeline(PIPELINE, &Shop::TABLES, None, &scene.target).pipeline(
        "beside",
        &Shop::TABLES,
        None,
        &beside,
    );
    scene.configure(&config);
    scene.daemon.start();
    scene.assert_equal().await;
    scene.daemon.reaches("beside", "running").await;
    scene.daemon.json(&["slots", "drop", "shop", "--yes"]);
    scene.daemon.json(&["pipeline", "reset", PIPELINE, "--yes"]);
    let status = scene.daemon.reaches("beside", "faulted").await;
    assert_eq!(status["error"]["code"], "TG0210", "{status}");
    assert!(status["error"]["fix"].as_str().unwrap().contains("`tidegate pipeline reset`"), "{status}");
    scene.assert_equal().await;
    scene.daemon.json(&["pipeline", "reset", "beside", "--yes"]);
    scene.daemon.reaches("beside", "running").await;
    scene.assert_equal().await;
    tidegate_system_tests::compare::assert_equal(&scene.shop.documents().await, &beside.documents("beside").await);
}
