//! One guest, configured and ready to be called.

use std::sync::Arc;

use tidegate_api::{Error, code};
use wasmtime::component::Func;
use wasmtime::{Store, Trap};

use crate::limiter::Limiter;
use crate::module::Module;

/// Guest code is interrupted after this much fuel: some hundred microseconds.
const SLICE_FUEL: u64 = 1_000_000;

/// What configuring may cost: a program is at most 1 MiB.
const CONFIGURE_FUEL: u64 = 20_000_000_000;

/// Why a call gave no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It used up its fuel.
    Fuel,
    /// It asked for more memory than it may have.
    Memory,
    /// It failed by itself, or does not fit the contract.
    Broken(Error),
}

pub(crate) struct Instance {
    store: Store<Limiter>,
    transform: Func,
}

impl Instance {
    /// A new instance of the module with this configuration.
    pub(crate) async fn new(module: &Module, config: &[u8], memory_bytes: u64) -> Result<Self, Failure> {
        let mut store = Store::new(module.pre.engine(), Limiter::new(memory_bytes));
        store.limiter(|limiter| limiter);
        // An answer lies in the guest's memory, so it cannot be larger than that.
        store.set_hostcall_fuel(usize::try_from(memory_bytes).unwrap_or(usize::MAX));
        let ready = async {
            store.set_fuel(CONFIGURE_FUEL)?;
            store.fuel_async_yield_interval(Some(SLICE_FUEL))?;
            let instance = module.pre.instantiate_async(&mut store).await?;
            let configure = instance.get_typed_func::<(&[u8],), (Result<(), String>,)>(&mut store, &module.configure)?;
            let transform = instance.get_typed_func::<(&[u8],), (Vec<u8>,)>(&mut store, &module.transform)?;
            let (configured,) = configure.call_async(&mut store, (config,)).await?;
            Ok((*transform.func(), configured))
        };
        let ready: wasmtime::Result<_> = ready.await;
        let (transform, configured) = ready.map_err(|error| failure(&store, &error, "start guest").with_module(module))?;
        configured.map_err(|reason| {
            let refused = Error::new(&code::MODULE_REFUSED, "configure guest").with("module", module.digest());
            Failure::Broken(refused.because(reason))
        })?;
        Ok(Self { store, transform })
    }

    /// Calls the guest with a request frame. Gives the response frame and the fuel that it took. After a failure the instance
    /// is of no more use.
    pub(crate) async fn call(&mut self, frame: &[u8], fuel: u64) -> Result<(Vec<u8>, u64), Failure> {
        let called = async {
            self.store.set_fuel(fuel)?;
            let transform = self.transform.typed::<(&[u8],), (Vec<u8>,)>(&self.store)?;
            let (response,) = transform.call_async(&mut self.store, (frame,)).await?;
            Ok((response, fuel - self.store.get_fuel()?))
        };
        let called: wasmtime::Result<_> = called.await;
        called.map_err(|error| failure(&self.store, &error, "call guest"))
    }

    /// Bytes of its memories.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.store.data().taken()
    }
}

fn failure(store: &Store<Limiter>, error: &wasmtime::Error, operation: &'static str) -> Failure {
    if store.data().denied() {
        return Failure::Memory;
    }
    if error.downcast_ref::<Trap>() == Some(&Trap::OutOfFuel) {
        return Failure::Fuel;
    }
    // Not the whole chain: the backtrace in it is as long as the guest's stack.
    Failure::Broken(Error::new(&code::SANDBOX_FAILED, operation).because(error.root_cause().to_string()))
}

impl Failure {
    fn with_module(self, module: &Module) -> Self {
        match self {
            Self::Broken(error) => Self::Broken(error.with("module", module.digest())),
            limit => limit,
        }
    }
}

/// What makes instances: a module, its configuration and its limit of memory. Keeps those that are idle.
pub(crate) struct Instances {
    pub(crate) module: Arc<Module>,
    pub(crate) config: Vec<u8>,
    pub(crate) memory_bytes: u64,
    idle: std::sync::Mutex<Vec<Instance>>,
    /// Memory for the next request: fresh memory costs more than what is written into it.
    buffer: std::sync::Mutex<Vec<u8>>,
}

