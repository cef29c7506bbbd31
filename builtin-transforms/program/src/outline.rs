//! What documents look like, as far as earlier ones of the same call have shown it: which names stand where, in which order.
//!
//! Rows of a table have the same names in the same order. So a name is first compared with the one that stood in its place
//! before: one comparison, where otherwise a text is read and looked up. Nothing depends on it but time.

use crate::lanes::{self, Lane};
use crate::overlay::NONE;

/// The place of a whole document.
pub(crate) const DOCUMENT: u32 = 0;

/// More places than this are not remembered.
const MAX_PLACES: usize = 256;

/// The longest opening that is remembered: a name of 29 bytes.
const MAX_OPENING: usize = 32;

const ONES: [u8; MAX_OPENING] = [0xff; MAX_OPENING];

/// Where a value stands that documents have: a member of an object, or every element of an array.
struct Place {
    /// `"name":` as it is written, and which of these bytes count. Elements have none.
    opening: [Lane; 2],
    mask: [Lane; 2],
    length: u32,
    /// What a path leads to here: a node of the plan; [`NONE`].
    node: u32,
    /// The member that comes after it; [`NONE`] where that is not known.
    next: u32,
    /// The first member of the object that the value is.
    inner: u32,
    /// The elements of the array that the value is.
    elements: u32,
}

pub(crate) struct Outline {
    places: Vec<Place>,
}

/// Where one is in an object.
#[derive(Clone, Copy)]
pub(crate) struct Cursor {
    /// The place of the object; [`NONE`] where it is not remembered.
    pub(crate) above: u32,
    /// The member that was read last, of those that are remembered.
    last: u32,
    /// The member that is expected.
    next: u32,
}

/// A member whose name was read.
#[derive(Clone, Copy)]
pub(crate) struct Opened {
    /// Where its value begins.
    pub(crate) start: usize,
    /// [`NONE`] where it is not remembered.
    pub(crate) place: u32,
    pub(crate) node: u32,
}

impl Outline {
    pub(crate) fn new() -> Self {
        let mut outline = Self { places: Vec::with_capacity(MAX_PLACES) };
        outline.forget();
        outline
    }

    /// One that remembers nothing.
    pub(crate) fn none() -> Self {
        Self { places: Vec::new() }
    }

    /// Starts again: what a call costs does not depend on earlier ones.
    pub(crate) fn forget(&mut self) {
        self.places.clear();
        self.places.push(Place::new(NONE));
    }

    /// At the beginning of the object in a place.
    #[inline(always)]
    pub(crate) fn enter(&self, place: u32) -> Cursor {
        Cursor { above: place, last: NONE, next: self.places.get(place as usize).map_or(NONE, |place| place.inner) }
    }

    /// The place of the elements of the array in a place.
    #[inline(always)]
    pub(crate) fn elements(&mut self, place: u32) -> u32 {
        match self.places.get(place as usize) {
            Some(place) if place.elements != NONE => place.elements,
            Some(_) => self.add(place, |array| &mut array.elements, Place::new(NONE)),
            None => NONE,
        }
    }

    /// Reads the expected name, if it is what stands at `at`.
    #[inline(always)]
    pub(crate) fn expected(&self, cursor: Cursor, text: &[u8], at: usize) -> Option<Opened> {
        let place = self.places.get(cursor.next as usize).filter(|place| place.stands(text, at))?;
        Some(Opened { start: at + place.length as usize, place: cursor.next, node: place.node })
    }

    /// Reads the name after the expected one, which is missing then.
    pub(crate) fn skip(&self, cursor: Cursor, text: &[u8], at: usize) -> Option<Opened> {
        let next = self.places.get(cursor.next as usize)?.next;
        self.expected(Cursor { next, ..cursor }, text, at)
    }

    /// Behind the member in a place; [`NONE`]: behind one that is not remembered.
    #[inline(always)]
    pub(crate) fn pass(&self, cursor: Cursor, place: u32) -> Cursor {
        match self.places.get(place as usize) {
            Some(member) => Cursor { last: place, next: member.next, ..cursor },
            None => cursor,
        }
    }

    /// Remembers a member whose opening is `opening`, if none is expected here. Gives its place. One that is not ASCII is read
    /// each time, because whether it is UTF-8 is not known yet.
    pub(crate) fn learn(&mut self, cursor: Cursor, opening: &[u8], node: u32) -> u32 {
        if cursor.next != NONE || opening.len() > MAX_OPENING || !opening.is_ascii() {
            return NONE;
        }
        let mut member = Place::new(node);
        member.opening = [lanes::lane(opening, 0), lanes::lane(opening, 16)];
        member.mask = [0, 16].map(|before| lanes::lane(ONES.get(..opening.len()).unwrap_or_default(), before));
        member.length = opening.len() as u32;
        match cursor.last {
            NONE => self.add(cursor.above, |above| &mut above.inner, member),
            last => self.add(last, |last| &mut last.next, member),
        }
    }

    /// Adds a place that one finds by `link` from the place `from`.
    fn add(&mut self, from: u32, link: impl FnOnce(&mut Place) -> &mut u32, place: Place) -> u32 {
        let number = self.places.len() as u32;
        let Some(from) = self.places.get_mut(from as usize).filter(|_| (number as usize) < MAX_PLACES) else { return NONE };
        *link(from) = number;
        self.places.push(place);
        number
    }
}

impl Place {
    fn new(node: u32) -> Self {
        let none = [lanes::load(&[0; 16]); 2];
        Self { opening: none, mask: none, length: 0, node, next: NONE, inner: NONE, elements: NONE }
    }

    #[inline(always)]
    fn stands(&self, text: &[u8], at: usize) -> bool {
        let ([opening, opening_end], [mask, mask_end]) = (&self.opening, &self.mask);
        lanes::same(lanes::lane(text, at), *opening, *mask)
            && (self.length <= 16 || lanes::same(lanes::lane(text, at + 16), *opening_end, *mask_end))
    }
}
