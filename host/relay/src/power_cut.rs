//! A disk in memory that a test can take the power from.
//!
//! It keeps two states: what a program sees, and what would be there after a power cut. Writes reach the second only by a
//! sync of the file, names only by a sync of the folder. [`cut_at`](PowerCutDisk::cut_at) takes the power away in the
//! middle of the n-th change; [`restart`](PowerCutDisk::restart) gives it back, with what a [`Survival`] lets survive of
//! everything that was not synced: nothing, all of it, or a random choice in random order, each write torn into sectors.
//!
//! A sync can be told to fail. As on Linux, the bytes that it was about are then still seen by every reader, and are gone
//! after a power cut even where a later sync succeeds. The disk can be full.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, DiskFile};

/// What is torn never splits one of these.
const SECTOR: usize = 512;

/// What becomes of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// It is gone.
    Nothing,
    /// It is all there.
    Everything,
    /// Some of it is there: chosen, torn and reordered by this seed.
    Some(u64),
}

/// See the module. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct PowerCutDisk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    seen: BTreeMap<PathBuf, usize>,
    kept: BTreeMap<PathBuf, usize>,
    files: Vec<File>,
    /// Counts the times that the power was given back: files that were opened before are dead.
    lives: u64,
    changes: u64,
    cut_at: Option<u64>,
    dark: bool,
    capacity: Option<u64>,
    fail_syncs: u64,
    fail_cuts: bool,
}

#[derive(Debug, Default)]
struct File {
    seen: Vec<u8>,
    kept: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Cut { length: usize },
}

impl PowerCutDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// How often something was changed or synced so far.
    pub fn changes(&self) -> u64 {
        self.state().changes
    }

    /// Takes the power away during the change of this number, counted from 0 since the disk was made.
    pub fn cut_at(&self, change: u64) {
        self.state().cut_at = Some(change);
    }

    /// Takes the power away now.
    pub fn cut(&self) {
        self.state().dark = true;
    }

    /// Whether the power is away.
    pub fn is_dark(&self) -> bool {
        self.state().dark
    }

    /// Gives the power back.
    pub fn restart(&self, survival: Survival) {
        let mut state = self.state();
        let mut random = Random(match survival {
            Survival::Some(seed) => seed | 1,
            _ => 1,
        });
        let survives = |random: &mut Random| match survival {
            Survival::Nothing => false,
            Survival::Everything => true,
            Survival::Some(_) => random.below(2) == 0,
        };
        let State { seen, kept, files, .. } = &mut *state;
        let names: Vec<PathBuf> = seen.keys().chain(kept.keys()).cloned().collect();
        for name in names {
            if survives(&mut random) {
                match seen.get(&name) {
                    Some(file) => kept.insert(name, *file),
                    None => kept.remove(&name),
                };
            }
        }
        for file in files.iter_mut() {
            let mut pending = std::mem::take(&mut file.pending);
            if survival == Survival::Everything {
                file.kept.clone_from(&file.seen);
                continue;
            }
            if let Survival::Some(_) = survival {
                pending = pending.into_iter().flat_map(Change::torn).collect();
                random.shuffle(&mut pending);
            }
            for change in pending {
                if survives(&mut random) {
                    change.apply(&mut file.kept);
                }
            }
            file.seen.clone_from(&file.kept);
        }
        state.seen = state.kept.clone();
        state.dark = false;
        state.cut_at = None;
        state.fail_syncs = 0;
        state.lives += 1;
    }

    /// Lets the next `count` syncs of files fail.
    pub fn fail_syncs(&self, count: u64) {
        self.state().fail_syncs = count;
    }

    /// Lets every [`DiskFile::cut`] fail.
    pub fn fail_cuts(&self, fail: bool) {
        self.state().fail_cuts = fail;
    }

    /// Lets writes fail, half done, that would make all files together longer than this.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    /// Changes the bytes of a file behind everybody's back; `change` gets what is durable.
    pub fn corrupt(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        let Some(number) = state.seen.get(path).copied() else { return };
        if let Some(file) = state.files.get_mut(number) {
            change(&mut file.kept);
            file.seen.clone_from(&file.kept);
        }
    }

    /// Takes a file away behind everybody's back, durably.
    pub fn lose(&self, path: &Path) {
        let mut state = self.state();
        state.seen.remove(path);
        state.kept.remove(path);
    }

    /// Moves everything in one folder to another, durably, as if the disk were mounted elsewhere.
    pub fn rename_folder(&self, from: &Path, to: &Path) {
        let mut state = self.state();
        let renamed = |names: &BTreeMap<PathBuf, usize>| {
            let moved = |path: &PathBuf| path.strip_prefix(from).map_or_else(|_| path.clone(), |name| to.join(name));
            names.iter().map(|(path, number)| (moved(path), *number)).collect()
        };
        state.seen = renamed(&state.seen);
        state.kept = renamed(&state.kept);
    }

    /// The files that are seen, with their lengths.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let state = self.state();
        let length = |number: usize| state.files.get(number).map_or(0, |file| file.seen.len() as u64);
        state.seen.iter().map(|(path, number)| (path.clone(), length(*number))).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, number: usize, lives: u64) -> Box<dyn DiskFile> {
        Box::new(Handle { disk: self.clone(), number, lives })
    }
}

impl State {
    fn powered(&self) -> io::Result<()> {
        if self.dark { Err(io::Error::other("the power is away")) } else { Ok(()) }
    }

