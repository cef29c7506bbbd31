//! What the benchmarks of the whole way share: a source full of changes, and figures as ratios against a baseline that
//! was measured in the same run.
//!
//! Run them all with `tests/bench/run`. Nothing here is a test: figures are printed, never asserted.

pub mod ratio;
pub mod workload;
