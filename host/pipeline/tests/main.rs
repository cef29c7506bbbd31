//! Pipelines between a real relay and real destinations; the in-memory one where faults come on order.

mod batches;
mod files;
mod operator;
mod outages;
mod poison;
mod runs;
mod snapshots;
mod support;
