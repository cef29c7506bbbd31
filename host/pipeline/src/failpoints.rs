//! The moments at which a test may stop, kill or slow this crate. They do nothing unless the process has set them up.

/// A run is ready, the destination was not asked.
pub(crate) fn before_apply() {
    fail::fail_point!("pipeline.before-apply", |_| ());
}

/// The destination holds the run, its answer was not looked at.
pub(crate) fn after_apply() {
    fail::fail_point!("pipeline.after-apply", |_| ());
}

/// The answer was right, nothing is acknowledged.
pub(crate) fn before_ack() {
    fail::fail_point!("pipeline.before-ack", |_| ());
}

/// A chunk of a snapshot was stored.
pub(crate) fn snapshot_chunk() {
    fail::fail_point!("snapshot.chunk", |_| ());
}

/// Nobody works, and the lag is about to be looked at.
pub(crate) fn at_rest() {
    fail::fail_point!("pipeline.at-rest", |_| ());
}
