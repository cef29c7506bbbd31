//! What a destination must do: the outcome of a transform, with the change's own identity.
//!
//! # Format 1 (spool files and the memory form)
//!
//! Primitives as in [`chunk`](crate::chunk).
//!
//! ```text
//! item       = collection | mutation
//! collection = 0x01 name:text                defines the next collection number, from 0
//! mutation   = kind flags ordinal collection:varint key:text [partition_key:text] [document:bytes content_type:text?]
//! kind       = 0x20 upsert | 0x21 delete | 0x22 delete collection
//! flags      = 1 partition key, 2 content type other than application/json
//! ordinal    = varint difference to the previous mutation's
//! ```

use bytes::Bytes;

use crate::code;
use crate::wire::{Reader, put_bytes, put_varint};
use crate::{Error, Result};

const COLLECTION: u8 = 0x01;
const UPSERT: u8 = 0x20;
const DELETE: u8 = 0x21;
const DELETE_COLLECTION: u8 = 0x22;
const HAS_PARTITION_KEY: u8 = 1;
const HAS_CONTENT_TYPE: u8 = 2;

/// The content type of a document that says nothing else.
pub const JSON: &str = "application/json";

/// One effect on one document, or on a collection. Borrowed from the [`MutationChunk`] that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutation<'a> {
    /// The ordinal of the change that caused it; unique within its batch, unless the pipeline declares collections: then a row
    /// that is kept in one is deleted from the others under the same ordinal.
    pub ordinal: u32,
    /// Where the document lives.
    pub collection: &'a str,
    /// The document's key; empty for [`MutationKind::DeleteCollection`].
    pub key: &'a str,
    /// What the destination may place the document by.
    pub partition_key: Option<&'a str>,
    /// What to do.
    pub kind: MutationKind<'a>,
}

/// What to do with the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MutationKind<'a> {
    /// Put this document in the key's place.
    Upsert {
        /// The document's bytes, to be stored as they are.
        document: &'a [u8],
        /// Their type, [`JSON`] unless the transform said otherwise.
        content_type: &'a str,
    },
    /// Remove the key's document, where there is one.
    Delete,
    /// Remove every document of the collection.
    DeleteCollection,
}

/// Mutations of one batch, in order, in one flat buffer. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutationChunk {
    bytes: Bytes,
    mutations: usize,
}

impl MutationChunk {
    /// Takes stored bytes back, after checking that every item fits the format.
    ///
    /// # Errors
    /// [`code::CHUNK_MALFORMED`] when they do not.
    pub fn parse(bytes: Bytes) -> Result<Self> {
        let mut items = Mutations { reader: Reader(&bytes), collections: Vec::new(), ordinal: 0 };
        let mutations = items.by_ref().count();
        if !items.reader.0.is_empty() {
            return Err(Error::new(&code::CHUNK_MALFORMED, "read mutations").with("bytes", bytes.len()));
        }
        Ok(Self { bytes, mutations })
    }

    /// The stored form.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// How many mutations it holds.
    pub fn len(&self) -> usize {
        self.mutations
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.mutations == 0
    }

    /// The mutations, in order.
    pub fn mutations(&self) -> Mutations<'_> {
        Mutations { reader: Reader(&self.bytes), collections: Vec::new(), ordinal: 0 }
    }
}

/// Iterator over a chunk's mutations; made by [`MutationChunk::mutations`].
pub struct Mutations<'a> {
    reader: Reader<'a>,
    collections: Vec<&'a str>,
    ordinal: u32,
}

impl<'a> Iterator for Mutations<'a> {
    type Item = Mutation<'a>;

    fn next(&mut self) -> Option<Mutation<'a>> {
        loop {
            let rest = self.reader.0;
            let tag = self.reader.byte()?;
            if tag == COLLECTION {
                self.collections.push(self.reader.text()?);
                continue;
            }
            let mutation = self.mutation(tag);
            if mutation.is_none() {
                self.reader.0 = rest; // so that `parse` sees that something was left
            }
            return mutation;
        }
    }
}

