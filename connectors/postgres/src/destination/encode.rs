//! A group of mutations in the server's binary form: as arrays for the statements, or as rows for COPY.

use bytes::{BufMut as _, Bytes, BytesMut};
use tidegate_api::fold::{self, Group};
use tidegate_api::{Batch, Mutation, MutationKind, Result, hash};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// An array parameter under construction: elements in the binary form, behind a header that is written at the end.
#[derive(Debug, Default)]
pub(super) struct Column {
    elements: BytesMut,
    count: i32,
    nulls: bool,
}

impl Column {
    fn push(&mut self, value: Option<&[u8]>) {
        self.count += 1;
        match value {
            Some(bytes) => put_field(&mut self.elements, bytes),
            None => {
                self.elements.put_i32(-1);
                self.nulls = true;
            }
        }
    }
}

impl ToSql for Column {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        let element = if *ty == Type::BYTEA_ARRAY { Type::BYTEA } else { Type::TEXT };
        out.reserve(self.elements.len() + 20);
        out.put_i32(1); // dimensions
        out.put_i32(i32::from(self.nulls));
        out.put_u32(element.oid());
        out.put_i32(self.count);
        out.put_i32(1); // the first index
        out.put_slice(&self.elements);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TEXT_ARRAY || *ty == Type::BYTEA_ARRAY
    }

    to_sql_checked!();
}

/// What a group removes.
#[derive(Debug, Default)]
pub(super) struct Removals {
    /// Collections that are emptied, first of all.
    pub(super) emptied: Column,
    pub(super) collection: Column,
    pub(super) key: Column,
}

impl Removals {
    fn push(&mut self, mutation: &Mutation<'_>) {
        self.collection.push(Some(mutation.collection.as_bytes()));
        self.key.push(Some(mutation.key.as_bytes()));
    }

    pub(super) fn empties(&self) -> bool {
        self.emptied.count > 0
    }

    pub(super) fn removes(&self) -> bool {
        self.key.count > 0
    }
}

/// A group for `delete_collections.sql`, `delete.sql` and `upsert.sql`.
#[derive(Debug, Default)]
pub(super) struct Arrays {
    pub(super) removals: Removals,
    pub(super) collection: Column,
    pub(super) key: Column,
    pub(super) partition_key: Column,
    pub(super) document: Column,
    pub(super) content_hash: Column,
    pub(super) change_id: Column,
}

impl Arrays {
    pub(super) fn of(group: &Group<'_>) -> Self {
        let mut arrays = Self::default();
        let folded = group.folded();
        folded.emptied.iter().for_each(|collection| arrays.removals.emptied.push(Some(collection.as_bytes())));
        for (batch, mutation) in &folded.last {
            let MutationKind::Upsert { document, .. } = mutation.kind else {
                arrays.removals.push(mutation);
                continue;
            };
            arrays.collection.push(Some(mutation.collection.as_bytes()));
            arrays.key.push(Some(mutation.key.as_bytes()));
            arrays.partition_key.push(mutation.partition_key.map(str::as_bytes));
            arrays.document.push(Some(document));
            arrays.content_hash.push(Some(&hash::content_hash(document)));
            arrays.change_id.push(Some(batch.change_id(mutation).as_bytes()));
        }
        arrays
    }

    pub(super) fn writes(&self) -> bool {
        self.key.count > 0
    }
}

/// What a binary COPY begins with: signature, flags, length of the extension.
pub(super) const COPY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// What a binary COPY ends with.
pub(super) const COPY_TRAILER: &[u8] = &[0xff, 0xff];

/// A COPY is handed over in pieces of about this size, so that the server reads one while the next is made.
const PIECE_BYTES: usize = 64 << 10;

/// Encodes a run's documents for `copy.sql`, piece by piece, until `hand_over` says that nobody wants more.
///
/// Gives the keys to remove besides, for `delete.sql`; `None` where the order of removals and documents matters, which one COPY
/// cannot keep.
pub(super) fn rows(pipeline: &str, run: &[Batch], mut hand_over: impl FnMut(Bytes) -> bool) -> Result<Option<Removals>> {
    let mut removals = Removals::default();
    for (number, group) in fold::groups(run).enumerate() {
        let group = group?;
        let folded = group.folded();
        if !folded.emptied.is_empty() || (number > 0 && removals.removes()) {
            return Ok(None);
        }
        let mut data = BytesMut::with_capacity(PIECE_BYTES + PIECE_BYTES / 4);
        for (batch, mutation) in &folded.last {
            match mutation.kind {
                MutationKind::Upsert { document, .. } => put_row(&mut data, pipeline, batch, mutation, document),
                MutationKind::Delete | MutationKind::DeleteCollection => removals.push(mutation),
            }
            if data.len() >= PIECE_BYTES && !hand_over(data.split().freeze()) {
                return Ok(None);
            }
        }
        if (number > 0 && removals.removes()) || !hand_over(data.freeze()) {
            return Ok(None);
        }
    }
    Ok(Some(removals))
}

fn put_row(data: &mut BytesMut, pipeline: &str, batch: &Batch, mutation: &Mutation<'_>, document: &[u8]) {
    data.put_i16(7);
    put_field(data, pipeline.as_bytes());
    put_field(data, mutation.collection.as_bytes());
    put_field(data, mutation.key.as_bytes());
    match mutation.partition_key {
        Some(key) => put_field(data, key.as_bytes()),
        None => data.put_i32(-1),
    }
    put_field(data, document);
    put_field(data, &hash::content_hash(document));
    put_field(data, batch.change_id(mutation).as_bytes());
}

/// A value with its length in front. Values are bounded far below 2 GiB before they come here.
fn put_field(out: &mut BytesMut, value: &[u8]) {
    out.put_i32(value.len() as i32);
    out.put_slice(value);
}
