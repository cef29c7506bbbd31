//! How much memory an instance may take.

use wasmtime::ResourceLimiter;

/// Elements of all tables together.
const MAX_TABLE_ELEMENTS: usize = 10_000;

/// Counts the bytes of all memories of an instance and remembers when more were asked for than are allowed: a trap alone does
/// not tell a lack of memory from a guest that gave up.
pub(crate) struct Limiter {
    limit: usize,
    taken: usize,
    denied: bool,
}

impl Limiter {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit: usize::try_from(limit).unwrap_or(usize::MAX), taken: 0, denied: false }
    }

    /// Bytes of all memories.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    /// Whether the instance ended because it asked for more memory than it may have.
    pub(crate) fn denied(&self) -> bool {
        self.denied
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let taken = self.taken.saturating_add(desired.saturating_sub(current));
        if taken > self.limit || maximum.is_some_and(|maximum| desired > maximum) {
            self.denied = true;
            wasmtime::bail!("the guest asked for {taken} bytes of memory and may have {}", self.limit);
        }
        self.taken = taken;
        Ok(true)
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= MAX_TABLE_ELEMENTS)
    }
}
