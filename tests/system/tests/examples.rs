//! What stands in examples/ is allowed.

use std::fs;
use std::process::Command;

use tidegate_system_tests::binary;
use tidegate_system_tests::daemon::text;

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
