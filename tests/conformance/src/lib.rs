//! The acceptance suite: what every connector must do, told by whether it does it.
//!
//! A connector's own tests make a [`destination::Harness`] for its system and call [`destination::check`] once:
//!
//! ```
//! use tidegate_conformance::destination::{self, Harness, StoredDocument};
//! # use tidegate_api::{BoxFuture, Destination};
//! # use tidegate_testkit::memory::{MemoryDestination, MemoryStore};
//!
//! struct Memory(MemoryStore);
//!
//! impl Harness for Memory {
//!     fn open(&self) -> BoxFuture<'_, Box<dyn Destination>> {
//!         Box::pin(async { Box::new(MemoryDestination::new(&self.0)) as Box<dyn Destination> })
//!     }
//!
//!     fn documents<'a>(&'a self, pipeline: &'a str) -> BoxFuture<'a, Vec<StoredDocument>> {
//! #       Box::pin(async move {
//! #           let all = self.0.documents(pipeline).into_iter();
//! #           all.map(|((collection, key), found)| StoredDocument {
//! #               collection, key, partition_key: found.partition_key, document: found.document, change_id: found.change_id
//! #           }).collect()
//! #       })
//! #   }
//! # }
//! # async fn example() {
//! destination::check(&Memory(MemoryStore::new())).await.unwrap();
//! # }
//! ```
//!
//! The suite itself is tested against liars: a destination that answers before it is durable, that confirms another position
//! than the batch's own, that forgets fences. It must refuse each.

#![deny(missing_docs, unsafe_code)]

pub mod batches;
pub mod destination;
