//! What the tests of the daemon from outside share: the built binary as a child, a shop as the source, destinations read
//! back without any code of ours, and the comparison.
//!
//! Nothing here links a crate of the host or a connector: the tests see what an operator sees.

pub mod audit;
pub mod binary;
pub mod chance;
pub mod compare;
pub mod config;
pub mod daemon;
pub mod scene;
pub mod shop;
pub mod target;
pub mod writers;

pub use chance::Chance;
pub use daemon::Daemon;
pub use scene::{Kind, PIPELINE, Scene};
pub use shop::Shop;
pub use target::Target;