impl<'a> Mutations<'a> {
    fn mutation(&mut self, tag: u8) -> Option<Mutation<'a>> {
        let reader = &mut self.reader;
        let flags = reader.byte()?;
        let delta = u32::try_from(reader.varint()?).ok()?;
        self.ordinal = self.ordinal.checked_add(delta)?;
        let collection = self.collections.get(usize::try_from(reader.varint()?).ok()?).copied()?;
        let key = reader.text()?;
        let partition_key = if flags & HAS_PARTITION_KEY != 0 { Some(reader.text()?) } else { None };
        let kind = match tag {
            UPSERT => {
                let document = reader.bytes()?;
                let content_type = if flags & HAS_CONTENT_TYPE != 0 { reader.text()? } else { JSON };
                MutationKind::Upsert { document, content_type }
            }
            DELETE => MutationKind::Delete,
            DELETE_COLLECTION => MutationKind::DeleteCollection,
            _ => return None,
        };
        Some(Mutation { ordinal: self.ordinal, collection, key, partition_key, kind })
    }
}

/// Builds a [`MutationChunk`]. Ordinals must grow from one mutation to the next.
#[derive(Debug, Default)]
pub struct MutationChunkBuilder {
    bytes: Vec<u8>,
    collections: Vec<String>,
    mutations: usize,
    ordinal: u32,
}

impl MutationChunkBuilder {
    /// Appends a mutation.
    pub fn push(&mut self, mutation: &Mutation<'_>) {
        let collection = self.collection(mutation.collection);
        let out = &mut self.bytes;
        let (tag, content_type) = match mutation.kind {
            MutationKind::Upsert { content_type, .. } => (UPSERT, Some(content_type).filter(|name| *name != JSON)),
            MutationKind::Delete => (DELETE, None),
            MutationKind::DeleteCollection => (DELETE_COLLECTION, None),
        };
        out.push(tag);
        out.push(u8::from(mutation.partition_key.is_some()) * HAS_PARTITION_KEY + u8::from(content_type.is_some()) * HAS_CONTENT_TYPE);
        debug_assert!(mutation.ordinal >= self.ordinal, "ordinals grow");
        put_varint(out, u64::from(mutation.ordinal.wrapping_sub(self.ordinal)));
        put_varint(out, collection as u64);
        put_bytes(out, mutation.key.as_bytes());
        if let Some(partition_key) = mutation.partition_key {
            put_bytes(out, partition_key.as_bytes());
        }
        if let MutationKind::Upsert { document, .. } = mutation.kind {
            put_bytes(out, document);
        }
        if let Some(content_type) = content_type {
            put_bytes(out, content_type.as_bytes());
        }
        self.ordinal = mutation.ordinal;
        self.mutations += 1;
    }

    /// Bytes so far.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Mutations so far.
    pub fn len(&self) -> usize {
        self.mutations
    }

    /// Whether there are none so far.
    pub fn is_empty(&self) -> bool {
        self.mutations == 0
    }

    /// The chunk; the builder is empty afterwards and can be used again.
    pub fn finish(&mut self) -> MutationChunk {
        let built = std::mem::take(self);
        MutationChunk { bytes: Bytes::from(built.bytes), mutations: built.mutations }
    }

    fn collection(&mut self, name: &str) -> usize {
        if let Some(index) = self.collections.iter().rposition(|known| known == name) {
            return index;
        }
        self.bytes.push(COLLECTION);
        put_bytes(&mut self.bytes, name.as_bytes());
        self.collections.push(name.to_owned());
        self.collections.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutation_chunk_gives_back_what_was_put_in_and_refuses_damage() {
        let all = [
            Mutation {
                ordinal: 3,
                collection: "public.a",
                key: "1",
                partition_key: Some("acme"),
                kind: MutationKind::Upsert { document: b"{}", content_type: JSON },
            },
            Mutation { ordinal: 4, collection: "public.b", key: "", partition_key: None, kind: MutationKind::DeleteCollection },
            Mutation { ordinal: 5, collection: "public.a", key: "2", partition_key: None, kind: MutationKind::Delete },
            Mutation {
                ordinal: 6,
                collection: "public.b",
                key: "x",
                partition_key: None,
                kind: MutationKind::Upsert { document: b"x", content_type: "text/plain" },
            },
        ];
        let mut builder = MutationChunkBuilder::default();
        all.iter().for_each(|mutation| builder.push(mutation));
        let chunk = builder.finish();
        assert_eq!(chunk.mutations().collect::<Vec<_>>(), all);
        assert_eq!(MutationChunk::parse(chunk.bytes().clone()).unwrap(), chunk);
        let mut bad = chunk.bytes().to_vec();
        bad.truncate(bad.len() - 1);
        assert!(MutationChunk::parse(Bytes::from(bad)).is_err());
    }
}
