//! Servers go away and come back, disks fill up and are emptied: the daemon says so, keeps trying, and loses nothing.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tidegate_system_tests::config::Config;
use tidegate_system_tests::daemon::for_ever_unless;
use tidegate_system_tests::writers::Writers;
use tidegate_system_tests::{Daemon, Kind, PIPELINE, Scene, Shop, Target};
use tidegate_testkit::{Postgres, Version};

/// A server that the test may kill; it stays for the length of the process, which then stops it.
fn own_server() -> &'static Postgres {
    Box::leak(Box::new(Postgres::start(Version::V15)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_source_is_tried_until_it_is_back() {
    let server = own_server();
    let mut scene = Scene::plain(Kind::Sqlite, 500).await;
    scene.shop = Shop::create(server, 500).await;
    let config = Config::new(scene.path()).source(&scene.shop).pipeline(PIPELINE, &Shop::TABLES, None, &scene.target);
    scene.configure(&config);
    scene.daemon.start();
    scene.assert_equal().await;
    server.kill();
    let source = for_ever_unless(&mut scene.daemon, "the outage is told", async |daemon| daemon.source("waiting")).await;
    assert_eq!(source["error"]["code"], "TG0101", "{source}");
    server.start_again();
    scene.shop.execute("UPDATE shop.orders SET status = 'paid' WHERE id < 100").await;
    scene.assert_equal().await;
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_destination_is_tried_until_it_is_back() {
    let server = own_server();
    let mut scene = Scene::plain(Kind::Sqlite, 500).await;
    scene.target = Target::postgres(server).await;
    let config = Config::new(scene.path()).source(&scene.shop).pipeline(PIPELINE, &Shop::TABLES, None, &scene.target);
    scene.configure(&config);
    scene.daemon.start();
    scene.assert_equal().await;
    server.kill();
    scene.shop.execute("UPDATE shop.orders SET status = 'paid' WHERE id < 100").await;
    for_ever_unless(&mut scene.daemon, "attempts are counted", async |daemon| {
        daemon.pipeline(PIPELINE).filter(|status| status["retries"].as_u64() > Some(0))
    })
    .await;
    server.start_again();
    scene.assert_equal().await;
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_acknowledges_nothing_and_goes_on_when_there_is_space() {
    let scene = Scene::plain(Kind::Postgres, 100).await;
    let disk = SmallDisk::make(&scene.path().join("disk"));
    acknowledges_nothing_and_goes_on(scene, disk).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_refuses_even_the_log_acknowledges_nothing_and_goes_on() {
    let scene = Scene::plain(Kind::Postgres, 100).await;
    let disk = SmallDisk::limited(&scene.path().join("disk"));
    acknowledges_nothing_and_goes_on(scene, disk).await;
}

async fn acknowledges_nothing_and_goes_on(mut scene: Scene, disk: SmallDisk) {
    let config = Config::new(disk.folder()).source(&scene.shop).pipeline(PIPELINE, &Shop::TABLES, None, &scene.target);
    scene.configure(&config);
    scene.daemon.start();
    scene.assert_equal().await;
    let writers = Writers::start(&scene.shop, scene.rows(), 2000, 9);
    disk.fill(&scene.daemon);
    let source = for_ever_unless(&mut scene.daemon, "the full disk is told", async |daemon| daemon.source("waiting")).await;
    assert!(["TG0201", "TG0206"].contains(&source["error"]["code"].as_str().unwrap_or_default()), "{source}");
    // Invariant 1
    let ahead = format!(
        "SELECT confirmed_flush_lsn <= '{}'::pg_lsn FROM pg_replication_slots WHERE slot_name = '{}'",
        source["position"].as_str().unwrap_or_default(),
        scene.shop.slot()
    );
    assert_eq!(scene.shop.server.value(&scene.shop.database, &ahead).await, "t", "the slot has confirmed more than the relay holds");
    disk.empty(&scene.daemon);
    writers.stop().await;
    scene.assert_equal().await;
    scene.daemon.kill();
}

/// A place that can be made to refuse every byte: a small file system where one may be mounted (by root, outside of most
/// containers), else the daemon's own limit of file sizes.
enum SmallDisk {
    Mounted(PathBuf),
    Limited(PathBuf),
}

impl SmallDisk {
    fn limited(folder: &Path) -> Self {
        fs::create_dir(folder).unwrap();
        Self::Limited(folder.to_owned())
    }

    fn make(folder: &Path) -> Self {
        fs::create_dir(folder).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=32m,mode=0700", "tmpfs"]).arg(folder).status();
        let mounted = mounted.is_ok_and(|status| status.success());
        if mounted { Self::Mounted(folder.to_owned()) } else { Self::Limited(folder.to_owned()) }
    }

    fn folder(&self) -> &Path {
        let (Self::Mounted(folder) | Self::Limited(folder)) = self;
        folder
    }

    /// Leaves no byte free.
    fn fill(&self, daemon: &Daemon) {
        match self {
            Self::Mounted(folder) => {
                let mut ballast = fs::File::create(folder.join("ballast")).unwrap();
                while ballast.write_all(&[0; 65536]).is_ok() {}
                while ballast.write_all(&[0; 512]).is_ok() {}
            }
            Self::Limited(_) => limit(daemon, "1:"),
        }
    }

    fn empty(&self, daemon: &Daemon) {
        match self {
            Self::Mounted(folder) => fs::remove_file(folder.join("ballast")).unwrap(),
            Self::Limited(_) => limit(daemon, "unlimited:"),
        }
    }
}

fn limit(daemon: &Daemon, bytes: &str) {
    let done = Command::new("prlimit").args(["--pid", &daemon.id().to_string(), &format!("--fsize={bytes}")]).status();
    assert!(done.is_ok_and(|status| status.success()), "prlimit is missing: apt-get install util-linux");
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let Self::Mounted(folder) = self {
            let _ = Command::new("umount").arg("--lazy").arg(folder).status();
        }
    }
}
