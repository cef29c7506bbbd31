//! Which crate may depend on which: the table of docs/architecture.md, held over `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Crate → what of ours it may depend on, in what it ships.
const ARROWS: [(&str, &[&str]); 17] = [
    ("tidegate-api", &[]),
    ("tidegate-frame", &[]),
    ("tidegate-program", &[]),
    ("tidegate-program-guest", &["tidegate-frame", "tidegate-program"]),
    ("tidegate-builtin-transforms", &[]),
    ("tidegate-file", &["tidegate-api"]),
    ("tidegate-postgres", &["tidegate-api"]),
    ("tidegate-sqlite", &["tidegate-api"]),
    ("tidegate-relay", &["tidegate-api"]),
    ("tidegate-sandbox", &["tidegate-api", "tidegate-builtin-transforms", "tidegate-frame", "tidegate-program"]),
    ("tidegate-pipeline", &["tidegate-api", "tidegate-relay"]),
    ("tidegate-control", &["tidegate-api", "tidegate-pipeline", "tidegate-sandbox"]),
    (
        "tidegate-daemon",
        &[
            "tidegate-api",
            "tidegate-builtin-transforms",
            "tidegate-control",
            "tidegate-file",
            "tidegate-pipeline",
            "tidegate-postgres",
            "tidegate-program",
            "tidegate-relay",
            "tidegate-sandbox",
            "tidegate-sqlite",
        ],
    ),
    ("tidegate-testkit", &["tidegate-api"]),
    ("tidegate-conformance", &["tidegate-api", "tidegate-testkit"]),
    ("tidegate-system-tests", &["tidegate-testkit"]),
    ("tidegate-bench", &["tidegate-api", "tidegate-postgres", "tidegate-relay", "tidegate-testkit"]),
];

/// Crates → what more they may use in their tests.
const IN_TESTS: [(&str, &[&str]); 3] = [
    ("", &["tidegate-testkit"]),
    ("tidegate-postgres tidegate-sqlite", &["tidegate-conformance"]),
    ("tidegate-pipeline", &["tidegate-file", "tidegate-sqlite", "tidegate-conformance"]),
];

struct Package {
    name: String,
    folder: PathBuf,
    ships: BTreeSet<String>,
    tests: BTreeSet<String>,
    others: BTreeSet<String>,
}

#[test]
fn no_crate_depends_on_what_it_may_not() {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.into();
    let mut wrong = Vec::new();
    for package in packages() {
        let Some(allowed) = allowed.get(package.name.as_str()) else {
            wrong.push(format!("{} is not in the table", package.name));
            continue;
        };
        let extra = package.ships.iter().filter(|name| !allowed.contains(&name.as_str()));
        wrong.extend(extra.map(|name| format!("{} → {name}", package.name)));
        let in_tests = IN_TESTS.iter().filter(|(names, _)| names.is_empty() || names.split(' ').any(|name| name == package.name));
        let in_tests: BTreeSet<&str> = in_tests.flat_map(|(_, more)| more.iter().copied()).chain(allowed.iter().copied()).collect();
        let extra = package.tests.iter().filter(|name| !in_tests.contains(name.as_str()));
        wrong.extend(extra.map(|name| format!("{} → {name}, in tests", package.name)));
    }
    assert!(wrong.is_empty(), "arrows that the architecture does not have:\n{}", wrong.join("\n"));
}

#[test]
fn a_package_is_named_by_its_path() {
    let exceptions = BTreeMap::from([
        ("tidegate-frame", "guest-sdk/frame"),
        ("tidegate-program-guest", "builtin-transforms/guest"),
        ("tidegate-builtin-transforms", "builtin-transforms"),
        ("tidegate-system-tests", "tests/system"),
    ]);
    for package in packages() {
        let last = package.folder.file_name().expect("a package has a folder").to_string_lossy().into_owned();
        let folder = package.folder.to_string_lossy().into_owned();
        let expected = exceptions.get(package.name.as_str()).map_or(package.name == format!("tidegate-{last}"), |path| folder == *path);
        assert!(expected, "{} lies in {folder}", package.name);
    }
}

#[test]
fn each_driver_has_one_room() {
    let rooms: [(&str, &[&str]); 4] = [
        ("wasmtime", &["tidegate-sandbox"]),
        ("postgres-protocol", &["tidegate-postgres"]),
        ("rusqlite", &["tidegate-sqlite", "tidegate-relay", "tidegate-control", "tidegate-system-tests"]),
        ("axum", &["tidegate-control"]),
    ];
    for package in packages() {
        for (driver, owners) in rooms {
            assert!(!package.others.contains(driver) || owners.contains(&package.name.as_str()), "{} names {driver}", package.name);
        }
    }
}

fn packages() -> Vec<Package> {
    let root = root();
    let output = Command::new(env!("CARGO")).args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(&root).output();
    let output = output.expect("cargo can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    metadata["packages"].as_array().expect("there are packages").iter().map(|package| read(package, &root)).collect()
}

fn read(package: &Value, root: &Path) -> Package {
    let manifest = Path::new(package["manifest_path"].as_str().expect("a manifest"));
    let folder = manifest.parent().and_then(|folder| folder.strip_prefix(root).ok()).expect("packages lie in the workspace");
    let (mut ships, mut tests, mut others) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for dependency in package["dependencies"].as_array().expect("a list") {
        let name = dependency["name"].as_str().expect("a name").to_owned();
        match (dependency["path"].is_string(), dependency["kind"].as_str()) {
            (true, None) => ships.insert(name),
            (true, Some(_)) => tests.insert(name),
            (false, Some("dev")) => false,
            (false, _) => others.insert(name),
        };
    }
    Package { name: package["name"].as_str().expect("a name").to_owned(), folder: folder.to_owned(), ships, tests, others }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("two folders up").to_owned()
}
