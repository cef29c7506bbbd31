//! Faults on order.

use std::sync::Arc;

use tidegate_api::{
    Batch, BatchOrigin, CommitPosition, Destination as _, Error, Fingerprint, Ownership, SourceIdentity, TransactionMeta, code,
};
use tidegate_testkit::faults::{Call, Fault, Faults};
use tidegate_testkit::memory::{MemoryDestination, MemoryStore};

fn owner() -> Ownership {
    let source = SourceIdentity { system: "7".into(), timeline: 1, database: "shop".into(), epoch: "0/10".into() };
    Ownership { pipeline: "all".into(), source, fingerprint: Fingerprint([1; 32]), fence: 1 }
}

fn batch(position: u64) -> [Batch; 1] {
    let meta = TransactionMeta { xid: 1, position: CommitPosition::new(position), commit_time_us: 0, changes: 0 };
    [Batch::in_memory(BatchOrigin::Transaction(meta), Vec::new())]
}

fn away() -> Error {
    Error::new(&code::DESTINATION_UNREACHABLE, "apply").transient()
}

#[tokio::test]
async fn each_call_meets_the_next_fault_of_its_kind() {
    let store = MemoryStore::new();
    let faults = Faults::around(Arc::new(MemoryDestination::new(&store)));
    faults.add(Call::Apply, Fault::Reject(away()));
    faults.add(Call::Apply, Fault::FailAfterWrite(away()));
    faults.provision(&owner()).await.unwrap();
    faults.apply(&owner(), &batch(1)).await.unwrap_err();
    assert_eq!(store.checkpoint("all"), None);
    faults.apply(&owner(), &batch(1)).await.unwrap_err();
    assert_eq!(store.checkpoint("all"), Some(CommitPosition::new(1)));
    faults.apply(&owner(), &batch(2)).await.unwrap();
    assert_eq!(faults.calls(), [Call::Provision, Call::Apply, Call::Apply, Call::Apply]);
}

#[tokio::test]
async fn a_held_call_writes_when_it_is_released() {
    let store = MemoryStore::new();
    let faults = Faults::around(Arc::new(MemoryDestination::new(&store)));
    faults.provision(&owner()).await.unwrap();
    let mut held = faults.hold(Call::Apply);
    let call = tokio::spawn({
        let faults = faults.clone();
        async move { faults.apply(&owner(), &batch(1)).await }
    });
    held.reached().await;
    assert_eq!(store.checkpoint("all"), None);
    held.release();
    call.await.unwrap().unwrap();
    assert_eq!(store.checkpoint("all"), Some(CommitPosition::new(1)));
}
