//! Where a batch lives: in memory, or beyond 8 MiB in an unlinked file, so that every attempt reads the same bytes.
//!
//! A spool file holds the bytes of the [`MutationChunk`]s one behind the other; their places are in memory. It has no name
//! and ends with the process: a batch is made anew from the relay then.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use tidegate_api::{Batch, BatchChunks, BatchOrigin, Error, MutationChunk, Result, code};

/// A batch that takes more is spooled.
pub(crate) const MAX_MEMORY_BYTES: u64 = 8 << 20;

/// Collects the chunks of one batch.
#[derive(Debug)]
pub(crate) struct BatchWriter<'a> {
    folder: &'a Path,
    memory: Vec<MutationChunk>,
    spooled: Option<Spool>,
    mutations: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Spool {
    file: File,
    /// Where each chunk begins, and its length.
    places: Vec<(u64, usize)>,
    end: u64,
}

impl<'a> BatchWriter<'a> {
    pub(crate) fn new(folder: &'a Path) -> Self {
        Self { folder, memory: Vec::new(), spooled: None, mutations: 0, bytes: 0 }
    }

    pub(crate) fn push(&mut self, chunk: MutationChunk) -> Result<()> {
        if chunk.is_empty() {
            return Ok(());
        }
        self.mutations += chunk.len() as u64;
        self.bytes += chunk.bytes().len() as u64;
        if self.spooled.is_none() && self.bytes > MAX_MEMORY_BYTES {
            let mut spool = Spool::new(self.folder).map_err(failed)?;
            for chunk in self.memory.drain(..) {
                spool.write(&chunk).map_err(failed)?;
            }
            self.spooled = Some(spool);
        }
        match &mut self.spooled {
            Some(spool) => spool.write(&chunk).map_err(failed),
            None => {
                self.memory.push(chunk);
                Ok(())
            }
        }
    }

    pub(crate) fn finish(self, origin: BatchOrigin) -> Batch {
        match self.spooled {
            Some(spool) => Batch::new(origin, self.mutations, self.bytes, Arc::new(spool)),
            None => Batch::in_memory(origin, self.memory),
        }
    }
}

impl Spool {
    fn new(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self { file: tempfile::tempfile_in(folder)?, places: Vec::new(), end: 0 })
    }

    fn write(&mut self, chunk: &MutationChunk) -> io::Result<()> {
        self.file.write_all(chunk.bytes())?;
        self.places.push((self.end, chunk.bytes().len()));
        self.end += chunk.bytes().len() as u64;
        Ok(())
    }
}

impl BatchChunks for Spool {
    fn count(&self) -> usize {
        self.places.len()
    }

    fn read(&self, index: usize) -> Result<MutationChunk> {
        let missing = || Error::new(&code::SPOOL_FAILED, "read batch").with("chunk", index);
        let (offset, length) = self.places.get(index).copied().ok_or_else(missing)?;
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, offset).map_err(failed)?;
        MutationChunk::parse(Bytes::from(bytes))
    }
}

fn failed(error: io::Error) -> Error {
    Error::new(&code::SPOOL_FAILED, "spool batch").because(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_api::{Mutation, MutationChunkBuilder, MutationKind, TransactionMeta};

    fn chunk(ordinal: u32, size: usize) -> MutationChunk {
        let document = vec![b'x'; size];
        let kind = MutationKind::Upsert { document: &document, content_type: "application/json" };
        let mut builder = MutationChunkBuilder::default();
        builder.push(&Mutation { ordinal, collection: "public.a", key: "1", partition_key: None, kind });
        builder.finish()
    }

    #[test]
    fn a_batch_beyond_memory_reads_the_same_bytes_every_time_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let spool = folder.path().join("spool");
        let mut writer = BatchWriter::new(&spool);
        let chunks: Vec<MutationChunk> = (0..20).map(|ordinal| chunk(ordinal, 1 << 20)).collect();
        for chunk in &chunks {
            writer.push(chunk.clone()).unwrap();
        }
        let meta = TransactionMeta { xid: 1, position: tidegate_api::CommitPosition::new(7), commit_time_us: 0, changes: 20 };
        let batch = writer.finish(BatchOrigin::Transaction(meta));
        assert_eq!(batch.mutations(), 20);
        for _ in 0..2 {
            let read: Vec<MutationChunk> = batch.chunks().map(Result::unwrap).collect();
            assert_eq!(read, chunks);
        }
        assert_eq!(fs::read_dir(&spool).unwrap().count(), 0);
    }
}
