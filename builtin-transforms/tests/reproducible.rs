use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};
use tidegate_builtin_transforms::program_guest;

use crate::guest;

#[test]
fn the_digest_is_that_of_the_bytes() {
    let guest = program_guest();
    assert_eq!(guest.sha256, hex::encode(Sha256::digest(guest.bytes)));
    assert!(guest.bytes.len() < 512 << 10, "{} bytes", guest.bytes.len());
}

#[test]
fn another_copy_of_the_source_in_another_folder_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("elsewhere");
    copy_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &copy);
    let component = guest::build(&copy, &folder.path().join("another-target"), "tidegate-program-guest").unwrap();
    assert_eq!(hex::encode(Sha256::digest(&component)), program_guest().sha256);
}

/// Copies what git would hold: no hidden entries, no target folders.
fn copy_sources(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if name == "target" || name.to_string_lossy().starts_with('.') {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            copy_sources(&entry.path(), &to.join(name));
        } else {
            fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}
