//! One configuration of the engine, for those who compile and those who run.

use sha2::{Digest, Sha256};
use tidegate_api::{Error, Result, code};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, WasmFeatures};

/// Instances that may exist at one time, over all pipelines.
pub(crate) const MAX_INSTANCES: u32 = 256;

/// Bytes of a memory that stay in place when an instance goes, so that the next one does not fault them in again.
const RESIDENT_BYTES: usize = 1 << 20;

/// An engine that only compiles: it reserves no memory for instances.
pub(crate) fn compiler() -> Result<Engine> {
    engine(&config())
}

/// An engine that runs what [`compiler`] compiled.
pub(crate) fn runner() -> Result<Engine> {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(MAX_INSTANCES);
    pool.total_core_instances(4 * MAX_INSTANCES);
    pool.total_memories(MAX_INSTANCES);
    pool.total_tables(4 * MAX_INSTANCES);
    pool.total_stacks(MAX_INSTANCES);
    pool.max_memories_per_component(1);
    pool.linear_memory_keep_resident(RESIDENT_BYTES);
    pool.pagemap_scan(Enabled::Auto);
    let mut config = config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    engine(&config)
}

/// What compiled code depends on, as 64 hexadecimal digits: another engine or other settings have another one.
pub(crate) fn compatibility(engine: &Engine) -> String {
    struct Hasher(Sha256);
    impl std::hash::Hasher for Hasher {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0 // never asked: the digest is taken instead
        }
    }
    let mut hasher = Hasher(Sha256::new());
    std::hash::Hash::hash(&engine.precompile_compatibility_hash(), &mut hasher);
    hex::encode(hasher.0.finalize())
}

/// Everything here is the same for compiling and running, and makes the same input give the same bytes and fuel.
fn config() -> Config {
    let mut config = Config::new();
    config.consume_fuel(true);
    config.cranelift_nan_canonicalization(true);
    config.wasm_simd(true);
    for feature in [
        WasmFeatures::RELAXED_SIMD,
        WasmFeatures::THREADS,
        WasmFeatures::SHARED_EVERYTHING_THREADS,
        WasmFeatures::MEMORY64,
        WasmFeatures::MULTI_MEMORY,
        WasmFeatures::GC,
        WasmFeatures::FUNCTION_REFERENCES,
        WasmFeatures::EXCEPTIONS,
        WasmFeatures::LEGACY_EXCEPTIONS,
        WasmFeatures::STACK_SWITCHING,
        WasmFeatures::TAIL_CALL,
    ] {
        config.wasm_features(feature, false);
    }
    config.memory_init_cow(true);
    config
}

fn engine(config: &Config) -> Result<Engine> {
    Engine::new(config).map_err(|error| Error::new(&code::SANDBOX_FAILED, "start engine").because(format!("{error:#}")))
}
