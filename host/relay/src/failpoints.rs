//! The moments at which a test may stop, kill or slow this crate. They do nothing unless the process has set them up
//! (`fail::FailScenario`), which the daemon does only when told to by its environment.

/// A group is written, not synced.
pub(crate) fn before_fsync() {
    fail::fail_point!("relay.before-fsync", |_| ());
}

/// A group is durable, nobody knows it yet.
pub(crate) fn after_fsync() {
    fail::fail_point!("relay.after-fsync", |_| ());
}

/// Transactions were decoded, none is in the relay.
pub(crate) fn after_decode() {
    fail::fail_point!("capture.after-decode", |_| ());
}
