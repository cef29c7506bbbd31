//! One source's log: what was captured, up to where, and who reads it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tidegate_api::{Captured, CommitPosition, Error, Result, Resume, SourceIdentity, code};
use tokio::sync::watch;

use crate::disk::Disk;
use crate::error::{disk_is_full, internal};
use crate::group::Group;
use crate::groups::{GroupStatus, Groups};
use crate::keeper::Keeper;
use crate::metadata::{Metadata, State};
use crate::options::Options;
use crate::reader::Reader;
use crate::recovery::{Tail, recover};
use crate::segments::Segments;
use crate::writer::Writer;

/// One source's log.
#[derive(Debug)]
pub struct Log {
    pub(crate) shared: Arc<Shared>,
    pub(crate) keeper: Keeper,
}

/// What the log, its keeper and its leases share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) source: String,
    pub(crate) options: Options,
    pub(crate) groups: Groups,
    metadata: Arc<Metadata>,
    /// Taken by everything that writes segments or replaces them.
    writing: Mutex<Writing>,
    /// Replaced when the source is reset; readers from before keep theirs.
    segments: RwLock<Arc<Segments>>,
    /// Changes whenever a reader should look again.
    news: watch::Sender<()>,
}

#[derive(Debug)]
struct Writing {
    state: State,
    /// There once the source's identity is known.
    writer: Option<Writer>,
}

impl Log {
    pub(crate) fn open(metadata: Arc<Metadata>, source: &str, folder: PathBuf, disk: Arc<dyn Disk>, options: Options) -> Result<Self> {
        let (state, incarnation) = metadata.source(source)?;
        let identity = if let State::Ready(identity) = &state { Some(digest(identity)?) } else { None };
        let (segments, tail) = recover(disk, folder, incarnation, identity)?;
        let groups = Groups::load(Arc::clone(&metadata), source)?;
        let writer = identity.map(|identity| Writer::new(identity, options.segment_bytes, tail));
        let shared = Arc::new(Shared {
            source: source.to_owned(),
            options,
            groups,
            metadata,
            writing: Mutex::new(Writing { state, writer }),
            segments: RwLock::new(Arc::new(segments)),
            news: watch::Sender::new(()),
        });
        Ok(Self { keeper: Keeper::start(Arc::clone(&shared)), shared })
    }

    /// The source's name.
    pub fn source(&self) -> &str {
        &self.shared.source
    }

    /// What a source is opened with. Positions in it are durable, also against a power cut.
    pub fn resume(&self) -> Resume {
        match &self.shared.writing().state {
            State::New => Resume::New,
            State::Creating => Resume::Interrupted,
            State::Ready(identity) => Resume::At { identity: identity.clone(), durable: self.head() },
        }
    }

    /// Whose log this is; `None` before the source was created.
    pub fn identity(&self) -> Option<SourceIdentity> {
        if let State::Ready(identity) = &self.shared.writing().state { Some(identity.clone()) } else { None }
    }

    /// Remembers durably that the source is about to be created: from here on a crash gives [`Resume::Interrupted`].
    ///
    /// # Errors
    /// The metadata cannot be written, or the source exists.
    pub fn begin_creation(&self) -> Result<()> {
        let mut writing = self.shared.writing();
        if let State::Ready(_) = writing.state {
            return Err(internal("begin creation of source", "a source is created once"));
        }
        self.shared.metadata.set_creating(&self.shared.source)?;
        writing.state = State::Creating;
        Ok(())
    }

    /// Remembers durably whose log this is.
    ///
    /// # Errors
    /// The metadata cannot be written; [`SOURCE_IDENTITY`](code::SOURCE_IDENTITY) where it is another's already.
    pub fn created(&self, identity: &SourceIdentity) -> Result<()> {
        let mut writing = self.shared.writing();
        if let State::Ready(known) = &writing.state {
            return self.shared.same(known, identity);
        }
        self.shared.metadata.set_ready(&self.shared.source, identity)?;
        writing.writer = Some(Writer::new(digest(identity)?, self.shared.options.segment_bytes, Tail::default()));
        writing.state = State::Ready(identity.clone());
        Ok(())
    }

    /// Stores what was captured, in one write and one sync, and gives the head: everything up to there is durable. What is
    /// at or below the head came before and is left out. Parts are written, and durable with their commit.
    ///
    /// Dropping the future does not stop what was begun; calls do not overlap.
    ///
    /// # Errors
    /// Nothing of `captured` counts then: the source must be opened again from [`resume`](Self::resume).
    /// [`RELAY_WRITE`](code::RELAY_WRITE) and [`RELAY_FULL`](code::RELAY_FULL) are transient.
    pub async fn append(&self, captured: Vec<Captured>) -> Result<CommitPosition> {
        let shared = Arc::clone(&self.shared);
        blocking("append to relay", move || shared.append(&captured)).await
    }

