//! Strings of JSON, escaped as the server does it.

/// How many bytes are looked at in one go for something to escape.
const STRIDE: usize = 32;

/// Appends the text in quotes: `\b \f \n \r \t \" \\`, other control characters as `\u00xx`, everything else as it is.
pub(crate) fn string(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let (strides, rest) = text.as_chunks::<STRIDE>();
    for stride in strides {
        if stride.iter().fold(false, |found, byte| found | special(*byte)) {
            bytewise(stride, out);
        } else {
            out.extend_from_slice(stride);
        }
    }
    bytewise(rest, out);
    out.push(b'"');
}

fn special(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

fn bytewise(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(place) = text.iter().position(|byte| special(*byte)) {
        let Some((plain, [byte, rest @ ..])) = text.split_at_checked(place) else { break };
        out.extend_from_slice(plain);
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            control => {
                let digit = |value: u8| if value < 10 { b'0' + value } else { b'a' + value - 10 };
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(control >> 4), digit(control & 0x0f)]);
            }
        }
        text = rest;
    }
    out.extend_from_slice(text);
}

/// Makes a finished document UTF-8 where a value was not: every byte that fits nowhere becomes `\\ooo`, its octal digits
/// behind an escaped backslash, as PostgreSQL 16 and later write such a `"char"`; earlier ones send the bare byte.
pub(crate) fn make_utf8(document: &mut Vec<u8>) {
    if std::str::from_utf8(document).is_ok() {
        return;
    }
    let mut mended = Vec::with_capacity(document.len() + 16);
    for piece in document.utf8_chunks() {
        mended.extend_from_slice(piece.valid().as_bytes());
        for byte in piece.invalid() {
            mended.extend_from_slice(format!("\\\\{byte:03o}").as_bytes());
        }
    }
    *document = mended;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        string(text, &mut out);
        out
    }

    #[test]
    fn control_characters_quotes_and_backslashes_are_escaped_wherever_they_stand() {
        let cases: [(&[u8], &[u8]); 4] =
            [(b"\"", b"\\\""), (b"\\", b"\\\\"), (b"\x08\x0c\n\r\t", b"\\b\\f\\n\\r\\t"), (b"\x01\x1f\x7f", b"\\u0001\\u001f\x7f")];
        for (special, written) in cases {
            for before in 0..70 {
                let text = [&vec![b'x'; before], special, "é</ключ".as_bytes()].concat();
                let wanted = [b"\"", vec![b'x'; before].as_slice(), written, "é</ключ".as_bytes(), b"\""].concat();
                assert_eq!(escaped(&text), wanted, "behind {before} bytes");
            }
        }
    }

    #[test]
    fn a_byte_that_is_no_utf_8_becomes_its_octal_digits() {
        let mut document = b"{\"c\":\"\xff\"}".to_vec();
        make_utf8(&mut document);
        assert_eq!(document, b"{\"c\":\"\\\\377\"}");
    }
}
