//! From many mutations to the last per key.

use std::collections::HashMap;

use crate::{Batch, Mutation, MutationChunk, MutationKind, Result};

/// A group of a run's mutations holds at most this many,
pub const MAX_GROUP_MUTATIONS: usize = 4096;

/// and, unless a single chunk is larger, at most this many bytes.
pub const MAX_GROUP_BYTES: usize = 1 << 20;

/// The folded effect of consecutive mutations: first empty these collections, then write these documents.
#[derive(Debug, PartialEq, Eq)]
pub struct Folded<'a, T> {
    /// Collections that are emptied before anything is written, each once.
    pub emptied: Vec<&'a str>,
    /// The last mutation of each key behind its collection's last deletion, in order; upserts and deletes only.
    pub last: Vec<(T, Mutation<'a>)>,
}

/// Folds mutations, in order. `T` is whatever the caller needs beside each (its batch, its change id).
///
/// The last deletion of a collection wins and everything before it in that collection is gone; then the last mutation of
/// each (collection, key) wins. Collections do not affect each other.
pub fn fold<'a, T>(mutations: impl IntoIterator<Item = (T, Mutation<'a>)>) -> Folded<'a, T> {
    let mut slots: Vec<Option<(T, Mutation<'a>)>> = Vec::new();
    let mut places: HashMap<&'a str, HashMap<&'a str, usize>> = HashMap::new();
    let mut emptied: Vec<&'a str> = Vec::new();
    for (tag, mutation) in mutations {
        let keys = places.entry(mutation.collection).or_default();
        if mutation.kind == MutationKind::DeleteCollection {
            for (_, place) in keys.drain() {
                if let Some(slot) = slots.get_mut(place) {
                    *slot = None;
                }
            }
            if !emptied.contains(&mutation.collection) {
                emptied.push(mutation.collection);
            }
            continue;
        }
        if let Some(slot) = keys.insert(mutation.key, slots.len()).and_then(|earlier| slots.get_mut(earlier)) {
            *slot = None;
        }
        slots.push(Some((tag, mutation)));
    }
    Folded { emptied, last: slots.into_iter().flatten().collect() }
}

/// Consecutive mutations of a run that are folded and written together, so that a run of any size takes bounded memory.
#[derive(Debug)]
pub struct Group<'a> {
    chunks: Vec<(&'a Batch, MutationChunk)>,
    mutations: usize,
    bytes: usize,
}

impl<'a> Group<'a> {
    /// The folded effect, each mutation beside the batch that it is of.
    pub fn folded(&self) -> Folded<'_, &'a Batch> {
        fold(self.chunks.iter().flat_map(|(batch, chunk)| chunk.mutations().map(|mutation| (*batch, mutation))))
    }

    fn has_room_for(&self, chunk: &MutationChunk) -> bool {
        self.mutations + chunk.len() <= MAX_GROUP_MUTATIONS && self.bytes + chunk.bytes().len() <= MAX_GROUP_BYTES
    }

    fn push(&mut self, batch: &'a Batch, chunk: MutationChunk) {
        self.mutations += chunk.len();
        self.bytes += chunk.bytes().len();
        self.chunks.push((batch, chunk));
    }
}

/// The groups of a run, in order; applying one after the other is applying the run.
///
/// # Errors
/// An item is the error of a chunk that cannot be read; nothing follows it.
pub fn groups<'a>(run: &'a [Batch]) -> impl Iterator<Item = Result<Group<'a>>> + Send + 'a {
    let mut chunks = run.iter().flat_map(|batch| (0..batch.chunk_count()).map(move |index| (batch, index)));
    let empty = || Group { chunks: Vec::new(), mutations: 0, bytes: 0 };
    let mut next = Some(empty());
    std::iter::from_fn(move || {
        let mut group = next.take()?;
        for (batch, index) in chunks.by_ref() {
            match batch.read_chunk(index) {
                Err(error) => return Some(Err(error)),
                Ok(chunk) if group.chunks.is_empty() || group.has_room_for(&chunk) => group.push(batch, chunk),
                Ok(chunk) => {
                    let mut following = empty();
                    following.push(batch, chunk);
                    next = Some(following);
                    return Some(Ok(group));
                }
            }
        }
        (!group.chunks.is_empty()).then_some(Ok(group))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upsert<'a>(collection: &'a str, key: &'a str, document: &'a [u8]) -> Mutation<'a> {
        let kind = MutationKind::Upsert { document, content_type: "application/json" };
        Mutation { ordinal: 0, collection, key, partition_key: None, kind }
    }

    #[test]
    fn a_run_is_cut_into_groups_that_are_bounded_and_lose_nothing() {
        let chunk = |first: u32, count: u32| {
            let mut builder = crate::MutationChunkBuilder::default();
            for ordinal in first..first + count {
                builder.push(&Mutation { ordinal, ..upsert("a", &ordinal.to_string(), b"{}") });
            }
            builder.finish()
        };
        let batch = |position: u64, chunks: Vec<MutationChunk>| {
            let position = crate::CommitPosition::new(position);
            let meta = crate::TransactionMeta { xid: 1, position, commit_time_us: 0, changes: 0 };
            Batch::in_memory(crate::BatchOrigin::Transaction(meta), chunks)
        };
        let run =
            [batch(1, vec![chunk(0, 3000), chunk(3000, 1000)]), batch(2, Vec::new()), batch(3, vec![chunk(5000, 96), chunk(6000, 1)])];
        let sizes: Vec<usize> = groups(&run).map(|group| group.unwrap().folded().last.len()).collect();
        assert_eq!(sizes, [4096, 1]);
        assert_eq!(groups(&[batch(1, Vec::new())]).count(), 0);
    }

    #[test]
    fn the_last_mutation_of_a_key_wins_and_an_emptied_collection_forgets_what_came_before() {
        let empty = Mutation { kind: MutationKind::DeleteCollection, ..upsert("a", "", b"") };
        let delete = Mutation { kind: MutationKind::Delete, ..upsert("b", "1", b"") };
        let all = [upsert("a", "1", b"old"), upsert("b", "1", b"x"), empty, upsert("a", "2", b"y"), delete, upsert("a", "2", b"z")];
        let folded = fold(all.into_iter().enumerate());
        assert_eq!(folded.emptied, ["a"]);
        assert_eq!(folded.last, [(4, delete), (5, upsert("a", "2", b"z"))]);
    }
}
