//! Compiled modules: `modules/compiled/<module>-<engine>`, made by our own compile worker and believed by nobody else's word.
//!
//! Compiled code is machine code that runs with all rights of this process, so what is loaded must be exactly what our worker
//! made. A file holds an HMAC-SHA-256 (32 bytes) and then the code. The key is in `modules/compiled/key` (32 random bytes,
//! readable by the owner alone, made at first use); the HMAC covers module digest, engine hash and code, so that no file can
//! take the place of another. Whatever does not fit is compiled again.

use cap_std::fs::Dir;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tidegate_api::{Error, Result, code};

use crate::folder;

/// The largest compiled module.
pub(crate) const MAX_COMPILED_BYTES: u64 = 64 << 20;

const KEY_BYTES: usize = 32;
const MAC_BYTES: usize = 32;

pub(crate) struct CompiledCache {
    dir: Dir,
    key: [u8; KEY_BYTES],
    engine: String,
}

impl CompiledCache {
    /// Opens the cache for an engine of this compatibility hash.
    pub(crate) fn open(dir: Dir, engine: String) -> Result<Self> {
        let key = key(&dir).map_err(|error| failed("read cache key", error))?;
        Ok(Self { dir, key, engine })
    }

    /// The compiled form of a module; `None` where there is none that our worker made for this engine.
    pub(crate) fn get(&self, module: &str) -> Option<Vec<u8>> {
        let file = folder::read(&self.dir, &self.name(module), MAX_COMPILED_BYTES + MAC_BYTES as u64);
        let mut file = file.ok().flatten()?;
        let (mac, compiled) = file.split_first_chunk::<MAC_BYTES>()?;
        if self.mac(module, compiled)?.verify_slice(mac).is_err() {
            tracing::warn!(module, "a compiled module in the cache is not what was stored; compiling it again");
            return None;
        }
        file.drain(..MAC_BYTES);
        Some(file)
    }

    pub(crate) fn put(&self, module: &str, compiled: &[u8]) -> Result<()> {
        let mac = self.mac(module, compiled).ok_or_else(|| Error::new(&code::INTERNAL, "store compiled module"))?;
        let file = [&mac.finalize().into_bytes()[..], compiled].concat();
        folder::write(&self.dir, &self.name(module), &file).map_err(|error| failed("store compiled module", error))
    }

    fn name(&self, module: &str) -> String {
        format!("{module}-{}", self.engine)
    }

    fn mac(&self, module: &str, compiled: &[u8]) -> Option<Hmac<Sha256>> {
        // Both names have a fixed length, so nothing can be moved from one part to the next.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.update(module.as_bytes());
        mac.update(self.engine.as_bytes());
        mac.update(compiled);
        Some(mac)
    }
}

/// The key, made where there is none or only a part of one: then every file is compiled again.
fn key(dir: &Dir) -> std::io::Result<[u8; KEY_BYTES]> {
    let stored = folder::read(dir, "key", KEY_BYTES as u64).ok().flatten();
    if let Some(key) = stored.and_then(|bytes| bytes.try_into().ok()) {
        return Ok(key);
    }
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(std::io::Error::other)?;
    folder::write(dir, "key", &key)?;
    Ok(key)
}

fn failed(operation: &'static str, error: std::io::Error) -> Error {
    Error::new(&code::MODULE_STORE, operation).because(error)
}
