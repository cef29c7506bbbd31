//! What is refused before a transaction is opened.

use std::sync::Arc;

use tidegate_api::{Batch, Mutation, MutationKind, Ownership, Result, bounds, code};

use super::broken;

/// The largest document that is stored.
const MAX_DOCUMENT_BYTES: u64 = 256 << 20;

/// Runs that are larger are looked at on a blocking thread: their chunks may be in a spool file.
pub(super) const INLINE_BYTES: u64 = 256 << 10;

/// Looks at every key and document of a run.
///
/// # Errors
/// [`code::KEY_TOO_LARGE`], [`code::DOCUMENT_TOO_LARGE`], and [`code::DESTINATION_CONTENT`] for what text cannot hold.
pub(super) async fn run(owner: &Ownership, run: &Arc<[Batch]>) -> Result<()> {
    if run.iter().map(Batch::bytes).sum::<u64>() <= INLINE_BYTES {
        return all(&owner.pipeline, run);
    }
    let (pipeline, run) = (owner.pipeline.clone(), run.clone());
    let looked = tokio::task::spawn_blocking(move || all(&pipeline, &run)).await;
    looked.unwrap_or_else(|error| Err(broken("check batch", error)))
}

fn all(pipeline: &str, run: &[Batch]) -> Result<()> {
    for batch in run {
        for chunk in batch.chunks() {
            for mutation in chunk?.mutations() {
                bounds::check(pipeline, batch, &mutation, MAX_DOCUMENT_BYTES)?;
                if let Some(why) = unsuitable(&mutation) {
                    return Err(bounds::refuse(&code::DESTINATION_CONTENT, batch, &mutation).because(why));
                }
            }
        }
    }
    Ok(())
}

/// Why text cannot hold it.
fn unsuitable(mutation: &Mutation<'_>) -> Option<&'static str> {
    if mutation.key.contains('\0') || mutation.collection.contains('\0') {
        return Some("the key holds a zero character, which text cannot");
    }
    if mutation.partition_key.is_some_and(|key| key.contains('\0')) {
        return Some("the partition key holds a zero character, which text cannot");
    }
    match mutation.kind {
        MutationKind::Upsert { document, .. } if document.contains(&0) => Some("the document holds a zero byte, which text cannot"),
        MutationKind::Upsert { document, .. } if std::str::from_utf8(document).is_err() => Some("the document is not UTF-8"),
        _ => None,
    }
}
