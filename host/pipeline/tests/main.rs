//! The integration tests of this crate.
