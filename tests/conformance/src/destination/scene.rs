//! One case's pipeline, and words for what a case does and expects.

use std::fmt::Debug;

use tidegate_api::{
    Applied, Batch, Code, CommitPosition, Destination, Error, Fingerprint, Mutation, Ownership, Provisioned, Result, SnapshotEpoch,
    SnapshotState, SourceIdentity,
};

use super::{Harness, StoredDocument};
use crate::batches;

/// What was seen instead of what was expected.
pub(super) struct Unexpected(pub(super) String);

pub(super) type Outcome = Result<(), Unexpected>;

impl From<Error> for Unexpected {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

/// Compares; `what` names the thing compared.
pub(super) fn same<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Outcome {
    if found == expected { Ok(()) } else { Err(Unexpected(format!("{what}: found {found:?}, expected {expected:?}"))) }
}

/// Expects an error of this code.
pub(super) fn refused<T: Debug>(what: &str, answer: Result<T>, code: &'static Code) -> Outcome {
    match answer {
        Err(error) if error.code() == code => Ok(()),
        Err(error) => Err(Unexpected(format!("{what}: refused as {error}, expected {code} {}", code.name))),
        Ok(answer) => Err(Unexpected(format!("{what}: answered {answer:?}, expected {code} {}", code.name))),
    }
}

pub(super) struct Scene<'h> {
    harness: &'h dyn Harness,
    destination: Box<dyn Destination>,
    pub(super) owner: Ownership,
}

impl<'h> Scene<'h> {
    pub(super) async fn new(harness: &'h dyn Harness) -> Self {
        let source = SourceIdentity { system: "7301".into(), timeline: 1, database: "shop".into(), epoch: "0/1500000".into() };
        let pipeline = format!("conformance-{}", uuid::Uuid::new_v4().simple());
        let owner = Ownership { pipeline, source, fingerprint: Fingerprint([0x11; 32]), fence: 5 };
        Self { harness, destination: harness.open().await, owner }
    }

    pub(super) fn destination(&self) -> &dyn Destination {
        &*self.destination
    }

    /// Another instance takes the place of this one.
    pub(super) async fn restart(&mut self) {
        self.destination = self.harness.open().await;
    }

    /// An owner that differs in what `change` does to it.
    pub(super) fn other(&self, change: impl FnOnce(&mut Ownership)) -> Ownership {
        let mut owner = self.owner.clone();
        change(&mut owner);
        owner
    }

    pub(super) fn epoch(&self) -> SnapshotEpoch {
        SnapshotEpoch(uuid::Uuid::new_v4().to_string())
    }

    /// Provisions, takes a snapshot of `rows`, and completes it at position 100.
    pub(super) async fn begin_with(&self, rows: &[Mutation<'_>]) -> Result<SnapshotEpoch> {
        let epoch = self.epoch();
        self.destination.provision(&self.owner).await?;
        self.destination.begin_snapshot(&self.owner, &epoch).await?;
        self.destination.apply_snapshot(&self.owner, &epoch, &batches::snapshot(&epoch, 0, rows)).await?;
        self.destination.complete_snapshot(&self.owner, &epoch, CommitPosition::new(100)).await?;
        Ok(epoch)
    }

    /// Applies a run, cut into as many batches as the destination takes at once.
    pub(super) async fn apply(&self, run: &[Batch]) -> Result<Vec<Applied>> {
        let mut answers = Vec::new();
        for part in run.chunks(self.destination.max_run().max(1)) {
            answers.extend(self.destination.apply(&self.owner, part).await?);
        }
        Ok(answers)
    }

    /// Applies one batch and expects it to be new.
    pub(super) async fn apply_new(&self, batch: &Batch) -> Outcome {
        let position = batch.position().unwrap_or_default();
        same("the answer", self.apply(std::slice::from_ref(batch)).await?, vec![Applied::Applied(position)])
    }

    /// Expects the documents `(collection, key, document)`, whatever wrote them.
    pub(super) async fn holds(&self, when: &str, expected: &[(&str, &str, &str)]) -> Outcome {
        let mut found = self.documents().await;
        found.sort();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        let found: Vec<_> =
            found.iter().map(|one| (one.collection.as_str(), one.key.as_str(), String::from_utf8_lossy(&one.document))).collect();
        let equal = found.len() == expected.len() && found.iter().zip(&expected).all(|(a, b)| (a.0, a.1, &*a.2) == *b);
        if equal { Ok(()) } else { Err(Unexpected(format!("documents {when}: found {found:?}, expected {expected:?}"))) }
    }

    pub(super) async fn documents(&self) -> Vec<StoredDocument> {
        self.harness.documents(&self.owner.pipeline).await
    }

    /// Expects a complete snapshot with this checkpoint.
    pub(super) async fn is_at(&self, when: &str, position: u64) -> Outcome {
        let expected = Provisioned::Ready { checkpoint: Some(CommitPosition::new(position)), snapshot: SnapshotState::Complete };
        same(when, self.destination.provision(&self.owner).await?, expected)
    }
}
