//! SIGKILL at named moments and at random ones: afterwards the destination equals the transformed source, and every
//! transaction was applied once.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use tidegate_system_tests::writers::Writers;
use tidegate_system_tests::{Chance, Kind, PIPELINE, Scene, audit};

const SIGKILL: i32 = 9;

/// Starts the daemon; once the snapshot is there, every write to the destination is logged.
async fn start_audited(scene: &mut Scene, kind: Kind) {
    if kind == Kind::Postgres {
        audit::attach(&scene.target).await;
    }
    scene.daemon.start();
    scene.assert_equal().await;
    if kind == Kind::Sqlite {
        assert_eq!(scene.daemon.terminate(), Some(0), "{}", scene.daemon.tail());
        audit::attach(&scene.target).await;
        scene.daemon.start();
        scene.arrives().await;
    }
}

/// Kills the daemon at a moment of the stream, lets it start again, and looks at everything.
async fn survives_in_the_stream(kind: Kind, failpoint: &str) {
    let mut scene = Scene::programmed(kind, 2000).await;
    start_audited(&mut scene, kind).await;
    assert_eq!(scene.daemon.terminate(), Some(0), "{}", scene.daemon.tail());
    let first = scene.last_number().await;

    let writers = Writers::start(&scene.shop, scene.rows(), 2000, 1);
    scene.daemon.start_failing(&format!("{failpoint}=5*off->kill"));
    assert_eq!(scene.daemon.wait().signal(), Some(SIGKILL), "{failpoint} was not reached\n{}", scene.daemon.tail());
    scene.daemon.start();
    scene.arrives().await;
    let work = writers.stop().await;
    assert!(work.transactions > 0);
    scene.assert_equal().await;
    assert_eq!(scene.daemon.terminate(), Some(0), "{}", scene.daemon.tail());
    audit::check(&scene.target, first).await;
}

/// Kills the daemon while the first rows are read.
async fn survives_in_the_snapshot(kind: Kind) {
    const ROWS: u64 = 40_000; // at least ten chunks
    let mut scene = Scene::programmed(kind, ROWS).await;
    scene.daemon.start_failing("snapshot.chunk=3*off->kill");
    assert_eq!(scene.daemon.wait().signal(), Some(SIGKILL), "the snapshot was not reached\n{}", scene.daemon.tail());
    let before = scene.target.count(PIPELINE).await;
    assert!((1..ROWS / 2).contains(&before), "{before} rows of {ROWS} are not about 30 %");
    scene.shop.execute("DELETE FROM shop.orders WHERE id <= 500; UPDATE shop.orders SET status = 'paid' WHERE id <= 1000").await;
    scene.daemon.start();
    scene.assert_equal().await;
}

macro_rules! killed {
    ($($name:ident $failpoint:literal)*) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::survives_in_the_stream(super::Kind::Sqlite, $failpoint).await;
            })*

            #[tokio::test]
            async fn killed_in_the_snapshot() {
                super::survives_in_the_snapshot(super::Kind::Sqlite).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn killed_at_random_moments_under_load() {
                super::survives_random_kills(super::Kind::Sqlite).await;
            }
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::survives_in_the_stream(super::Kind::Postgres, $failpoint).await;
            })*

            #[tokio::test]
            async fn killed_in_the_snapshot() {
                super::survives_in_the_snapshot(super::Kind::Postgres).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn killed_at_random_moments_under_load() {
                super::survives_random_kills(super::Kind::Postgres).await;
            }
        }
    };
}

killed! {
    killed_after_decoding "capture.after-decode" // Invariant 1
    killed_before_the_relay_is_synced "relay.before-fsync" // Invariant 1
    killed_after_the_relay_is_synced "relay.after-fsync" // Invariant 1
    killed_before_applying "pipeline.before-apply" // Invariant 4
    killed_after_applying "pipeline.after-apply" // Invariant 3
    killed_before_acknowledging "pipeline.before-ack" // Invariant 2
}

/// Load, and kills wherever the daemon happens to be; no half transaction is ever visible.
async fn survives_random_kills(kind: Kind) {
    let kills = if std::env::var("TIDEGATE_TESTS").is_ok_and(|length| length == "full") { 30 } else { 5 };
    let mut chance = Chance::new(11);
    let mut scene = Scene::plain(kind, 5000).await;
    start_audited(&mut scene, kind).await;
    let first = scene.last_number().await;
    let writers = Writers::start(&scene.shop, scene.rows(), 2000, 11);
    for number in 1..=kills {
        // The moment of the kill is the input of this test: nothing is waited for.
        tokio::time::sleep(Duration::from_millis(20 + chance.below(1200))).await;
        scene.daemon.assert_running();
        assert_eq!(scene.target.balance(PIPELINE).await, 0, "half a transaction is visible before kill {number}");
        scene.daemon.kill();
        assert_eq!(scene.target.balance(PIPELINE).await, 0, "half a transaction is visible after kill {number}");
        scene.daemon.start();
    }
    scene.arrives().await;
    writers.stop().await;
    scene.assert_equal().await;
    assert_eq!(scene.daemon.terminate(), Some(0), "{}", scene.daemon.tail());
    audit::check(&scene.target, first).await;
    audit::check_deleted_keys_stay_away(&scene.target, first).await;
}
