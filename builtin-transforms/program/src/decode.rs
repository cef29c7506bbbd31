//! What a JSON string says.

/// Appends what the inside of a valid string says: UTF-8, in which a surrogate that has no partner stands as the three bytes
/// that its number would have. Two strings say the same exactly when these bytes are the same; and they are valid UTF-8 exactly
/// when there is no lone surrogate.
pub(crate) fn decode(inside: &[u8], out: &mut Vec<u8>) {
    let mut rest = inside;
    while let Some(plain) = rest.iter().position(|byte| *byte == b'\\') {
        let (before, escape) = rest.split_at(plain);
        out.extend_from_slice(before);
        let used = match escape.get(1) {
            Some(b'u') => unit(escape).map_or(2, |first| push_units(escape, first, out)),
            Some(b'b') => push(out, 8),
            Some(b'f') => push(out, 12),
            Some(b'n') => push(out, b'\n'),
            Some(b'r') => push(out, b'\r'),
            Some(b't') => push(out, b'\t'),
            Some(other) => push(out, *other),
            None => 1,
        };
        rest = escape.get(used..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
}

/// Gives the length of an escape of one character.
fn push(out: &mut Vec<u8>, byte: u8) -> usize {
    out.push(byte);
    2
}

fn push_units(escape: &[u8], first: u32, out: &mut Vec<u8>) -> usize {
    let second = escape.get(6..).and_then(unit);
    let (number, used) = match (first, second) {
        (0xd800..0xdc00, Some(second @ 0xdc00..0xe000)) => (0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12),
        _ => (first, 6),
    };
    match char::from_u32(number) {
        Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        None => out.extend([number >> 12 | 0xe0, number >> 6 & 0x3f | 0x80, number & 0x3f | 0x80].map(|byte| byte as u8)),
    }
    used
}

/// The UTF-16 unit of a `\u` escape.
fn unit(escape: &[u8]) -> Option<u32> {
    let hex = escape.get(..6)?.strip_prefix(b"\\u")?;
    hex.iter().try_fold(0, |number, digit| Some(number << 4 | char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    fn says(inside: &str) -> Vec<u8> {
        let mut out = Vec::new();
        super::decode(inside.as_bytes(), &mut out);
        out
    }

    #[test]
    fn every_escape_is_the_character_that_it_names() {
        assert_eq!(says(r#"a\"\\\/\b\f\n\r\t\u00e9\uD83d\udE00é"#), "a\"\\/\u{8}\u{c}\n\r\té😀é".as_bytes());
    }

    #[test]
    fn a_lone_surrogate_is_neither_dropped_nor_replaced_nor_valid() {
        assert_eq!(says(r"\ud800"), [0xed, 0xa0, 0x80]);
        assert_eq!(says(r"\udfffx"), [0xed, 0xbf, 0xbf, b'x']);
        assert_ne!(says(r"\ude00\ud83d"), says(r"\ud83d\ude00"));
        assert_eq!(says(r"\ud83d\ud83d\ude00"), [&[0xed, 0xa0, 0xbd], "😀".as_bytes()].concat());
    }
}
