//! The built-in guests: components that this package's build script makes from source.
//!
//! The bytes depend on the compiler and on every dependency, so another release has another digest. A pipeline is therefore
//! pinned to the digest that it was provisioned with, as to any uploaded module.
//!
//! The build is reproducible: two copies of the same source in two folders give the same bytes.

#![deny(missing_docs, unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

/// A WebAssembly component that exports a world of `tidegate:transform` and imports nothing.
#[derive(Clone, Copy, Debug)]
pub struct Guest {
    /// The component.
    pub bytes: &'static [u8],
    /// SHA-256 of the bytes: 64 lower-case hexadecimal digits.
    pub sha256: &'static str,
}

/// The guest that runs programs. Its configuration is the program's canonical text.
pub fn program_guest() -> Guest {
    Guest { bytes: include_bytes!(concat!(env!("OUT_DIR"), "/program.wasm")), sha256: env!("TIDEGATE_PROGRAM_GUEST_SHA256") }
}
