//! Reading compact JSON by the rules of RFC 8259, without keeping any of it.
//!
//! Compact means without insignificant white space: here it is a fault like others, so that a document in which there is none
//! is read where it lies. Bytes that are not ASCII pass inside of texts; whether they are UTF-8 is asked elsewhere.

use crate::lanes;

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

#[inline(always)]
fn chunk(text: &[u8], at: usize) -> Option<&[u8; 16]> {
    text.get(at..)?.first_chunk()
}

/// Reads a string whose first byte after the quote is at `at`. Gives one past its closing quote, and whether there are escapes
/// in it.
#[inline(always)]
pub(crate) fn string(text: &[u8], mut at: usize) -> Result<(usize, bool), Fault> {
    let mut escapes = false;
    loop {
        match chunk(text, at) {
            Some(bytes) => {
                let plain = lanes::plain_text(bytes);
                at += plain;
                if plain == 16 {
                    continue;
                }
            }
            None => at = plain_tail(text, at),
        }
        match byte(text, at) {
            b'"' => return Ok((at + 1, escapes)),
            b'\\' => {
                at = escape(text, at)?;
                escapes = true;
            }
            _ => return Err(Fault::Syntax(at)),
        }
    }
}

/// The end of the plain text near the end of everything.
fn plain_tail(text: &[u8], mut at: usize) -> usize {
    while byte(text, at) >= b' ' && byte(text, at) != b'"' && byte(text, at) != b'\\' {
        at += 1;
    }
    at
}

/// One past the escape at `at`.
#[inline]
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
    let end = match chunk(text, first) {
        // Behind less than 16 digits stands a byte of the same chunk.
        Some(bytes) => match lanes::digits(bytes) {
            0 => return Err(Fault::Syntax(first)),
            16 => digits(text, first)?,
            run => first + run,
        },
        None => digits(text, first)?,
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

/// One past the value at `at`, inside of `open` containers, of which `limit` may be open at once.
#[inline(always)]
pub(crate) fn value(text: &[u8], at: usize, open: usize, limit: usize) -> Result<usize, Fault> {
    match byte(text, at) {
        b'"' => Ok(string(text, at + 1)?.0),
        b'-' | b'0'..=b'9' => number(text, at),
        b'{' | b'[' => container(text, at, open, limit),
        _ => word(text, at),
    }
}

/// The most containers that may be open at once.
const MAX_DEPTH: usize = 256;

/// Of the containers that are open, which are objects: one bit each.
struct Kinds([u64; MAX_DEPTH / 64]);

impl Kinds {
    #[inline(always)]
    fn set(&mut self, depth: usize, object: bool) {
        if let Some(word) = self.0.get_mut(depth / 64) {
            *word = *word & !(1 << (depth % 64)) | u64::from(object) << (depth % 64);
        }
    }

    #[inline(always)]
    fn is_object(&self, depth: usize) -> bool {
        self.0.get(depth / 64).is_some_and(|word| word >> (depth % 64) & 1 == 1)
    }
}

/// One past the container at `at`, inside of `open` others. Not recursive: how deep a document is does not matter to the stack.
fn container(text: &[u8], mut at: usize, open: usize, limit: usize) -> Result<usize, Fault> {
    let room = limit.min(MAX_DEPTH).saturating_sub(open);
    let mut kinds = Kinds([0; MAX_DEPTH / 64]);
    let mut depth = 0;
    'container: loop {
        if depth == room {
            return Err(Fault::Depth(at));
        }
        let mut object = byte(text, at) == b'{';
        kinds.set(depth, object);
        depth += 1;
        at += 1;
        let mut item = byte(text, at) != if object { b'}' } else { b']' };
        'item: loop {
            if item {
                if object {
                    if byte(text, at) != b'"' {
                        return Err(Fault::Syntax(at));
                    }
                    (at, _) = string(text, at + 1)?;
                    if byte(text, at) != b':' {
                        return Err(Fault::Syntax(at));
                    }
                    at += 1;
                }
                at = match byte(text, at) {
                    b'"' => string(text, at + 1)?.0,
                    b'-' | b'0'..=b'9' => number(text, at)?,
                    b'{' | b'[' => continue 'container,
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
                depth -= 1;
                if depth == 0 {
                    return Ok(at);
                }
                object = kinds.is_object(depth - 1);
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
                at = string(text, at + 1).map_or(text.len(), |(end, _)| end);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    (open, deepest)
}
