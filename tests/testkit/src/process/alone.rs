//! A test in a process of its own: what it measures of the process is then its own.

use std::env;
use std::process::Command;

const ALONE: &str = "TIDEGATE_TEST_ALONE";

/// Whether this process runs nothing but `test`, named as `--exact` takes it. Where it does not, such a process is run to its
/// end, and the caller has nothing left to do.
///
/// # Panics
/// When the test fails there.
pub fn alone(test: &str) -> bool {
    if env::var_os(ALONE).is_some() {
        return true;
    }
    let program = env::current_exe().expect("a process knows its program");
    let output = Command::new(program).args(["--exact", test]).env(ALONE, "1").output().expect("the test's own program can be started");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}{}", String::from_utf8_lossy(&output.stderr));
    false
}
