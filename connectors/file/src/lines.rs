//! Whole lines of a growing file, with bounded memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tidegate_api::{CommitPosition, Result, SourceIdentity};
use tokio::task::yield_now;

use crate::error::{backwards, changed, malformed, unreadable};
use crate::line::{self, Transaction};

/// A longer line is refused.
const MAX_LINE_BYTES: u64 = 64 << 20;

const TOO_LONG: &str = "a line has at most 64 MiB";

/// Others have their turn after so many bytes.
const STEP_BYTES: u64 = 1 << 20;

/// Reads a file's transactions in order, from its beginning.
#[derive(Debug)]
pub(crate) struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    inode: u64,
    /// How far whole lines were read.
    offset: u64,
    number: u64,
    /// The line that is being read; kept while its end is not there yet.
    line: Vec<u8>,
    last: CommitPosition,
}

impl Lines {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| unreadable(path, error))?;
        let inode = file.metadata().map_err(|error| unreadable(path, error))?.ino();
        Ok(Self {
            path: path.to_owned(),
            reader: BufReader::with_capacity(256 << 10, file),
            inode,
            offset: 0,
            number: 0,
            line: Vec::new(),
            last: CommitPosition::ZERO,
        })
    }

    /// The position of the last transaction that was read.
    pub(crate) fn last(&self) -> CommitPosition {
        self.last
    }

    /// Where the next line begins.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Hands the next transaction to `take`; `None` where no whole line is there yet.
    ///
    /// # Errors
    /// The line is not a transaction, or does not move forward; the file is not the one that was opened.
    pub(crate) fn next<T>(&mut self, take: impl FnOnce(&Transaction<'_>, CommitPosition) -> T) -> Result<Option<T>> {
        if !self.fill()? {
            return Ok(None);
        }
        let transaction = Transaction::parse(&self.line).map_err(|reason| malformed(&self.path, self.number + 1, reason))?;
        let position = self.behind_last(transaction.position().unwrap_or_default())?;
        let taken = take(&transaction, position);
        self.advance(position);
        Ok(Some(taken))
    }

    /// Passes over the next transaction, of which only the position is read; `false` where no whole line is there yet.
    ///
    /// # Errors
    /// As for [`next`](Self::next).
    pub(crate) fn pass(&mut self) -> Result<bool> {
        if !self.fill()? {
            return Ok(false);
        }
        let position = line::position(&self.line).map_err(|reason| malformed(&self.path, self.number + 1, reason))?;
        let position = self.behind_last(position)?;
        self.advance(position);
        Ok(true)
    }

    fn behind_last(&self, position: CommitPosition) -> Result<CommitPosition> {
        if position <= self.last {
            return Err(backwards(&self.path, self.number + 1, position, self.last));
        }
        Ok(position)
    }

    fn advance(&mut self, position: CommitPosition) {
        self.offset += self.line.len() as u64 + 1;
        self.number += 1;
        self.last = position;
        self.line.clear();
    }

    /// Reads on to the end of the line, which it leaves out; whether it was there.
    fn fill(&mut self) -> Result<bool> {
        let room = MAX_LINE_BYTES.saturating_sub(self.line.len() as u64);
        let read = self.reader.by_ref().take(room).read_until(b'\n', &mut self.line).map_err(|error| unreadable(&self.path, error))?;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
            return Ok(true);
        }
        if self.line.len() as u64 >= MAX_LINE_BYTES {
            return Err(malformed(&self.path, self.number + 1, TOO_LONG));
        }
        if read == 0 {
            self.still_the_same()?;
        }
        Ok(false)
    }

    /// At the end of the file: it must be the one that is open, and no shorter than what was read.
    fn still_the_same(&self) -> Result<()> {
        let length = self.reader.get_ref().metadata().map_err(|error| unreadable(&self.path, error))?.len();
        if length < self.offset + self.line.len() as u64 {
            return Err(changed(&self.path, "it has become shorter"));
        }
        match self.path.metadata() {
            Ok(now) if now.ino() == self.inode => Ok(()),
            Ok(_) => Err(changed(&self.path, "another file stands in its place")),
            Err(error) => Err(unreadable(&self.path, error)),
        }
    }
}

/// Whose positions a file's are: its canonical path, and its first line. `None` while that is not there.
pub(crate) fn identity(path: &Path) -> Result<Option<SourceIdentity>> {
    let failed = |error: io::Error| unreadable(path, error);
    let canonical = path.canonicalize().map_err(failed)?;
    let mut first = Vec::new();
    let file = File::open(path).map_err(failed)?;
    BufReader::new(file).take(MAX_LINE_BYTES).read_until(b'\n', &mut first).map_err(failed)?;
    if first.len() as u64 >= MAX_LINE_BYTES {
        return Err(malformed(path, 1, TOO_LONG));
    }
    if first.pop() != Some(b'\n') {
        return Ok(None);
    }
    // What somebody still has to correct identifies nothing.
    Transaction::parse(&first).map_err(|reason| malformed(path, 1, reason))?;
    let epoch = hex::encode(Sha256::digest(&first));
    Ok(Some(SourceIdentity { system: "file".to_owned(), timeline: 0, database: canonical.display().to_string(), epoch }))
}

/// Reads a large part of a file in steps, between which others have their turn.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    from: u64,
}

impl Steps {
    /// To be called after each line.
    pub(crate) async fn after(&mut self, offset: u64) {
        if offset.saturating_sub(self.from) >= STEP_BYTES {
            self.from = offset;
            yield_now().await;
        }
    }
}

/// Passes over everything up to `durable`, which must stand in the file.
pub(crate) async fn pass_to(lines: &mut Lines, durable: CommitPosition) -> Result<()> {
    let mut steps = Steps::default();
    while lines.last() < durable && lines.pass()? {
        steps.after(lines.offset()).await;
    }
    if lines.last() == durable {
        return Ok(());
    }
    Err(changed(&lines.path, "the last position that was read from it is not there any more"))
}

/// Passes over the whole lines that begin before `end`.
pub(crate) async fn pass_before(lines: &mut Lines, end: u64) -> Result<()> {
    let mut steps = Steps::default();
    while lines.offset() < end && lines.pass()? {
        steps.after(lines.offset()).await;
    }
    Ok(())
}
