//! Reading compact JSON by the rules of RFC 8259, without keeping any of it.
//!
//! Compact means without insignificant white space: here it is a fault like others, so that a document in which there is none
//! is read where it lies. Bytes that are not ASCII pass inside of texts; whether they are UTF-8 is asked elsewhere.

use crate::lanes;
use crate::outline::{Cursor, Opened, Outline};
use crate::overlay::NONE;

/// Why a text is not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The byte at this place cannot stand there.
    Syntax(usize),
    /// The container that begins at this place is one too many.
    Depth(usize),
}

/// The byte at `at`; 0, which may stand nowhere, behind the end.
#[inline(always)]
pub(crate) fn byte(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(0)
}

/// Reads a string whose first byte after the quote is at `at`. Gives one past its closing quote, and whether there are escapes
/// in it. `foreign` becomes true where there are bytes that are not ASCII.
#[inline(always)]
pub(crate) fn string(text: &[u8], mut at: usize, foreign: &mut bool) -> Result<(usize, bool), Fault> {
    let mut escapes = false;
    loop {
        let plain = lanes::plain_text(lanes::lane(text, at));
        at += plain;
        if plain == 16 {
            continue;
        }
        match byte(text, at) {
            b'"' => return Ok((at + 1, escapes)),
            b'\\' => {
                at = escape(text, at)?;
                escapes = true;
            }
            0x80.. => {
                *foreign = true;
                at += lanes::foreign(lanes::lane(text, at));
            }
            _ => return Err(Fault::Syntax(at)),
        }
    }
}

/// Whether there are escapes in the valid string at `at`.
#[inline(always)]
pub(crate) fn has_escapes(text: &[u8], at: usize) -> bool {
    string(text, at + 1, &mut false).is_ok_and(|(_, escapes)| escapes)
}

/// One past the escape at `at`.
#[inline(always)]
fn escape(text: &[u8], at: usize) -> Result<usize, Fault> {
    match byte(text, at + 1) {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(at + 2),
        b'u' => {
            for place in at + 2..at + 6 {
                if !byte(text, place).is_ascii_hexdigit() {
                    return Err(Fault::Syntax(place));
                }
            }
            Ok(at + 6)
        }
        _ => Err(Fault::Syntax(at + 1)),
    }
}

/// One past the digits at `at`, of which there must be one.
fn digits(text: &[u8], at: usize) -> Result<usize, Fault> {
    let mut end = at;
    while byte(text, end).is_ascii_digit() {
        end += 1;
    }
    if end == at { Err(Fault::Syntax(at)) } else { Ok(end) }
}

/// One past the number at `at`.
#[inline(always)]
fn number(text: &[u8], at: usize) -> Result<usize, Fault> {
    let first = at + usize::from(byte(text, at) == b'-');
    let end = match lanes::digits(lanes::lane(text, first)) {
        0 => return Err(Fault::Syntax(first)),
        16 => digits(text, first)?,
        run => first + run,
    };
    if byte(text, first) == b'0' && end > first + 1 {
        return Err(Fault::Syntax(first + 1));
    }
    match byte(text, end) {
        b'.' | b'e' | b'E' => fraction(text, end),
        _ => Ok(end),
    }
}

/// One past the fraction and exponent at `at`.
fn fraction(text: &[u8], mut at: usize) -> Result<usize, Fault> {
    if byte(text, at) == b'.' {
        at = digits(text, at + 1)?;
    }
    if let b'e' | b'E' = byte(text, at) {
        at += 1;
        if let b'+' | b'-' = byte(text, at) {
            at += 1;
        }
        at = digits(text, at)?;
    }
    Ok(at)
}

/// One past the word at `at`.
#[inline(always)]
fn word(text: &[u8], at: usize) -> Result<usize, Fault> {
    let rest = text.get(at..).unwrap_or_default();
    match rest.first_chunk::<4>() {
        Some(b"null" | b"true") => Ok(at + 4),
        Some(b"fals") if byte(text, at + 4) == b'e' => Ok(at + 5),
        _ => Err(Fault::Syntax(misspelt(text, at))),
    }
}

/// Where a word begins to be none.
#[cold]
fn misspelt(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let same = |word: &[u8]| word.iter().zip(rest).take_while(|(a, b)| a == b).count();
    at + same(b"null").max(same(b"true")).max(same(b"false"))
}

/// Reads the name at `at` and its colon. `node` tells what a path leads to by that name, given where its inside begins and ends
/// and whether there are escapes in it.
#[inline(always)]
pub(crate) fn name(
    text: &[u8],
    at: usize,
    outline: &mut Outline,
    cursor: Cursor,
    foreign: &mut bool,
    node: impl FnOnce(usize, usize, bool) -> u32,
) -> Result<(Opened, Cursor), Fault> {
    let opened = match outline.expected(cursor, text, at) {
        Some(opened) => opened,
        None => {
            // Taken apart and put together again, so that it lives in memory only on this way.
            let Opened { start, place, node } = other_name(text, at, outline, cursor, foreign, node)?;
            Opened { start, place, node }
        }
    };
    Ok((opened, outline.pass(cursor, opened.place)))
}