    /// Counts a change. `true`: it is the one during which the power goes; it may or may not survive.
    fn change(&mut self) -> io::Result<bool> {
        self.powered()?;
        let number = self.changes;
        self.changes += 1;
        self.dark = self.cut_at == Some(number);
        Ok(self.dark)
    }
}

/// The answer to a change during which the power went.
fn answer(cut: bool) -> io::Result<()> {
    if cut { Err(io::Error::other("the power went")) } else { Ok(()) }
}

impl Disk for PowerCutDisk {
    fn make_folder(&self, _folder: &Path) -> io::Result<()> {
        self.state().powered()
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        state.powered()?;
        let inside = state.seen.keys().filter(|path| path.parent() == Some(folder));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        let cut = state.change()?;
        let number = state.seen.get(path).copied().unwrap_or(state.files.len());
        if let Some(file) = state.files.get_mut(number) {
            file.change(Change::Cut { length: 0 });
        } else {
            state.files.push(File::default());
            state.seen.insert(path.to_owned(), number);
        }
        answer(cut)?;
        Ok(self.handle(number, state.lives))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let state = self.state();
        state.powered()?;
        let number = state.seen.get(path).copied().ok_or(io::ErrorKind::NotFound)?;
        Ok(self.handle(number, state.lives))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let cut = state.change()?;
        state.seen.remove(path).ok_or(io::ErrorKind::NotFound)?;
        answer(cut)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.state();
        answer(state.change()?)?;
        let State { seen, kept, .. } = &mut *state;
        kept.retain(|path, _| path.parent() != Some(folder));
        let inside = seen.iter().filter(|(path, _)| path.parent() == Some(folder));
        kept.extend(inside.map(|(path, number)| (path.clone(), *number)));
        Ok(())
    }
}

#[derive(Debug)]
struct Handle {
    disk: PowerCutDisk,
    number: usize,
    lives: u64,
}

impl Handle {
    fn with<T>(&self, work: impl FnOnce(&mut State, usize) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.disk.state();
        state.powered()?;
        if state.lives != self.lives {
            return Err(io::Error::other("opened before the power went"));
        }
        work(&mut state, self.number)
    }
}

impl DiskFile for Handle {
    fn size(&self) -> io::Result<u64> {
        self.with(|state, number| state.files.get(number).map(|file| file.seen.len() as u64).ok_or(io::ErrorKind::NotFound.into()))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|state, number| {
            let file = state.files.get(number).ok_or(io::ErrorKind::NotFound)?;
            let rest = file.seen.get(place(offset)?..).unwrap_or_default();
            let count = rest.len().min(buffer.len());
            if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
                to.copy_from_slice(from);
            }
            Ok(count)
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.with(|state, number| {
            let cut = state.change()?;
            let used: u64 = state.seen.values().filter_map(|number| state.files.get(*number)).map(|file| file.seen.len() as u64).sum();
            let capacity = state.capacity;
            let file = state.files.get_mut(number).ok_or(io::ErrorKind::NotFound)?;
            let offset = place(offset)?;
            let grown = (offset + bytes.len()).saturating_sub(file.seen.len());
            let full = capacity.is_some_and(|capacity| used + grown as u64 > capacity);
            let done = if full { bytes.get(..bytes.len() / 2).unwrap_or_default() } else { bytes };
            file.change(Change::Write { offset, bytes: done.to_vec() });
            answer(cut)?;
            if full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        })
    }

    fn cut(&self, length: u64) -> io::Result<()> {
        self.with(|state, number| {
            let cut = state.change()?;
            let length = place(length)?;
            if state.fail_cuts {
                return Err(io::Error::other("the disk does not answer"));
            }
            if let Some(file) = state.files.get_mut(number) {
                file.change(Change::Cut { length });
            }
            answer(cut)
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.with(|state, number| {
            answer(state.change()?)?;
            let fails = state.fail_syncs > 0;
            state.fail_syncs = state.fail_syncs.saturating_sub(1);
            let file = state.files.get_mut(number).ok_or(io::ErrorKind::NotFound)?;
            let pending = std::mem::take(&mut file.pending);
            if fails {
                // Still seen, never to be durable unless it is written again.
                return Err(io::Error::other("the disk does not answer"));
            }
            pending.into_iter().for_each(|change| change.apply(&mut file.kept));
            Ok(())
        })
    }
}

fn place(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(io::Error::other)
}

impl File {
    fn change(&mut self, change: Change) {
        change.clone().apply(&mut self.seen);
        self.pending.push(change);
    }
}

impl Change {
    fn apply(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes: new } => {
                if bytes.len() < offset + new.len() {
                    bytes.resize(offset + new.len(), 0);
                }
                if let Some(place) = bytes.get_mut(offset..offset + new.len()) {
                    place.copy_from_slice(&new);
                }
            }
            Self::Cut { length } => bytes.truncate(length),
        }
    }

    /// The same change, one sector at a time.
    fn torn(self) -> Vec<Self> {
        let Self::Write { offset, bytes } = self else { return vec![self] };
        let mut pieces = Vec::new();
        let mut at = offset;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(rest.len().min(SECTOR - at % SECTOR));
            pieces.push(Self::Write { offset: at, bytes: piece.to_vec() });
            at += piece.len();
            rest = behind;
        }
        pieces
    }
}

/// xorshift: repeatable, which is all that is asked of it.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound.max(1)
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}
