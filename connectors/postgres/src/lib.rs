//! PostgreSQL at both ends: as a source by logical replication, and as a destination with an atomic checkpoint.

#![deny(missing_docs, unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod connect;
pub mod destination;
pub mod source;
