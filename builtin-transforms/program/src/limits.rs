//! The bounds of a program.

/// What a program may use. Reaching beyond one is poison, each with a kind of its own; all are part of the program's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Mutations in a batch, deletes too. Kept by the host.
    pub mutations: u64,
    /// Bytes of one document, on the way in and on the way out.
    pub document_bytes: u64,
    /// Bytes of all documents of a batch, in and out together.
    pub batch_bytes: u64,
    /// Instructions started in a batch.
    pub operations: u64,
    /// Containers of a document that are open at once, in and out; at most [`Limits::MAX_DEPTH`].
    pub depth: u64,
    /// CPU time of a batch. Kept by the host.
    pub milliseconds: u64,
    /// Memory of the sandbox. Kept by the host.
    pub memory_bytes: u64,
}

impl Limits {
    /// The highest limit of depth.
    pub const MAX_DEPTH: u64 = 256;

    /// The limits by the names that a program file and its canonical form give them, in the order of the latter.
    pub(crate) fn named(&mut self) -> [(&'static str, &mut u64); 7] {
        [
            ("mutations", &mut self.mutations),
            ("document_bytes", &mut self.document_bytes),
            ("batch_bytes", &mut self.batch_bytes),
            ("operations", &mut self.operations),
            ("depth", &mut self.depth),
            ("milliseconds", &mut self.milliseconds),
            ("memory_bytes", &mut self.memory_bytes),
        ]
    }
}

/// Wide enough for a bulk update of a whole table.
impl Default for Limits {
    fn default() -> Self {
        Self {
            mutations: 10_000_000,
            document_bytes: 1 << 20,
            batch_bytes: 4 << 30,
            operations: 1_000_000_000,
            depth: 64,
            milliseconds: 5000,
            memory_bytes: 64 << 20,
        }
    }
}
