//! From a change and its outcome to a mutation: the id stays the change's, the collection is the table's own or one of those
//! that the pipeline declares.
//!
//! A row is in one collection at most. Where a pipeline declares some, a row that is kept in one is therefore deleted from all
//! the others, and a row that goes is deleted from all; else the copy that an earlier version left elsewhere would stay for ever.

use tidegate_api::mutation::JSON;
use tidegate_api::transform::Span;
use tidegate_api::{
    Change, Chunk, Error, Mutation, MutationChunk, MutationChunkBuilder, MutationKind, OnDrop, Operation, Outcome, Outcomes, Poison,
    Result, code,
};

/// How outcomes become mutations.
#[derive(Clone, Copy)]
pub(crate) struct Mapping<'a> {
    pub(crate) on_drop: OnDrop,
    /// The collections beside the tables' own.
    pub(crate) collections: &'a [String],
}

impl Mapping<'_> {
    /// The mutations of a chunk, or why it is refused. Without outcomes (no transform) documents pass as they are.
    pub(crate) fn map(self, chunk: &Chunk, outcomes: Option<&Outcomes>) -> Result<std::result::Result<MutationChunk, Poison>> {
        let mut out = MutationChunkBuilder::default();
        let unchanged = outcomes.is_none();
        let items = outcomes.map_or(&[][..], |outcomes| &outcomes.items);
        if !unchanged && items.len() != chunk.len() {
            return Err(broken("one outcome for each change")); // Invariant 5
        }
        for (number, change) in chunk.changes().enumerate() {
            if change.operation == Operation::Truncate && !self.collections.is_empty() {
                return Ok(Err(truncated(&change)));
            }
            match (outcomes, items.get(number)) {
                (Some(outcomes), Some(Outcome::Keep { document, partition_key, collection })) => {
                    let document = document.map(|span| outcomes.get(span).ok_or_else(|| broken("spans within the buffer"))).transpose()?;
                    let routed = partition_key.map(|span| text(outcomes, span)).transpose()?;
                    let collection = collection.map(|span| text(outcomes, span)).transpose()?.unwrap_or(change.relation);
                    if collection != change.relation && !self.collections.iter().any(|declared| declared == collection) {
                        return Ok(Err(undeclared(&change)));
                    }
                    self.keep(&mut out, &change, document, routed.or(change.partition_key), collection)?;
                }
                (Some(_), Some(Outcome::Drop)) if self.on_drop == OnDrop::Retain => (),
                (Some(_), Some(Outcome::Delete | Outcome::Drop)) => self.delete(&mut out, &change),
                _ => self.keep(&mut out, &change, change.new, change.partition_key, change.relation)?,
            }
        }
        Ok(Ok(out.finish()))
    }

    fn keep(
        self,
        out: &mut MutationChunkBuilder,
        change: &Change<'_>,
        document: Option<&[u8]>,
        partition_key: Option<&str>,
        collection: &str,
    ) -> Result<()> {
        let kind = match change.operation {
            Operation::Insert | Operation::Update | Operation::Row => {
                let document = document.ok_or_else(|| broken("a document for each new row"))?;
                MutationKind::Upsert { document, content_type: change.content_type.unwrap_or(JSON) }
            }
            Operation::Delete => MutationKind::Delete,
            Operation::Truncate => MutationKind::DeleteCollection,
        };
        out.push(&Mutation { ordinal: change.ordinal, collection, key: change.key, partition_key, kind });
        if change.operation != Operation::Row {
            self.delete_elsewhere(out, change, partition_key, Some(collection));
        }
        Ok(())
    }

    /// The row is absent at the destination. A row of a snapshot is absent already: the destination was emptied.
    fn delete(self, out: &mut MutationChunkBuilder, change: &Change<'_>) {
        let (ordinal, partition_key) = (change.ordinal, change.partition_key);
        match change.operation {
            Operation::Row => (),
            Operation::Truncate => {
                out.push(&Mutation { ordinal, collection: change.relation, key: "", partition_key, kind: MutationKind::DeleteCollection });
            }
            Operation::Insert | Operation::Update | Operation::Delete => self.delete_elsewhere(out, change, partition_key, None),
        }
    }

    /// Deletes the row from every collection but this one.
    fn delete_elsewhere(self, out: &mut MutationChunkBuilder, change: &Change<'_>, partition_key: Option<&str>, kept: Option<&str>) {
        let places = std::iter::once(change.relation).chain(self.collections.iter().map(String::as_str));
        for collection in places.filter(|place| kept != Some(place)) {
            out.push(&Mutation { ordinal: change.ordinal, collection, key: change.key, partition_key, kind: MutationKind::Delete });
        }
    }
}

fn truncated(change: &Change<'_>) -> Poison {
    Poison {
        kind: "truncate-with-collections".to_owned(),
        ordinal: Some(change.ordinal),
        reason: format!("{} was truncated, and which documents of the pipeline's collections came from it is not known", change.relation),
    }
}

/// The name is the guest's own text: it could be a value of the row, so it is not shown.
fn undeclared(change: &Change<'_>) -> Poison {
    Poison {
        kind: "collection-undeclared".to_owned(),
        ordinal: Some(change.ordinal),
        reason: "the transform placed a row in a collection that the pipeline does not declare in collections".to_owned(),
    }
}

