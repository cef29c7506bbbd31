//! From many mutations to the last per key.

use std::collections::HashMap;

use crate::{Mutation, MutationKind};

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

#[cfg(test)]
mod tests {
    use super::*;

    fn upsert<'a>(collection: &'a str, key: &'a str, document: &'a [u8]) -> Mutation<'a> {
        let kind = MutationKind::Upsert { document, content_type: "application/json" };
        Mutation { ordinal: 0, collection, key, partition_key: None, kind }
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