    /// Forgets the parts of an unfinished transaction: the source was opened again and will send it from its beginning.
    pub fn abandon_parts(&self) {
        if let Some(writer) = &mut self.shared.writing().writer {
            writer.abandon(&self.shared.segments());
        }
    }

    /// The last durable position, watermarks included.
    pub fn head(&self) -> CommitPosition {
        self.shared.segments().head()
    }

    /// Bytes that the segments take.
    pub fn bytes(&self) -> u64 {
        self.shared.segments().bytes()
    }

    /// The group of this name. A new one starts at the head.
    ///
    /// # Errors
    /// The metadata cannot be written.
    pub fn group(self: &Arc<Self>, name: &str) -> Result<Group> {
        self.shared.groups.ensure(name, self.head())?;
        Ok(Group::new(Arc::clone(self), name.to_owned()))
    }

    /// Every group that is remembered: each holds back the segments that it has not passed.
    pub fn groups(&self) -> Vec<GroupStatus> {
        self.shared.groups.status()
    }

    /// The checkpoint of a group; `None` where it never had one.
    pub fn checkpoint(&self, group: &str) -> Option<CommitPosition> {
        self.shared.groups.checkpoint(group)
    }

    /// About how many durable bytes are behind `position`: exact to the segment.
    pub fn bytes_behind(&self, position: CommitPosition) -> u64 {
        Reader::new(self.shared.segments(), position).bytes_behind(None, position)
    }

    /// Removes a group: nothing is held back for it any more, and its leases are over.
    ///
    /// # Errors
    /// The metadata cannot be written.
    pub fn remove_group(&self, name: &str) -> Result<()> {
        self.shared.groups.remove(name)?;
        self.shared.tell();
        Ok(())
    }

    /// Removes what may go by now. Happens by itself when checkpoints are written and when room is needed.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn retain(&self) -> Result<()> {
        self.shared.retain(self.shared.options.keep, None)
    }

    /// Drops identity, segments and checkpoints: the source is new, its groups start at zero, every lease is over. Only for
    /// an operator who starts the source again.
    ///
    /// # Errors
    /// The metadata cannot be written; nothing has changed then.
    pub fn forget(&self) -> Result<()> {
        self.shared.forget()
    }
}

impl Drop for Log {
    /// An append that somebody did not wait for ends first, and none begins afterwards: the folder may be opened again.
    fn drop(&mut self) {
        self.shared.writing().writer = None;
    }
}

impl Shared {
    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn segments(&self) -> Arc<Segments> {
        Arc::clone(&self.segments.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// Wakes the readers.
    pub(crate) fn tell(&self) {
        self.news.send_replace(());
    }

    /// The incarnation of the source, once a reset that is under way has come to its end.
    pub(crate) fn incarnation(&self) -> u64 {
        let _settled = self.writing();
        self.segments().incarnation
    }

    /// A position of another identity is a fault, never "already captured" (Invariant 7).
    pub(crate) fn same(&self, known: &SourceIdentity, found: &SourceIdentity) -> Result<()> {
        if known == found {
            return Ok(());
        }
        Err(Error::new(&code::SOURCE_IDENTITY, "open source").with("source", &self.source).with("expected", known).with("found", found))
    }

    fn append(&self, captured: &[Captured]) -> Result<CommitPosition> {
        let mut writing = self.writing();
        let Some(writer) = &mut writing.writer else {
            return Err(internal("append to relay", "a source is created before it is captured, and its log is open"));
        };
        let segments = self.segments();
        let before = segments.head();
        let stored = self.make_room(captured).and_then(|()| writer.append(&segments, captured, self.options.now_us()));
        if stored.is_err() {
            writer.abandon(&segments);
        }
        drop(writing);
        if let Err(error) = stored {
            if disk_is_full(&error) {
                // Gives up what is kept only for comfort.
                let _ = self.retain(Duration::ZERO, None);
            }
            return Err(error);
        }
        let head = segments.head();
        if head > before {
            self.tell();
        }
        Ok(head)
    }

    fn forget(&self) -> Result<()> {
        let mut writing = self.writing();
        self.groups.forget()?;
        let (state, incarnation) = self.metadata.source(&self.source)?;
        let old = self.segments();
        let new = Segments::new(Arc::clone(&old.disk), old.folder.clone(), incarnation, Vec::new(), CommitPosition::ZERO);
        *self.segments.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        *writing = Writing { state, writer: None };
        drop(writing);
        self.tell();
        for sequence in old.sequences() {
            if let Err(error) = old.remove(sequence) {
                tracing::warn!(%error, "a segment from before the reset stays until the next start");
            }
        }
        Ok(())
    }
}

fn digest(identity: &SourceIdentity) -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(identity.digest(), &mut bytes)
        .map_err(|error| Error::new(&code::INTERNAL, "digest source identity").because(error))?;
    Ok(bytes)
}

/// Runs what waits for a disk on a thread that may wait.
pub(crate) async fn blocking<T: Send + 'static>(operation: &'static str, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(internal(operation, "the thread that wrote has died").transient()),
    }
}
