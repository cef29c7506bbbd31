//! Waiting for a condition instead of for a time.

use std::time::{Duration, Instant};

/// How long a test waits for something that normally takes much less: long enough for a loaded machine with two cores.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How often a condition is asked.
pub const EVERY: Duration = Duration::from_millis(20);

/// Asks `condition` again and again until it gives something, and returns that.
///
/// # Panics
/// After [`PATIENCE`], naming `what`.
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut condition: impl FnMut() -> F) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(Instant::now() < end, "not within {} s: {what}", PATIENCE.as_secs());
        tokio::time::sleep(EVERY).await;
    }
}

/// As [`until`], for a thread that may block.
///
/// # Panics
/// After [`PATIENCE`], naming `what`.
pub fn until_blocking<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < end, "not within {} s: {what}", PATIENCE.as_secs());
        std::thread::sleep(EVERY);
    }
}
