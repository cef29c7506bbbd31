//! A defect and a loss stay where they are: they are told by name, the others go on, and the operator has a way out.

use tidegate_system_tests::config::Config;
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
