//! The binary under test.

use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{env, fs};

/// `$TIDEGATE`, else the binary that was built beside this test.
///
/// # Panics
/// When it is missing, or older than a file that it was built from: a test of yesterday's binary proves nothing.
pub fn path() -> PathBuf {
    if let Some(chosen) = env::var_os("TIDEGATE") {
        return PathBuf::from(chosen);
    }
    let test = env::current_exe().expect("a test knows where it is");
    let binary = test.ancestors().nth(2).expect("tests lie in target/release/deps").join("tidegate");
    let built = modified(&binary).unwrap_or_else(|| panic!("{} is missing: cargo build --release -p tidegate-daemon", binary.display()));
    let sources = fs::read_to_string(binary.with_extension("d")).expect("cargo leaves tidegate.d beside the binary");
    let newer = sources.split_whitespace().skip(1).find(|source| modified(Path::new(source)).is_some_and(|changed| changed > built));
    assert!(newer.is_none(), "{} is older than {}: cargo build --release -p tidegate-daemon", binary.display(), newer.unwrap_or_default());
    binary
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}
