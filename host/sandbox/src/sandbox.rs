//! The sandbox as its users see it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::available_parallelism;
use std::time::Duration;

use tidegate_api::{Error, Result, Transform, code};
use tidegate_builtin_transforms::program_guest;
use tidegate_program::Program;
use tokio::sync::Mutex;
use wasmtime::Engine;

use crate::cache::CompiledCache;
use crate::compile::{self, NATIVE};
use crate::engine;
use crate::instance::Failure;
use crate::module::Module;
use crate::pool::{Ended, Pool};
use crate::program::ProgramTransform;
use crate::store::ModuleStore;

/// Where a sandbox keeps things and what it may use.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder of modules: `data_dir/modules`. Made where it is missing, closed to other users.
    pub modules: PathBuf,
    /// The executable that compiles modules when it is run as `<worker> compile-worker …`: it hands what follows to
    /// [`compile_worker`](crate::compile_worker). A daemon names itself.
    pub worker: PathBuf,
    /// How many threads run guests; by default one less than there are processors, at least 1.
    pub threads: Option<usize>,
}

/// How long a guest may take to read its configuration, in processor time.
const CONFIGURE_TIME: Duration = Duration::from_secs(5);

/// Modules, and the engine and threads that run them.
pub struct Sandbox {
    worker: PathBuf,
    store: ModuleStore,
    cache: CompiledCache,
    engine: Engine,
    pool: Arc<Pool>,
    /// Those that some transform uses. Locked while a module is loaded, so that none is compiled twice at one time.
    modules: Mutex<HashMap<String, Weak<Module>>>,
    lanes: AtomicU64,
}

impl Sandbox {
    /// Opens the store of modules and starts the threads.
    ///
    /// # Errors
    /// [`code::MODULE_STORE`] when the folder cannot be used.
    pub fn open(settings: Settings) -> Result<Arc<Self>> {
        let store = ModuleStore::open(&settings.modules)?;
        let engine = engine::runner()?;
        let cache = CompiledCache::open(store.folder("compiled")?, engine::compatibility(&engine))?;
        let processors = available_parallelism().map_or(1, usize::from);
        let threads = settings.threads.unwrap_or(processors.saturating_sub(1)).max(1);
        let pool = Arc::new(Pool::start(threads)?);
        let modules = Mutex::default();
        Ok(Arc::new(Self { worker: settings.worker, store, cache, engine, pool, modules, lanes: AtomicU64::new(0) }))
    }

    /// Puts the built-in guest that runs programs into the store of modules, where it is not there yet. Gives its SHA-256.
    ///
    /// A pipeline keeps the digest that it was provisioned with: another release brings another guest.
    ///
    /// # Errors
    /// [`code::MODULE_STORE`] when it cannot be written.
    pub fn provision_program_guest(&self) -> Result<String> {
        self.store.add(program_guest().bytes)
    }

    /// A transform that runs `program` in the module of this SHA-256, which must be in the store.
    ///
    /// Compiles the module where that was not done before, and tries whether it takes the program.
    ///
    /// # Errors
    /// [`code::MODULE_MISSING`], [`code::MODULE_REFUSED`], [`code::MODULE_COMPILE`].
    pub async fn program(self: &Arc<Self>, program: Program, module: &str) -> Result<Arc<dyn Transform>> {
        let module = self.module(module).await?;
        let lane = self.lanes.fetch_add(1, Ordering::Relaxed);
        let transform = ProgramTransform::new(&program, module, self.pool.clone(), lane);
        let stage = transform.stage().clone();
        let try_it = async move {
            let instance = stage.instances.fresh().await?;
            stage.instances.give_back(instance);
            Ok(())
        };
        match self.pool.run(lane, CONFIGURE_TIME, try_it).await?.0 {
            Ended::Done(Err(Failure::Broken(error))) => Err(error),
            // A guest that cannot even start within the program's limits refuses every transaction: poison, with its own kind.
            Ended::Done(_) => Ok(Arc::new(transform)),
            Ended::OutOfTime => {
                let refused = Error::new(&code::MODULE_REFUSED, "configure guest").with("limit_seconds", CONFIGURE_TIME.as_secs());
                Err(refused.because("the guest did not read its configuration in time"))
            }
        }
    }

    /// The module, loaded from the cache or compiled.
    async fn module(self: &Arc<Self>, digest: &str) -> Result<Arc<Module>> {
        let mut modules = self.modules.lock().await;
        if let Some(module) = modules.get(digest).and_then(Weak::upgrade) {
            return Ok(module);
        }
        let (sandbox, name) = (self.clone(), digest.to_owned());
        let load = move || -> Result<_> {
            let bytes = sandbox.store.get(&name)?;
            let module = sandbox.cache.get(&name).map(|compiled| Module::load(&sandbox.engine, &name, &compiled));
            Ok((bytes, module.and_then(Result::ok)))
        };
        let (bytes, loaded) =
            tokio::task::spawn_blocking(load).await.map_err(|error| Error::new(&code::INTERNAL, "load module").because(error))??;
        let module = match loaded {
            Some(module) => module,
            None => {
                let compiled = compile::compile(&self.worker, &bytes, &NATIVE).await?;
                let module = Module::load(&self.engine, digest, &compiled)?;
                self.cache.put(digest, &compiled)?;
                module
            }
        };
        let module = Arc::new(module);
        modules.retain(|_, module| module.strong_count() > 0);
        modules.insert(digest.to_owned(), Arc::downgrade(&module));
        Ok(module)
    }
}
