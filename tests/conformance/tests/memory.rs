//! The destination in memory under the suite, honest or behind a liar.

use tidegate_api::{BoxFuture, Destination};
use tidegate_conformance::destination::{Harness, StoredDocument};
use tidegate_testkit::memory::{MemoryDestination, MemoryStore};

pub(crate) struct Memory {
    store: MemoryStore,
    open: fn(&MemoryStore) -> Box<dyn Destination>,
}

impl Memory {
    pub(crate) fn honest(store: &MemoryStore) -> Self {
        Self::with(store, |store| Box::new(MemoryDestination::new(store)))
    }

    pub(crate) fn with(store: &MemoryStore, open: fn(&MemoryStore) -> Box<dyn Destination>) -> Self {
        Self { store: store.clone(), open }
    }
}

impl Harness for Memory {
    fn open(&self) -> BoxFuture<'_, Box<dyn Destination>> {
        Box::pin(async { (self.open)(&self.store) })
    }

    fn documents<'a>(&'a self, pipeline: &'a str) -> BoxFuture<'a, Vec<StoredDocument>> {
        let of = |((collection, key), found): ((String, String), tidegate_testkit::memory::MemoryDocument)| StoredDocument {
            collection,
            key,
            partition_key: found.partition_key,
            document: found.document,
            change_id: found.change_id,
        };
        Box::pin(async move { self.store.documents(pipeline).into_iter().map(of).collect() })
    }
}
