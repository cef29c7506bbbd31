//! What may be chosen about a relay.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// What may be chosen about a relay.
#[derive(Clone)]
pub struct Options {
    /// A segment is closed when it has reached this many bytes.
    pub segment_bytes: u64,
    /// The most bytes that one source's segments take; then nothing more is captured until a group has caught up.
    pub max_bytes: u64,
    /// What every group has passed is kept this long, so that a group can be set back; less where `max_bytes` or the disk
    /// leaves no room.
    pub keep: Duration,
    /// A group's checkpoint is written at most this often.
    pub checkpoint_every: Duration,
    /// The position of an idle source is written at most this often.
    pub idle_every: Duration,
    /// The first and the longest pause of a capture that has failed; a pause is up to twice the one before.
    pub backoff: (Duration, Duration),
    /// The time of day.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            max_bytes: 100 << 30,
            keep: Duration::from_secs(3600),
            checkpoint_every: Duration::from_millis(100),
            idle_every: Duration::from_secs(10),
            backoff: (Duration::from_millis(100), Duration::from_secs(10)),
            clock: Arc::new(SystemTime::now),
        }
    }
}

impl Options {
    /// Microseconds since 1970.
    pub(crate) fn now_us(&self) -> i64 {
        let since = (self.clock)().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("segment_bytes", &self.segment_bytes)
            .field("max_bytes", &self.max_bytes)
            .field("keep", &self.keep)
            .finish_non_exhaustive()
    }
}
