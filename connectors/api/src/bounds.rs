//! What a destination refuses before it opens a transaction.

use crate::destination::MAX_KEY_BYTES;
use crate::{Batch, Code, Error, Mutation, MutationKind, Result, code, hash};

/// Checks one mutation's key and document against the bounds (Invariant 11).
///
/// # Errors
/// [`code::KEY_TOO_LARGE`] and [`code::DOCUMENT_TOO_LARGE`], permanent, with sizes, collection and key hash.
pub fn check(pipeline: &str, batch: &Batch, mutation: &Mutation<'_>, max_document_bytes: u64) -> Result<()> {
    let key = pipeline.len() + mutation.collection.len() + mutation.key.len();
    if key > MAX_KEY_BYTES {
        return Err(refuse(&code::KEY_TOO_LARGE, batch, mutation).with("bytes", key).with("limit", MAX_KEY_BYTES));
    }
    if let MutationKind::Upsert { document, .. } = mutation.kind
        && document.len() as u64 > max_document_bytes
    {
        return Err(refuse(&code::DOCUMENT_TOO_LARGE, batch, mutation).with("bytes", document.len()).with("limit", max_document_bytes));
    }
    Ok(())
}

/// An error about one mutation: it says where to find the row, never what is in it (Invariant 12).
pub fn refuse(code: &'static Code, batch: &Batch, mutation: &Mutation<'_>) -> Error {
    let error = Error::new(code, "check batch");
    let error = match batch.position() {
        Some(position) => error.with("position", position).with("ordinal", mutation.ordinal),
        None => error,
    };
    error.with("collection", mutation.collection).with("key_hash", format!("{:08x}", hash::key_hash(mutation.key)))
}
