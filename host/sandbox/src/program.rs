//! A program stage.

use std::sync::Arc;
use std::time::Duration;

use tidegate_api::{Origin, Transform, TransformRun};
use tidegate_program::Program;

use crate::instance::Instances;
use crate::module::{INTERFACE, Module};
use crate::pool::Pool;
use crate::run::ProgramRun;

/// What every run of one program shares.
pub(crate) struct Stage {
    pub(crate) instances: Instances,
    pub(crate) limits: Limits,
    /// Its turn among the others on the pool.
    pub(crate) lane: u64,
}

/// The limits that are the host's to keep.
pub(crate) struct Limits {
    pub(crate) mutations: u64,
    pub(crate) document_bytes: u64,
    pub(crate) time: Duration,
    instructions: u64,
}

/// Fuel for any call, however small.
const CALL_FUEL: u64 = 100_000_000;

/// Fuel for each byte of a request or of a document that may come of it, once for reading and once for each instruction.
/// Measured: 20 to 40.
const BYTE_FUEL: u64 = 1000;

impl Limits {
    /// Fuel for a call with a request of `bytes` bytes and `records` records: so wide that no program within its other limits
    /// meets it. It is there to end a guest that does not end, on every machine at the same place.
    pub(crate) fn fuel(&self, bytes: usize, records: usize) -> u64 {
        let documents = self.document_bytes.min(1 << 20).saturating_mul(records as u64);
        let bytes = (bytes as u64).saturating_add(documents);
        bytes.saturating_mul(BYTE_FUEL).saturating_mul(1 + self.instructions).saturating_add(CALL_FUEL)
    }
}

pub(crate) struct ProgramTransform {
    stage: Arc<Stage>,
    pool: Arc<Pool>,
    definition: String,
}

impl ProgramTransform {
    pub(crate) fn new(program: &Program, module: Arc<Module>, pool: Arc<Pool>, lane: u64) -> Self {
        let canonical = program.canonical();
        let definition = definition(program, &canonical, module.digest());
        let limits = program.limits();
        let host = Limits {
            mutations: limits.mutations,
            document_bytes: limits.document_bytes,
            time: Duration::from_millis(limits.milliseconds),
            instructions: program.instructions() as u64,
        };
        let instances = Instances::new(module, canonical.into_bytes(), limits.memory_bytes);
        Self { stage: Arc::new(Stage { instances, limits: host, lane }), pool, definition }
    }

    pub(crate) fn stage(&self) -> &Arc<Stage> {
        &self.stage
    }
}

impl Transform for ProgramTransform {
    fn definition(&self) -> &str {
        &self.definition
    }

    fn begin(&self, changes: u64, _of: Origin) -> Box<dyn TransformRun> {
        Box::new(ProgramRun::new(self.stage.clone(), self.pool.clone(), changes))
    }
}

/// The program stands in it as text: as a value, the digits of its literals would go through a float.
fn definition(program: &Program, canonical: &str, module: &str) -> String {
    let limits = program.limits();
    serde_json::json!({
        "kind": "program",
        "name": program.name(),
        "version": program.version(),
        "program": canonical,
        "limits": {
            "mutations": limits.mutations,
            "document_bytes": limits.document_bytes,
            "batch_bytes": limits.batch_bytes,
            "operations": limits.operations,
            "depth": limits.depth,
            "milliseconds": limits.milliseconds,
            "memory_bytes": limits.memory_bytes,
        },
        "module": module,
        "world": INTERFACE,
    })
    .to_string()
}
