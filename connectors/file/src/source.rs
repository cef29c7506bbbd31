//! The source: opening, looking, replaying.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_api::{
    BoxFuture, Capture, Finding, Lsn, Result, Resume, Snapshot, SnapshotSource, Source, SourceIdentity, SourceStatus, TableName, code,
};

use crate::capture::{FileCapture, POLL};
use crate::config::Config;
use crate::error::changed;
use crate::lines::{self, Lines};
use crate::snapshot::Replay;

/// A file of transactions.
#[derive(Debug)]
pub struct FileSource {
    config: Config,
    head: Arc<AtomicU64>,
}

impl FileSource {
    /// A source that reads this file. Nothing is opened yet.
    pub fn new(config: Config) -> Self {
        Self { config, head: Arc::default() }
    }

    async fn identity(&self) -> Result<SourceIdentity> {
        loop {
            if let Some(identity) = lines::identity(&self.config.path)? {
                return Ok(identity);
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

fn wanted(tables: &[TableName]) -> Vec<String> {
    tables.iter().map(ToString::to_string).collect()
}

impl Source for FileSource {
    fn preflight<'a>(&'a self, _tables: &'a [TableName]) -> BoxFuture<'a, Result<Vec<Finding>>> {
        Box::pin(async {
            let path = self.config.path.display().to_string();
            Ok(vec![match std::fs::File::open(&self.config.path).and_then(|file| file.metadata()) {
                Ok(metadata) if metadata.is_file() => Finding::passed(format!("file {path}"), format!("{} bytes", metadata.len())),
                Ok(_) => Finding::failed(&code::FILE_UNREADABLE, format!("file {path}"), "not a regular file", code::FILE_UNREADABLE.fix),
                Err(error) => Finding::failed(&code::FILE_UNREADABLE, format!("file {path}"), error.to_string(), code::FILE_UNREADABLE.fix),
            }])
        })
    }

    fn open<'a>(&'a self, resume: &'a Resume, tables: &'a [TableName]) -> BoxFuture<'a, Result<Box<dyn Capture>>> {
        Box::pin(async move {
            let identity = self.identity().await?;
            let mut lines = Lines::open(&self.config.path)?;
            match resume {
                Resume::New | Resume::Interrupted => (),
                // Invariant 7
                Resume::At { identity: known, .. } if *known != identity => {
                    return Err(changed(&self.config.path, "its path or its first line is another"));
                }
                Resume::At { durable, .. } => lines::pass_to(&mut lines, *durable).await?,
            }
            let (wanted, head) = (wanted(tables), Arc::clone(&self.head));
            let capture: Box<dyn Capture> = Box::new(FileCapture { identity, lines, wanted, head, ended: None });
            Ok(capture)
        })
    }

    /// Nothing was created.
    fn remove(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn status(&self) -> BoxFuture<'_, Result<SourceStatus>> {
        let head = Some(Lsn(self.head.load(Ordering::Relaxed)));
        Box::pin(async move { Ok(SourceStatus { head, ..SourceStatus::default() }) })
    }

    fn snapshots(&self) -> Option<&dyn SnapshotSource> {
        Some(self)
    }
}

impl SnapshotSource for FileSource {
    fn begin<'a>(&'a self, tables: &'a [TableName]) -> BoxFuture<'a, Result<Box<dyn Snapshot>>> {
        Box::pin(async move {
            let replay: Box<dyn Snapshot> = Box::new(Replay::begin(&self.config.path, wanted(tables)).await?);
            Ok(replay)
        })
    }
}