/// The same where another name stands than the one that is expected.
#[inline(never)]
fn other_name(
    text: &[u8],
    at: usize,
    outline: &mut Outline,
    cursor: Cursor,
    foreign: &mut bool,
    node: impl FnOnce(usize, usize, bool) -> u32,
) -> Result<Opened, Fault> {
    if let Some(opened) = outline.skip(cursor, text, at) {
        return Ok(opened);
    }
    if byte(text, at) != b'"' {
        return Err(Fault::Syntax(at));
    }
    let (end, escapes) = string(text, at + 1, foreign)?;
    if byte(text, end) != b':' {
        return Err(Fault::Syntax(end));
    }
    let (start, node) = (end + 1, node(at + 1, end - 1, escapes));
    let place = outline.learn(cursor, text.get(at..start).unwrap_or_default(), node);
    Ok(Opened { start, place, node })
}

/// Where reading is, apart from the text.
pub(crate) struct Around {
    pub(crate) outline: Outline,
    /// The containers around the one that is read, inside of a value that no path goes into.
    open: Vec<Open>,
    /// Something was read that is not ASCII. Whether it is UTF-8 is asked elsewhere.
    pub(crate) foreign: bool,
}

#[derive(Clone, Copy)]
struct Open {
    object: bool,
    cursor: Cursor,
}

impl Around {
    /// With room for everything that a document can need, so that none leaves more behind than the next one expects.
    pub(crate) fn new() -> Self {
        Self { outline: Outline::new(), open: Vec::with_capacity(MAX_DEPTH), foreign: false }
    }

    /// One that remembers nothing, for a value that was read before.
    fn none() -> Self {
        Self { outline: Outline::none(), open: Vec::new(), foreign: false }
    }
}

/// One past the value at `at`, inside of `open` containers, of which `limit` may be open at once. `place` is its place in the
/// outline.
#[inline(always)]
pub(crate) fn value(text: &[u8], at: usize, open: usize, limit: usize, around: &mut Around, place: u32) -> Result<usize, Fault> {
    match byte(text, at) {
        b'"' => Ok(string(text, at + 1, &mut around.foreign)?.0),
        b'-' | b'0'..=b'9' => number(text, at),
        b'[' if byte(text, at + 1) == b']' && open < limit => Ok(at + 2),
        b'{' | b'[' => container(text, at, open, limit, around, place),
        _ => word(text, at),
    }
}

/// One past a value of a text that was read before: it has no fault, and no depth that would matter.
pub(crate) fn skip(text: &[u8], at: usize) -> Option<usize> {
    value(text, at, 0, usize::MAX, &mut Around::none(), NONE).ok()
}

/// The most containers that may be open at once.
const MAX_DEPTH: usize = 256;

/// One past the container at `at`, inside of `open` others. Not recursive: how deep a document is does not matter to the stack.
fn container(text: &[u8], mut at: usize, open: usize, limit: usize, around: &mut Around, mut place: u32) -> Result<usize, Fault> {
    let room = limit.min(MAX_DEPTH).saturating_sub(open);
    let Around { outline, open, foreign } = around;
    open.clear();
    'container: loop {
        if open.len() == room {
            return Err(Fault::Depth(at));
        }
        let mut object = byte(text, at) == b'{';
        let above = if object { place } else { outline.elements(place) };
        let mut cursor = outline.enter(above);
        at += 1;
        let mut item = byte(text, at) != if object { b'}' } else { b']' };
        'item: loop {
            if item {
                place = cursor.above;
                if object {
                    let (opened, behind) = name(text, at, outline, cursor, foreign, |_, _, _| NONE)?;
                    (at, place, cursor) = (opened.start, opened.place, behind);
                }
                at = match byte(text, at) {
                    b'"' => string(text, at + 1, foreign)?.0,
                    b'-' | b'0'..=b'9' => number(text, at)?,
                    b'{' | b'[' => {
                        open.push(Open { object, cursor });
                        continue 'container;
                    }
                    _ => word(text, at)?,
                };
            }
            loop {
                match byte(text, at) {
                    b',' => {
                        at += 1;
                        item = true;
                        continue 'item;
                    }
                    b'}' if object => {}
                    b']' if !object => {}
                    _ => return Err(Fault::Syntax(at)),
                }
                at += 1;
                let Some(outer) = open.pop() else { return Ok(at) };
                Open { object, cursor } = outer;
            }
        }
    }
}

/// Follows a piece of compact JSON, which need not be one value: how many containers are open behind it when `open` are before
/// it, and how many are at its deepest place, or are `deepest`.
pub(crate) fn depth(text: &[u8], mut open: usize, mut deepest: usize) -> (usize, usize) {
    let mut at = 0;
    while at < text.len() {
        match byte(text, at) {
            b'{' | b'[' => {
                open += 1;
                deepest = deepest.max(open);
            }
            b'}' | b']' => open = open.saturating_sub(1),
            b'"' => {
                at = string(text, at + 1, &mut false).map_or(text.len(), |(end, _)| end);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    (open, deepest)
}
