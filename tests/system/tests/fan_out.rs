//! Several pipelines read one source, each at its own pace.

use serde_json::json;
use tidegate_system_tests::config::{Config, write_program};
use tidegate_system_tests::daemon::for_ever_unless;
use tidegate_system_tests::writers::Writers;
use tidegate_system_tests::{Kind, Scene, Shop, Target, compare};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelines_of_one_source_do_not_wait_for_each_other() {
    let mut scene = Scene::plain(Kind::Postgres, 1000).await;
    let program =
        write_program(&scene.path().join("fan.json"), "fan", &json!([{"op": "drop-when-equals", "path": "status", "value": "cancelled"}]));
    let first = scene.target.clone();
    let second = Target::Sqlite(scene.path().join("second.db"));
    let third = Target::Sqlite(scene.path().join("third.db"));
    let config = Config::new(scene.path())
        .source(&scene.shop)
        .pipeline("first", &Shop::TABLES, None, &first)
        .pipeline("second", &Shop::TABLES, Some(&program), &second)
        .pipeline("third", &["shop.ledger", "shop.marker"], None, &third);
    scene.configure(&config);
    scene.daemon.start();
    scene.daemon.reaches("third", "running").await;
    scene.daemon.json(&["pipeline", "pause", "third"]);
    let writers = Writers::start(&scene.shop, scene.rows(), 2000, 5);
    arrives(&mut scene, &[("first", &first), ("second", &second)]).await;
    scene.daemon.kill();
    scene.daemon.start();
    writers.stop().await;
    scene.daemon.reaches("third", "paused").await;
    arrives(&mut scene, &[("first", &first), ("second", &second)]).await;
    scene.daemon.json(&["pipeline", "resume", "third"]);
    arrives(&mut scene, &[("first", &first), ("second", &second), ("third", &third)]).await;

    let source = scene.shop.documents().await;
    compare::assert_equal(&source, &first.documents("first").await);
    compare::assert_equal(&scene.shop.transformed(&program, scene.path()).await, &second.documents("second").await);
    let some = source.into_iter().filter(|(name, _)| name == "shop.ledger" || name == "shop.marker").collect();
    compare::assert_equal(&some, &third.documents("third").await);
}

async fn arrives(scene: &mut Scene, pipelines: &[(&str, &Target)]) {
    let key = scene.shop.mark().await;
    for (name, target) in pipelines {
        let there = async |_: &tidegate_system_tests::Daemon| target.has(name, "shop.marker", &key).await.then_some(());
        for_ever_unless(&mut scene.daemon, &format!("everything arrives in {name}"), there).await;
    }
}