/// Idle instances of one transform: small transactions of one pipeline may be on several threads at a time.
const MAX_IDLE: usize = 4;

/// An idle instance does not keep more memory than this.
const MAX_IDLE_BYTES: usize = 16 << 20;

/// Nor does an idle buffer.
const MAX_IDLE_BUFFER_BYTES: usize = 4 << 20;

impl Instances {
    pub(crate) fn new(module: Arc<Module>, config: Vec<u8>, memory_bytes: u64) -> Self {
        Self { module, config, memory_bytes, idle: std::sync::Mutex::default(), buffer: std::sync::Mutex::default() }
    }

    pub(crate) fn take_buffer(&self) -> Vec<u8> {
        std::mem::take(&mut *self.buffer.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    pub(crate) fn give_back_buffer(&self, buffer: Vec<u8>) {
        if buffer.capacity() <= MAX_IDLE_BUFFER_BYTES {
            *self.buffer.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = buffer;
        }
    }

    /// A new one, or one that has answered before.
    pub(crate) async fn take(&self) -> Result<Instance, Failure> {
        let idle = self.idle().pop();
        match idle {
            Some(instance) => Ok(instance),
            None => self.fresh().await,
        }
    }

    /// A new one.
    pub(crate) async fn fresh(&self) -> Result<Instance, Failure> {
        Instance::new(&self.module, &self.config, self.memory_bytes).await
    }

    /// Takes an instance back whose last call gave an answer.
    pub(crate) fn give_back(&self, instance: Instance) {
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE && instance.memory_bytes() <= MAX_IDLE_BYTES {
            idle.push(instance);
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Instance>> {
        self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tidegate_frame::{Record, RecordKind, RequestHeader, RequestWriter};

    use super::*;
    use crate::engine;

    const PROGRAM: &[u8] = br#"{"name":"p","version":"1","instructions":[
        {"op":"copy","from":"a","to":"b.c"},{"op":"set","path":"d","value":{"e":[1,2,3]}},{"op":"remove","path":"a"},
        {"op":"route","path":"t"},{"op":"drop-when-equals","path":"n","value":{"x":1.0}}]}"#;

    fn frame(records: usize, length: usize) -> Vec<u8> {
        let mut request = RequestWriter::new(Vec::new(), &RequestHeader::default());
        for number in 0..records {
            let document = format!(r#"{{"t":"tenant-{number}","a":"{}","n":{{"x":{number}e0}}}}"#, "y".repeat(length));
            let document = Some(document.as_bytes());
            let record = Record {
                kind: RecordKind::Upsert,
                document,
                partition_key: None,
                content_type: None,
                relation: None,
                key: None,
                old: None,
            };
            request.push(&record);
        }
        request.finish()
    }

    async fn used(instance: &mut Instance, frame: &[u8]) -> u64 {
        let (response, fuel) = instance.call(frame, 1 << 40).await.unwrap();
        assert!(response.len() > 22);
        fuel
    }

    #[tokio::test]
    async fn a_frame_costs_the_same_fuel_in_every_instance_new_or_used() {
        let compiled = engine::compiler().unwrap().precompile_component(tidegate_builtin_transforms::program_guest().bytes).unwrap();
        let engine = engine::runner().unwrap();
        let module = Module::load(&engine, "guest", &compiled).unwrap();
        let fresh = async || Instance::new(&module, PROGRAM, 64 << 20).await.unwrap();
        let frames = [frame(1, 10), frame(256, 100), frame(3, 100_000), frame(1000, 1000), frame(16, 16_000)];

        let mut alone = Vec::new();
        for frame in &frames {
            let (first, second) = (used(&mut fresh().await, frame).await, used(&mut fresh().await, frame).await);
            assert_eq!(first, second);
            alone.push(first);
        }
        let mut reused = fresh().await;
        for _ in 0..2 {
            for (frame, alone) in frames.iter().zip(&alone).rev() {
                assert_eq!(used(&mut reused, frame).await, *alone);
            }
        }
        let bytes = reused.memory_bytes();
        for frame in frames.iter().cycle().take(100) {
            used(&mut reused, frame).await;
        }
        assert_eq!(reused.memory_bytes(), bytes, "an instance does not grow by being used");
    }
}
