//! Storage that a document fills and the next one finds empty.

use std::ops::{Index, IndexMut};

/// Items that live as long as a document is worked on.
///
/// Room is made once, in the beginning. A document that needs more gets it for itself: afterwards everything is as it was,
/// so that no document changes what the next one costs, and a guest whose memory is a stack gets its memory back.
pub(crate) struct Arena<T> {
    items: Vec<T>,
    /// The first items, which stay.
    fixed: usize,
    first_room: Option<Vec<T>>,
}

impl<T> Arena<T> {
    /// Room for items after those that stay.
    pub(crate) fn new(mut fixed: Vec<T>, room: usize) -> Self {
        fixed.reserve_exact(room);
        Self { fixed: fixed.len(), items: fixed, first_room: None }
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, item: T) -> u32 {
        if self.items.len() == self.items.capacity() {
            self.grow();
        }
        let number = self.items.len() as u32;
        self.items.push(item);
        number
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut larger = Vec::with_capacity(self.items.capacity().max(16) * 2);
        larger.append(&mut self.items);
        let smaller = std::mem::replace(&mut self.items, larger);
        // A second time, the room in between is given back.
        self.first_room.get_or_insert(smaller);
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.items.truncate(self.fixed);
        if let Some(mut first_room) = self.first_room.take() {
            first_room.append(&mut self.items);
            self.items = first_room;
        }
    }
}

#[allow(clippy::indexing_slicing, reason = "the numbers are those that `push` gave since the last `clear`")]
impl<T> Index<u32> for Arena<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, number: u32) -> &T {
        &self.items[number as usize]
    }
}

#[allow(clippy::indexing_slicing, reason = "the numbers are those that `push` gave since the last `clear`")]
impl<T> IndexMut<u32> for Arena<T> {
    #[inline(always)]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.items[number as usize]
    }
}
