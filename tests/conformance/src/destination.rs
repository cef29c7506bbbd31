//! What a [`Destination`] must do.
//!
//! Each case has a pipeline of its own, so that all of them can run in one store, again and again.

use std::fmt;

use tidegate_api::{BoxFuture, Destination};

mod apply;
mod content;
mod ownership;
mod scene;
mod snapshot;

use scene::{Outcome, Scene};

/// The system under test.
pub trait Harness: Send + Sync {
    /// A fresh instance over the same storage. The one before it is dropped without a word, as a crash would.
    fn open(&self) -> BoxFuture<'_, Box<dyn Destination>>;

    /// The pipeline's documents as a reader of the system finds them, in any order.
    fn documents<'a>(&'a self, pipeline: &'a str) -> BoxFuture<'a, Vec<StoredDocument>>;
}

/// One document as a reader finds it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredDocument {
    /// Its collection.
    pub collection: String,
    /// Its key.
    pub key: String,
    /// What it is placed by.
    pub partition_key: Option<String>,
    /// Its bytes.
    pub document: Vec<u8>,
    /// What wrote it last.
    pub change_id: String,
}

impl fmt::Debug for StoredDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let document = String::from_utf8_lossy(&self.document);
        let shown: String = document.chars().take(200).collect();
        write!(f, "{} {} = {shown} ({:?}, by {})", self.collection, self.key, self.partition_key, self.change_id)
    }
}

/// The cases that a destination does not pass, each with what was seen.
pub struct Failures(pub Vec<(&'static str, String)>);

impl Failures {
    /// Whether the case of this name is among them.
    pub fn contains(&self, case: &str) -> bool {
        self.0.iter().any(|(name, _)| *name == case)
    }
}

impl fmt::Debug for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, seen)| write!(f, "\n{name}: {seen}"))
    }
}

type Case = for<'a> fn(&'a mut Scene<'_>) -> BoxFuture<'a, Outcome>;

macro_rules! cases {
    ($($module:ident: $($name:ident)*;)*) => {
        /// Every case by name, in the order in which they run.
        const CASES: &[(&str, Case)] = &[$($((stringify!($name), |scene| Box::pin($module::$name(scene)))),*),*];
    };
}

cases! {
    ownership:
        a_preflight_finds_nothing_wrong_and_leaves_nothing_behind
        a_pipeline_starts_with_nothing_and_provisioning_again_changes_nothing
        a_pipeline_that_never_began_is_taken_over_by_another_definition
        drift_of_the_fingerprint_requires_a_rebuild
        another_source_is_never_already_applied
        a_lower_fence_is_refused_in_every_call
        a_higher_fence_that_writes_shuts_the_old_worker_out
        a_pipeline_that_was_never_provisioned_is_refused;
    snapshot:
        a_snapshot_batch_twice_gives_the_same_state
        the_boundary_of_a_completed_snapshot_is_the_checkpoint
        completing_again_keeps_a_checkpoint_that_has_moved_on
        rows_of_another_epoch_are_refused
        a_late_batch_of_a_completed_snapshot_is_refused
        an_interrupted_snapshot_begins_anew_with_nothing_left
        nothing_is_streamed_into_an_open_snapshot
        a_new_snapshot_empties_this_pipeline_alone;
    apply:
        each_batch_is_answered_with_exactly_its_own_position
        what_was_applied_is_there_after_a_restart
        redelivery_of_a_changed_payload_keeps_the_accepted_content
        a_run_that_was_applied_in_part_applies_the_rest
        an_empty_batch_moves_the_checkpoint
        positions_use_all_64_bits
        a_run_that_fails_leaves_nothing_behind
        a_run_out_of_order_is_refused
        a_large_transaction_is_applied_whole
        a_changed_key_moves_the_document_in_one_batch
        a_collection_delete_removes_what_came_before_it_and_nothing_else
        mutations_of_one_key_leave_the_last_one_across_batches_and_chunks
        pipelines_do_not_see_each_other;
    content:
        documents_come_back_byte_for_byte
        keys_are_told_apart_by_their_bytes
        a_large_document_comes_back_whole
        a_key_of_the_largest_size_is_stored
        a_key_beyond_the_bound_is_refused_before_anything_is_written
        a_partition_key_is_stored_and_replaced;
}

/// The names of all cases.
pub fn case_names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|(name, _)| *name)
}

/// Runs every case.
///
/// # Errors
/// The cases that failed.
pub async fn check(harness: &dyn Harness) -> Result<(), Failures> {
    let mut failures = Vec::new();
    for (name, case) in CASES {
        let mut scene = Scene::new(harness).await;
        if let Err(seen) = case(&mut scene).await {
            failures.push((*name, seen.0));
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Failures(failures)) }
}
