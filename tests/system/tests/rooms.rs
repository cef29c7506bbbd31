//! A stranger who knows one connector's folder knows them all.

use std::fs;

use crate::arrows::root;

/// What every destination connector has.
const DESTINATION: [&str; 6] = ["lib.rs", "config.rs", "destination.rs", "encode.rs", "client.rs", "error.rs"];

#[test]
fn destination_connectors_have_the_same_files() {
    // PostgreSQL is a source, too: what belongs to the destination lies one folder deeper.
    for (connector, folder) in [("sqlite", "src"), ("postgres", "src/destination")] {
        let connector = root().join("connectors").join(connector);
        for file in DESTINATION {
            let above = ["lib.rs", "destination.rs"].contains(&file);
            let place = connector.join(if above { "src" } else { folder }).join(file);
            assert!(place.exists(), "{} is missing", place.display());
        }
        assert!(connector.join("tests/main.rs").exists(), "{} has no tests", connector.display());
    }
}

#[test]
fn every_crate_says_what_it_is_for() {
    for parent in ["connectors", "host", "tests", "guest-sdk", "builtin-transforms"] {
        for entry in fs::read_dir(root().join(parent)).expect("the folder is there") {
            let folder = entry.expect("an entry").path();
            let main = ["src/lib.rs", "src/main.rs"].map(|file| folder.join(file)).into_iter().find(|file| file.exists());
            if let Some(main) = main {
                let text = fs::read_to_string(&main).expect("a source file");
                assert!(text.starts_with("//!"), "{} begins without crate docs", main.display());
            }
        }
    }
}

#[test]
fn no_file_is_called_mod_or_utils_or_common() {
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder is there") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                folders.push(path.clone());
            }
            let stem = name.strip_suffix(".rs").unwrap_or(&name);
            assert!(!["mod", "utils", "common"].contains(&stem), "{} has a name that says nothing", path.display());
        }
    }
}
