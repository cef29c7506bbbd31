//! JSON values: white space outside of strings goes, everything else stays byte for byte.

use super::Misfit;

/// Appends a JSON text without its insignificant white space. What is no JSON by its brackets and quotes is a misfit: it
/// would break the document around it.
pub(super) fn compact(text: &[u8], out: &mut Vec<u8>) -> Result<(), Misfit> {
    out.reserve(text.len());
    let start = out.len();
    let mut depth = 0usize;
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {}
            b'"' => {
                let end = string_end(after).ok_or(Misfit("a json string without its end"))?;
                let (string, behind) = rest.split_at_checked(end + 2).ok_or(Misfit("a json string without its end"))?;
                out.extend_from_slice(string);
                rest = behind;
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                out.push(*byte);
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1).ok_or(Misfit("a json bracket too many"))?;
                out.push(*byte);
            }
            _ => out.push(*byte),
        }
        rest = after;
    }
    if depth > 0 {
        return Err(Misfit("a json bracket without its end"));
    }
    if out.len() == start {
        return Err(Misfit("no json value"));
    }
    Ok(())
}

/// How many bytes stand before the closing quote.
fn string_end(text: &[u8]) -> Option<usize> {
    let mut place = 0;
    loop {
        let step = text.get(place..)?.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        place += step;
        match text.get(place)? {
            b'"' => return Some(place),
            _ => place += 2,
        }
    }
}

/// Appends the content of a string, given without its quotes. Halves of surrogate pairs that stand alone are kept as
/// their escapes: no UTF-8 text holds them.
pub(super) fn content(mut escaped: &[u8], out: &mut Vec<u8>) -> Result<(), Misfit> {
    let broken = Misfit("a json escape that is none");
    while let Some(place) = escaped.iter().position(|byte| *byte == b'\\') {
        let (plain, rest) = escaped.split_at_checked(place).ok_or(broken)?;
        out.extend_from_slice(plain);
        let (kind, rest) = rest.get(1..).and_then(<[u8]>::split_first).ok_or(broken)?;
        escaped = rest;
        match kind {
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'b' => out.push(0x08),
            b'f' => out.push(0x0c),
            b'u' => escaped = unicode(rest, out).ok_or(broken)?,
            b'"' | b'\\' | b'/' => out.push(*kind),
            _ => return Err(broken),
        }
    }
    out.extend_from_slice(escaped);
    Ok(())
}

/// Appends the character behind `\u`; gives what follows it.
fn unicode<'a>(text: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (first, mut rest) = hex(text)?;
    let mut code = u32::from(first);
    if let (0xd800..0xdc00, Some((second @ 0xdc00..0xe000, behind))) = (first, rest.strip_prefix(b"\\u").and_then(hex)) {
        code = 0x1_0000 + ((u32::from(first) - 0xd800) << 10) + (u32::from(second) - 0xdc00);
        rest = behind;
    }
    match char::from_u32(code) {
        Some(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        None => out.extend_from_slice(format!("\\u{code:04x}").as_bytes()),
    }
    Some(rest)
}

fn hex(text: &[u8]) -> Option<(u16, &[u8])> {
    let (digits, rest) = text.split_at_checked(4)?;
    let value = digits.iter().try_fold(0u32, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?))?;
    Some((u16::try_from(value).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::super::rendered;
    use super::*;
    use crate::source::shape::Shape;

    #[test]
    fn white_space_goes_outside_of_strings_only() {
        for (text, compact) in [
            ("{ \"a\" : [ 1 , 2 ] ,\n\t\"b\" : \" x  y \" }", "{\"a\":[1,2],\"b\":\" x  y \"}"),
            (" [1,\r\n 2] ", "[1,2]"),
            ("{\"a\":1, \"a\":2}", "{\"a\":1,\"a\":2}"),
            ("\"text: \\\"quoted\\\" \\\\\" ", "\"text: \\\"quoted\\\" \\\\\""),
            ("1E5", "1E5"),
            ("null", "null"),
        ] {
            assert_eq!(rendered(&Shape::Json, text).as_deref(), Ok(compact));
        }
    }

    #[test]
    fn text_that_would_break_the_document_is_a_misfit() {
        for bad in ["", " ", "\"", "\"a\\\"", "{", "[1]]", "}", "\"\\"] {
            assert!(rendered(&Shape::Json, bad).is_err(), "{bad}");
        }
        for bad in ["\\", "\\x", "\\u12", "\\u12g4"] {
            assert!(content(bad.as_bytes(), &mut Vec::new()).is_err(), "{bad}");
        }
    }
}
