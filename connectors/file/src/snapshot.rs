//! What stood in the file before a pipeline began: its lines, replayed in order.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use tidegate_api::{BoxFuture, Change, Chunk, ChunkBuilder, CommitPosition, Result, Snapshot};

use crate::error::{changed, unreadable};
use crate::lines::{Lines, Steps, pass_before};

pub(crate) struct Replay {
    lines: Lines,
    steps: Steps,
    /// The last transaction that was whole at the beginning.
    boundary: CommitPosition,
    wanted: Vec<String>,
    /// Full chunks of the line that was read last.
    ready: VecDeque<Chunk>,
    builder: ChunkBuilder,
    path: PathBuf,
}

impl Replay {
    /// Reads the file once to find the last transaction that is whole now.
    pub(crate) async fn begin(path: &Path, wanted: Vec<String>) -> Result<Self> {
        let end = path.metadata().map_err(|error| unreadable(path, error))?.len();
        let mut lines = Lines::open(path)?;
        pass_before(&mut lines, end).await?;
        Ok(Self {
            boundary: lines.last(),
            lines: Lines::open(path)?,
            steps: Steps::default(),
            wanted,
            ready: VecDeque::new(),
            builder: ChunkBuilder::default(),
            path: path.to_owned(),
        })
    }

    async fn chunk(&mut self) -> Result<Option<Chunk>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(Some(chunk));
            }
            if self.lines.last() >= self.boundary {
                return Ok((!self.builder.is_empty()).then(|| self.builder.finish()));
            }
            let (wanted, builder, ready) = (&self.wanted, &mut self.builder, &mut self.ready);
            if self.lines.next(|transaction, _| transaction.changes(wanted, |change| add(builder, ready, &change)))?.is_none() {
                return Err(changed(&self.path, "a line that was there is not whole any more"));
            }
            self.steps.after(self.lines.offset()).await;
        }
    }
}

/// Adds a change; ordinals count within a chunk.
fn add(builder: &mut ChunkBuilder, ready: &mut VecDeque<Chunk>, change: &Change<'_>) {
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

    fn estimated_rows(&self) -> Option<u64> {
        None
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Option<Chunk>>> {
        Box::pin(self.chunk())
    }
}
