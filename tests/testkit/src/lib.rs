//! What the tests share: real servers in folders of their own, child processes that never outlive the test, waiting.
//!
//! * [`postgres::Postgres`]: a throw-away cluster of a chosen version.
//! * [`process::Child`]: a program that ends with the test, however the test ends.
//! * [`memory`]: a destination that keeps every promise, and [`faults`] on order around any destination.
//! * [`wait`]: until a condition holds, with a bound.
//!
//! A server that cannot be had fails the test by its name and the command that installs it: nothing is skipped.

pub mod faults;
pub mod memory;
pub mod postgres;
pub mod process;
pub mod wait;

pub use postgres::{Postgres, Version};
