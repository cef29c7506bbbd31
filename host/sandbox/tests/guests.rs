//! Guests written for the purpose, in the text form of WebAssembly.

use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tidegate_sandbox::Sandbox;

use crate::support::open;

/// What such a guest does when it is called. Its answer is the address of an address and a length.
pub(crate) const ENDLESS: &str = "(loop $again (br $again)) (unreachable)";
pub(crate) const GIVES_UP: &str = "(unreachable)";
pub(crate) const ANSWERS_NOTHING: &str = "(i32.const 32)";
/// Promises one outcome and gives a keep without a document for an upsert.
pub(crate) const ANSWERS_NONSENSE: &str = r#"(i64.store (i32.const 64) (i64.const 0x0000_0000_0001_0101))
    (i64.store8 (i32.const 86) (i64.const 1)) (i32.store (i32.const 32) (i32.const 64)) (i32.store (i32.const 36) (i32.const 24)) (i32.const 32)"#;
/// Says that its answer lies beyond its memory.
pub(crate) const POINTS_OUTSIDE: &str =
    "(i32.store (i32.const 32) (i32.const 64)) (i32.store (i32.const 36) (i32.const 0x7fffffff)) (i32.const 32)";

pub(crate) fn component(transform: &str) -> Vec<u8> {
    framed("", transform, "", INTERFACE)
}

/// A component whose `configure` fails.
pub(crate) fn picky() -> Vec<u8> {
    framed("", GIVES_UP, r#"(data (i32.const 16) "\01\00\00\00\30\00\00\00\09\00\00\00") (data (i32.const 48) "not today")"#, INTERFACE)
}

pub(crate) const INTERFACE: &str = "tidegate:transform/frames@1.0.0";

/// A component with these items in front, this body of `transform`, more items in its module, that exports under this name.
pub(crate) fn framed(items: &str, transform: &str, module_items: &str, interface: &str) -> Vec<u8> {
    let text = format!(
        r#"(component {items}
          (core module $module
            (memory (export "memory") 2) {module_items}
            (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 65536))
            (func (export "configure") (param i32 i32) (result i32) (i32.const 16))
            (func (export "transform") (param i32 i32) (result i32) {transform}))
          (core instance $core (instantiate $module))
          (alias core export $core "memory" (core memory $memory))
          (alias core export $core "realloc" (core func $realloc))
          (alias core export $core "configure" (core func $core-configure))
          (alias core export $core "transform" (core func $core-transform))
          (func $configure (param "config" (list u8)) (result (result (error string)))
            (canon lift (core func $core-configure) (memory $memory) (realloc $realloc)))
          (func $transform (param "frame" (list u8)) (result (list u8))
            (canon lift (core func $core-transform) (memory $memory) (realloc $realloc)))
          (instance $frames (export "configure" (func $configure)) (export "transform" (func $transform)))
          (export "{interface}" (instance $frames)))"#
    );
    wat::parse_str(text).unwrap()
}

/// Puts a module into the store of this folder, as the daemon would on upload.
pub(crate) fn put(modules: &Path, component: &[u8]) -> String {
    let digest = hex::encode(Sha256::digest(component));
    std::fs::write(modules.join(&digest), component).unwrap();
    digest
}

pub(crate) fn add(modules: &Path, transform: &str) -> String {
    put(modules, &component(transform))
}

pub(crate) fn store(modules: &Path, transform: &str) -> (Arc<Sandbox>, String) {
    let sandbox = open(modules);
    (sandbox, add(modules, transform))
}
