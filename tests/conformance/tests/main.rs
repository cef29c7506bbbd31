//! The suite passes what keeps its promises, and refuses liars.

mod liars;
mod memory;

use memory::Memory;
use tidegate_conformance::destination;
use tidegate_testkit::memory::MemoryStore;

#[tokio::test]
async fn the_destination_in_memory_keeps_every_promise() {
    destination::check(&Memory::honest(&MemoryStore::new())).await.unwrap();
}
