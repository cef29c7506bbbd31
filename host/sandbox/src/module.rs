//! A module that was loaded and fits the contract.

use tidegate_api::{Error, Result, code};
use wasmtime::Engine;
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker};

use crate::limiter::Limiter;

/// The interface that a module must export; also the world's version in the fingerprint.
pub(crate) const INTERFACE: &str = "tidegate:transform/frames@1.0.0";

/// The most a memory may start with.
const MAX_INITIAL_PAGES: u64 = 1024;

pub(crate) struct Module {
    digest: String,
    pub(crate) pre: InstancePre<Limiter>,
    pub(crate) configure: ComponentExportIndex,
    pub(crate) transform: ComponentExportIndex,
}

impl Module {
    /// Loads a compiled module and checks that it imports nothing and exports the interface.
    ///
    /// # Errors
    /// [`code::MODULE_REFUSED`] when it does not.
    pub(crate) fn load(engine: &Engine, digest: &str, compiled: &[u8]) -> Result<Self> {
        let refused = || Error::new(&code::MODULE_REFUSED, "load module").with("module", digest);
        let component = deserialize(engine, compiled).map_err(|error| refused().because(format!("{error:#}")))?;
        let imports: Vec<_> = component.component_type().imports(engine).map(|(name, _)| name.to_owned()).collect();
        if let Some(import) = imports.first() {
            return Err(refused().with("import", import).because("a transform imports nothing"));
        }
        let required = component.resources_required();
        let fits = required.is_some_and(|needs| needs.num_memories <= 1 && needs.max_initial_memory_size.unwrap_or(0) <= MAX_INITIAL_PAGES);
        if !fits {
            return Err(refused().because("a transform has one memory of at most 64 MiB at its start"));
        }
        let function = |name: &str| {
            let interface = component.get_export_index(None, INTERFACE)?;
            component.get_export_index(Some(&interface), name)
        };
        let missing = || refused().with("interface", INTERFACE).because("a transform exports this interface with configure and transform");
        let (configure, transform) = (function("configure").ok_or_else(missing)?, function("transform").ok_or_else(missing)?);
        let pre = Linker::new(engine).instantiate_pre(&component).map_err(|error| refused().because(format!("{error:#}")))?;
        Ok(Self { digest: digest.to_owned(), pre, configure, transform })
    }

    /// SHA-256 of the module's bytes.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }
}

#[expect(unsafe_code, reason = "loading compiled code is unsafe in the engine's interface, and is what this crate is for")]
fn deserialize(engine: &Engine, compiled: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: these are bytes that our own compile worker made: they came from its pipe, or from the cache, whose HMAC was
    // checked over exactly these bytes in memory. The engine itself refuses those of another version or other settings.
    unsafe { Component::deserialize(engine, compiled) }
}
