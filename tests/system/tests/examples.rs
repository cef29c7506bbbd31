//! What stands in examples/ is allowed.

use std::fs;
use std::process::Command;

use tidegate_system_tests::daemon::{for_ever_unless, text};
use tidegate_system_tests::{Daemon, Target, binary};

use crate::arrows::root;

#[test]
fn every_example_configuration_is_valid_and_explained() {
    let examples = fs::read_dir(root().join("examples/pipelines")).expect("there are examples");
    let folders: Vec<_> = examples.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect();
    assert!(!folders.is_empty());
    for folder in folders {
        assert!(folder.join("README.md").exists(), "{} is not explained", folder.display());
        let mut command = Command::new(binary::path());
        command.args(["validate", "-c"]).arg(folder.join("tidegate.yaml"));
        command.env("SHOP_URL", "postgres://shop@db.example.com/shop").env("TARGET_URL", "postgres://tidegate@db.example.com/warehouse");
        let output = command.output().expect("the binary can be started");
        assert!(output.status.success(), "{}: {}{}", folder.display(), text(&output.stdout), text(&output.stderr));
    }
}

#[tokio::test]
async fn the_example_without_a_database_does_what_its_readme_says() {
    let example = root().join("examples/pipelines/file-to-sqlite");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for file in ["tidegate.yaml", "public-orders.json", "shop.ndjson"] {
        fs::copy(example.join(file), folder.path().join(file)).expect("the example has it");
    }
    let mut daemon = Daemon::new(&folder.path().join("tidegate.yaml"));
    daemon.start();
    let target = Target::Sqlite(folder.path().join("orders.db"));
    let there = async |daemon: &Daemon| {
        let rows = |status: &serde_json::Value| status["rows"].as_u64().unwrap_or(0) + status["snapshot_rows"].as_u64().unwrap_or(0);
        daemon.pipeline("orders").filter(|status| status["state"] == "running" && rows(status) > 2)
    };
    for_ever_unless(&mut daemon, "both transactions have arrived", there).await;
    let documents = target.documents("orders").await;
    let readme = fs::read_to_string(example.join("README.md")).expect("it is explained");
    let shown = readme.lines().find_map(|line| line.strip_prefix("1|acme|")).expect("the README shows order 1");
    assert_eq!(documents["shop.orders"].get("1").map(String::as_str), Some(shown));
    assert_eq!(documents["shop.orders"].len(), 1, "order 2 is dropped");
    assert_eq!(daemon.terminate(), Some(0));
}
