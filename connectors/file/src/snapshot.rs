//! What stood in the file before a pipeline began: its lines, replayed in order.

use tidegate_api::{BoxFuture, Change, Chunk, ChunkBuilder, CommitPosition, Result, Snapshot};

use crate::lines::Lines;

pub(crate) struct Replay {
    lines: Lines,
    /// Lines that begin behind it came later.
    end: u64,
    boundary: CommitPosition,
    wanted: Vec<String>,
    ready: std::collections::VecDeque<Chunk>,
    builder: ChunkBuilder,
}

impl Replay {
    /// Reads the file once to find the last transaction that is whole now.
    pub(crate) fn begin(mut lines: Lines, again: Lines, end: u64, wanted: Vec<String>) -> Result<Self> {
        while lines.is_before(end) && lines.next(|_, _| ())?.is_some() {}
        Ok(Self {
            boundary: lines.last(),
            lines: again,
            end,
            wanted,
            ready: std::collections::VecDeque::new(),
            builder: ChunkBuilder::default(),
        })
    }

    fn chunk(&mut self) -> Result<Option<Chunk>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(Some(chunk));
            }
            let whole = self.lines.is_before(self.end) && self.lines.last() < self.boundary;
            let (wanted, builder, ready) = (&self.wanted, &mut self.builder, &mut self.ready);
            if whole && self.lines.next(|transaction, _| transaction.changes(wanted, |change| add(builder, ready, &change)))?.is_some() {
                continue;
            }
            return Ok((!self.builder.is_empty()).then(|| self.builder.finish()));
        }
    }
}

/// Adds a change; ordinals count within a chunk.
fn add(builder: &mut ChunkBuilder, ready: &mut std::collections::VecDeque<Chunk>, change: &Change<'_>) {
    let size = change.key.len() + change.new.map_or(0, <[u8]>::len);
    if builder.is_full_for(size) {
        ready.push_back(builder.finish());
    }
    let ordinal = u32::try_from(builder.len()).unwrap_or(u32::MAX);
    builder.push(&Change { ordinal, old: None, ..*change });
}

impl Snapshot for Replay {
    fn boundary(&self) -> CommitPosition {
        self.boundary
    }

    fn estimated_rows(&self) -> u64 {
        0
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Option<Chunk>>> {
        Box::pin(async { self.chunk() })
    }
}