fn text(outcomes: &Outcomes, span: Span) -> Result<&str> {
    outcomes.get(span).and_then(|bytes| std::str::from_utf8(bytes).ok()).ok_or_else(|| broken("texts in utf-8"))
}

fn broken(rule: &'static str) -> Error {
    Error::new(&code::INTERNAL, "map outcomes").with("rule", rule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_api::ChunkBuilder;

    fn chunk(operation: Operation) -> Chunk {
        let mut builder = ChunkBuilder::default();
        builder.push(&Change {
            ordinal: 7,
            relation: "public.a",
            operation,
            key: "1",
            partition_key: None,
            old: None,
            new: Some(b"{}"),
            content_type: None,
            unavailable: None,
        });
        builder.finish()
    }

    fn mapped(operation: Operation, outcome: Outcome, on_drop: OnDrop) -> Vec<(u32, String, bool)> {
        let outcomes = Outcomes { items: vec![outcome], ..Outcomes::default() };
        let mutations = Mapping { on_drop, collections: &[] }.map(&chunk(operation), Some(&outcomes)).unwrap().unwrap();
        let seen = |mutation: Mutation<'_>| (mutation.ordinal, mutation.key.to_owned(), mutation.kind == MutationKind::Delete);
        mutations.mutations().map(seen).collect()
    }

    #[test]
    fn a_dropped_row_becomes_a_delete_under_the_id_of_its_change() {
        let delete = vec![(7, "1".to_owned(), true)];
        assert_eq!(mapped(Operation::Update, Outcome::Drop, OnDrop::Delete), delete);
        assert_eq!(mapped(Operation::Delete, Outcome::Drop, OnDrop::Delete), delete);
        assert_eq!(mapped(Operation::Update, Outcome::Delete, OnDrop::Retain), delete);
        assert_eq!(mapped(Operation::Update, Outcome::Drop, OnDrop::Retain), []);
        assert_eq!(mapped(Operation::Row, Outcome::Drop, OnDrop::Delete), []);
    }

    #[test]
    fn a_transform_cannot_lose_or_invent_a_change() {
        let mut builder = ChunkBuilder::default();
        let change = |ordinal| Change {
            ordinal,
            relation: "public.a",
            operation: Operation::Delete,
            key: "1",
            partition_key: None,
            old: None,
            new: None,
            content_type: None,
            unavailable: None,
        };
        (0..2).for_each(|ordinal| builder.push(&change(ordinal)));
        let chunk = builder.finish();
        for count in [0, 1, 3] {
            let outcomes = Outcomes { items: vec![Outcome::Delete; count], ..Outcomes::default() };
            // Invariant 5
            assert_eq!(
                *Mapping { on_drop: OnDrop::Delete, collections: &[] }.map(&chunk, Some(&outcomes)).unwrap_err().code(),
                code::INTERNAL
            );
        }
    }

    /// What becomes of a change in a pipeline that declares the collections `archive` and `live`: a plus for an upsert.
    fn placed(operation: Operation, outcome: Outcome) -> std::result::Result<Vec<String>, String> {
        let outcomes = Outcomes { bytes: bytes::Bytes::from_static(b"{}archiveelse"), items: vec![outcome] };
        let collections = ["archive".to_owned(), "live".to_owned()];
        let mapped = Mapping { on_drop: OnDrop::Delete, collections: &collections }.map(&chunk(operation), Some(&outcomes)).unwrap();
        let seen =
            |mutation: Mutation<'_>| format!("{}{}", if mutation.kind == MutationKind::Delete { "-" } else { "+" }, mutation.collection);
        mapped.map(|mutations| mutations.mutations().map(seen).collect()).map_err(|poison| poison.kind)
    }

    #[test]
    fn a_row_is_in_one_collection_at_most() {
        let document = Some(Span { start: 0, len: 2 });
        let keep = |collection| Outcome::Keep { document, partition_key: None, collection };
        let (archive, unknown) = (Some(Span { start: 2, len: 7 }), Some(Span { start: 9, len: 4 }));
        let is = |places: &[&str]| Ok(places.iter().map(|place| (*place).to_owned()).collect::<Vec<_>>());
        assert_eq!(placed(Operation::Update, keep(archive)), is(&["+archive", "-public.a", "-live"]));
        assert_eq!(placed(Operation::Insert, keep(None)), is(&["+public.a", "-archive", "-live"]));
        assert_eq!(placed(Operation::Row, keep(archive)), is(&["+archive"]));
        let gone = Outcome::Keep { document: None, partition_key: None, collection: None };
        for (operation, outcome) in [(Operation::Delete, gone), (Operation::Update, Outcome::Drop), (Operation::Update, Outcome::Delete)] {
            assert_eq!(placed(operation, outcome), is(&["-public.a", "-archive", "-live"]));
        }
        assert_eq!(placed(Operation::Update, keep(unknown)), Err("collection-undeclared".to_owned()));
        assert_eq!(placed(Operation::Truncate, gone), Err("truncate-with-collections".to_owned()));
    }
}
