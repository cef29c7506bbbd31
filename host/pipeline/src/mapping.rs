//! From a change and its outcome to a mutation: the collection is the table, the id stays the change's.

use tidegate_api::mutation::JSON;
use tidegate_api::{
    Change, Chunk, Error, Mutation, MutationChunk, MutationChunkBuilder, MutationKind, OnDrop, Operation, Outcome, Outcomes, Result, code,
};

/// The mutations of a chunk. Without outcomes (no transform) documents pass as they are.
pub(crate) fn map(chunk: &Chunk, outcomes: Option<&Outcomes>, on_drop: OnDrop) -> Result<MutationChunk> {
    let mut out = MutationChunkBuilder::default();
    let Some(outcomes) = outcomes else {
        for change in chunk.changes() {
            push(&mut out, &change, change.new, change.partition_key)?;
        }
        return Ok(out.finish());
    };
    if outcomes.items.len() != chunk.len() {
        return Err(broken("one outcome for each change")); // Invariant 5
    }
    for (change, outcome) in chunk.changes().zip(&outcomes.items) {
        match outcome {
            Outcome::Keep { document, partition_key } => {
                let document = document.map(|span| outcomes.get(span).ok_or_else(|| broken("spans within the buffer"))).transpose()?;
                let routed = partition_key.map(|span| text(outcomes, span)).transpose()?;
                push(&mut out, &change, document, routed.or(change.partition_key))?;
            }
            Outcome::Delete => delete(&mut out, &change),
            Outcome::Drop if on_drop == OnDrop::Delete => delete(&mut out, &change),
            Outcome::Drop => (),
        }
    }
    Ok(out.finish())
}

fn push(out: &mut MutationChunkBuilder, change: &Change<'_>, document: Option<&[u8]>, partition_key: Option<&str>) -> Result<()> {
    let kind = match change.operation {
        Operation::Insert | Operation::Update | Operation::Row => {
            let document = document.ok_or_else(|| broken("a document for each new row"))?;
            MutationKind::Upsert { document, content_type: change.content_type.unwrap_or(JSON) }
        }
        Operation::Delete => MutationKind::Delete,
        Operation::Truncate => MutationKind::DeleteCollection,
    };
    out.push(&Mutation { ordinal: change.ordinal, collection: change.relation, key: change.key, partition_key, kind });
    Ok(())
}

/// The row is absent at the destination. A row of a snapshot is absent already: the destination was emptied.
fn delete(out: &mut MutationChunkBuilder, change: &Change<'_>) {
    let (ordinal, collection, partition_key) = (change.ordinal, change.relation, change.partition_key);
    match change.operation {
        Operation::Row => (),
        Operation::Truncate => {
            out.push(&Mutation { ordinal, collection, key: "", partition_key, kind: MutationKind::DeleteCollection });
        }
        Operation::Insert | Operation::Update | Operation::Delete => {
            out.push(&Mutation { ordinal, collection, key: change.key, partition_key, kind: MutationKind::Delete });
        }
    }
}

fn text(outcomes: &Outcomes, span: tidegate_api::transform::Span) -> Result<&str> {
    outcomes.get(span).and_then(|bytes| std::str::from_utf8(bytes).ok()).ok_or_else(|| broken("partition keys in utf-8"))
}

fn broken(rule: &'static str) -> Error {
    Error::new(&code::INTERNAL, "map outcomes").with("rule", rule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_api::ChunkBuilder;

    fn mapped(operation: Operation, outcome: Outcome, on_drop: OnDrop) -> Vec<(u32, String, bool)> {
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
        let outcomes = Outcomes { items: vec![outcome], ..Outcomes::default() };
        let mutations = map(&builder.finish(), Some(&outcomes), on_drop).unwrap();
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
            assert_eq!(*map(&chunk, Some(&outcomes), OnDrop::Delete).unwrap_err().code(), code::INTERNAL);
        }
    }
}
