//! The start: whoever asks is answered from the beginning, and what is away is waited for.

use std::net::TcpListener;

use tidegate_system_tests::config::Config;
use tidegate_system_tests::daemon::for_ever_unless;
use tidegate_system_tests::{Kind, PIPELINE, Scene, Shop};
use tidegate_testkit::{Postgres, Version};

#[tokio::test]
async fn the_socket_answers_while_a_source_keeps_the_start_waiting() {
    let mut scene = Scene::plain(Kind::Sqlite, 10).await;
    // It takes connections and never says a word.
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/shop", silent.local_addr().unwrap().port());
    let config = Config::new(scene.path()).source_at(&scene.shop, &url).pipeline(PIPELINE, &Shop::TABLES, None, &scene.target);
    scene.configure(&config);
    scene.daemon.start();
    let status = for_ever_unless(&mut scene.daemon, "status answers", async |daemon| daemon.status()).await;
    assert_eq!((&status["started"], &status["pipelines"][0]["state"]), (&false.into(), &"provisioning".into()), "{status}");
    assert!(scene.daemon.get("/livez").unwrap().starts_with("HTTP/1.1 200"));
    assert!(scene.daemon.get("/startupz").unwrap().starts_with("HTTP/1.1 503"));
    assert!(scene.daemon.get("/readyz").unwrap().starts_with("HTTP/1.1 503"));
    let act = scene.daemon.cli(&["pipeline", "pause", PIPELINE]);
    assert!(String::from_utf8_lossy(&act.stderr).contains("TG0405"), "there is nothing to act on yet: {act:?}");
    drop(silent);
    let source = for_ever_unless(&mut scene.daemon, "the outage is told", async |daemon| daemon.source("waiting")).await;
    assert_eq!(source["error"]["code"], "TG0101", "{source}");
    assert!(scene.daemon.get("/startupz").unwrap().starts_with("HTTP/1.1 200"), "it does what it can");
    assert_eq!(scene.daemon.terminate(), Some(0), "{}", scene.daemon.tail());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_is_down_at_the_start_is_tried_until_it_is_there() {
    let server: &'static Postgres = Box::leak(Box::new(Postgres::start(Version::V15)));
    let mut scene = Scene::plain(Kind::Sqlite, 10).await;
    scene.shop = Shop::create(server, 100).await;
    scene.configure(&Config::new(scene.path()).source(&scene.shop).pipeline(PIPELINE, &Shop::TABLES, None, &scene.target));
    server.stop();
    scene.daemon.start();
    let source = for_ever_unless(&mut scene.daemon, "the outage is told", async |daemon| daemon.source("waiting")).await;
    assert_eq!(source["error"]["code"], "TG0101", "{source}");
    server.start_again();
    scene.assert_equal().await;
    assert_eq!(warned_of_unchanged_values(&scene), 4, "nobody could look before: {}", scene.daemon.log());
    server.stop();
}

#[tokio::test]
async fn what_may_go_wrong_later_is_told_once_for_each_table() {
    let mut scene = Scene::plain(Kind::Sqlite, 10).await;
    scene.daemon.start();
    scene.assert_equal().await;
    assert_eq!(warned_of_unchanged_values(&scene), 4, "{}", scene.daemon.log());
}

fn warned_of_unchanged_values(scene: &Scene) -> usize {
    scene.daemon.log().lines().filter(|line| line.contains("TG0122") && line.contains("WARN")).count()
}
