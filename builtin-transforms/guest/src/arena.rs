//! The guest's memory: a stack that is empty again after every call.
//!
//! A general allocator remembers: the same frame would cost other fuel in an instance that has worked before than in a new
//! one, and fuel must repeat exactly (Invariant 5). Here an allocation takes the next bytes, and when every block is given back
//! that was taken since [`keep`], the next allocation starts where the first one did. A block that lives longer is safe: the
//! stack then just grows on.

#![allow(unsafe_code, reason = "a global allocator is unsafe by its trait; every block below keeps to a single-threaded wasm memory")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

/// Memory is asked for in steps of this size.
const STEP: usize = 256 << 10;
const PAGE: usize = 64 << 10;

struct Arena {
    /// The next free byte; 0 before the first allocation.
    top: Cell<usize>,
    /// Where memory must be asked for. After a call it is what it was before, although the memory is still there: asking
    /// again for what is there costs the same fuel as the first time.
    end: Cell<usize>,
    /// Living blocks at or above `kept_top`.
    young: Cell<usize>,
    /// `top` and `end` at the last [`keep`]. Blocks below are never used again, even when they are given back.
    kept_top: Cell<usize>,
    kept_end: Cell<usize>,
}

#[global_allocator]
static ARENA: Arena = Arena { top: Cell::new(0), end: Cell::new(0), young: Cell::new(0), kept_top: Cell::new(0), kept_end: Cell::new(0) };

// SAFETY: wasm32-unknown-unknown without atomics has one thread.
unsafe impl Sync for Arena {}

/// What is alive now stays for the life of the instance; the stack ends here between calls.
pub(crate) fn keep() {
    ARENA.kept_top.set(ARENA.top.get());
    ARENA.kept_end.set(ARENA.end.get());
    ARENA.young.set(0);
}

impl Arena {
    /// Makes `size` bytes from `start` the last that are taken, asking for memory where it is not there yet.
    fn take(&self, start: usize, size: usize) -> bool {
        let Some(top) = start.checked_add(size).filter(|top| *top <= isize::MAX as usize) else { return false };
        if top > self.end.get() {
            let end = top.next_multiple_of(STEP);
            let missing = (end / PAGE).saturating_sub(core::arch::wasm32::memory_size(0));
            // Called even where nothing is missing, so that both cases cost the same.
            if core::arch::wasm32::memory_grow(0, missing) == usize::MAX {
                return false;
            }
            self.end.set(end);
        }
        self.top.set(top);
        true
    }
}

// SAFETY: blocks never overlap: `top` only moves up over bytes that no block holds. It moves down in two cases: over the last
// block when that one is given back, and to where it was at `keep` when no younger block is alive. Older blocks lie below
// that: they are neither grown where they are nor given out again.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if self.top.get() == 0 {
            let base = &raw const __heap_base as usize;
            self.top.set(base);
            self.end.set(base);
        }
        let start = self.top.get().next_multiple_of(layout.align());
        if !self.take(start, layout.size()) {
            return std::ptr::null_mut();
        }
        self.young.set(self.young.get() + 1);
        start as *mut u8
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let start = block as usize;
        if start < self.kept_top.get() {
            return;
        }
        let young = self.young.get() - 1;
        self.young.set(young);
        if young == 0 {
            self.top.set(self.kept_top.get());
            self.end.set(self.kept_end.get());
        } else if start + layout.size() == self.top.get() {
            self.top.set(start);
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let start = block as usize;
        if start >= self.kept_top.get() && start + layout.size() == self.top.get() {
            // The last block grows and shrinks where it is: how a response is written.
            return if self.take(start, size) { block } else { std::ptr::null_mut() };
        }
        if size <= layout.size() {
            return block;
        }
        // SAFETY: the caller keeps to the contract of `realloc`, which includes that of `alloc` for this layout.
        let moved = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !moved.is_null() {
            // SAFETY: both blocks are alive, do not overlap, and hold at least `layout.size()` bytes.
            unsafe {
                std::ptr::copy_nonoverlapping(block, moved, layout.size());
                self.dealloc(block, layout);
            }
        }
        moved
    }
}

unsafe extern "C" {
    /// The linker's name for the end of static data and stack.
    static __heap_base: u8;
}
