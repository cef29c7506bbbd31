//! The canonical form of JSON, without loss: equal values, equal bytes.
//!
//! * No white space. Object members sorted by the UTF-8 bytes of their (unescaped) names; repeated names keep their order.
//! * Strings with only `"`, `\` and control characters escaped (`\b \f \n \r \t`, else `\u00xx`). An unpaired surrogate
//!   escape stays as it came, in lower case.
//! * Numbers as coefficient without trailing zeros and exponent: `1.10` and `11e-1` are `11e-1`, `100` is `1e2`, `5` is `5`,
//!   every zero is `0`. Digits are never lost: nothing goes through a float. An exponent of more than 18 digits stays as it came.
//!
//! SQL that compares contents must compute the same bytes.

use std::borrow::Cow;
use std::ops::Range;

use sha2::{Digest, Sha256};

use crate::Fingerprint;

/// Containers may be nested this deep; deeper text has no canonical form.
const MAX_DEPTH: usize = 512;

/// The canonical form of one JSON text; `None` where the bytes are not exactly one, or nested more than 512 deep.
pub fn content(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?.as_bytes();
    let mut parser = Parser { text, at: 0, members: Vec::new(), sorted: Vec::new() };
    let mut out = Vec::with_capacity(text.len());
    parser.space();
    parser.value(&mut out, MAX_DEPTH)?;
    parser.space();
    (parser.at == parser.text.len()).then_some(out)
}

/// The fingerprint of a definition: SHA-256 of its canonical form (Invariant 6).
pub fn fingerprint(definition: &serde_json::Value) -> Fingerprint {
    let text = definition.to_string();
    let canonical = content(text.as_bytes()).unwrap_or_else(|| text.into_bytes());
    Fingerprint(Sha256::digest(canonical).into())
}

/// Reads the text once and writes the canonical form behind it. Members of objects are written in the order of the text and put
/// in order when their object ends; whatever is canonical already (most strings and numbers) is copied as it stands.
struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    /// Members of the objects that are open, the innermost last.
    members: Vec<Member<'a>>,
    /// Where an object's members are put in order.
    sorted: Vec<u8>,
}

struct Member<'a> {
    name: Cow<'a, [u8]>,
    /// Its canonical text, name and value, in the output.
    place: Range<usize>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    fn value(&mut self, out: &mut Vec<u8>, depth: usize) -> Option<()> {
        match self.peek()? {
            b'{' => self.object(out, depth.checked_sub(1)?),
            b'[' => self.array(out, depth.checked_sub(1)?),
            b'"' => {
                let text = self.string()?;
                write_string(&text, out);
                Some(())
            }
            b't' => self.word(b"true", out),
            b'f' => self.word(b"false", out),
            b'n' => self.word(b"null", out),
            _ => self.number(out),
        }
    }

    fn word(&mut self, word: &[u8], out: &mut Vec<u8>) -> Option<()> {
        self.text.get(self.at..)?.starts_with(word).then(|| {
            self.at += word.len();
            out.extend_from_slice(word);
        })
    }

    fn object(&mut self, out: &mut Vec<u8>, depth: usize) -> Option<()> {
        self.at += 1;
        out.push(b'{');
        let (first, start) = (self.members.len(), out.len());
        self.space();
        if self.take(b'}').is_none() {
            loop {
                self.space();
                let from = out.len();
                let name = self.string()?;
                write_string(&name, out);
                self.space();
                self.take(b':')?;
                out.push(b':');
                self.space();
                self.value(out, depth)?;
                self.members.push(Member { name, place: from..out.len() });
                self.space();
                if self.take(b',').is_none() {
                    self.take(b'}')?;
                    break;
                }
                out.push(b',');
            }
        }
        self.put_in_order(first, start, out);
        self.members.truncate(first);
        out.push(b'}');
        Some(())
    }

    /// Sorts the members from number `first` on, whose text in `out` begins at `start`.
    fn put_in_order(&mut self, first: usize, start: usize, out: &mut Vec<u8>) {
        let Some(members) = self.members.get_mut(first..) else { return };
        if members.is_sorted_by(|a, b| a.name <= b.name) {
            return;
        }
        members.sort_by(|a, b| a.name.cmp(&b.name));
        self.sorted.clear();
        for member in members {
            if !self.sorted.is_empty() {
                self.sorted.push(b',');
            }
            self.sorted.extend_from_slice(out.get(member.place.clone()).unwrap_or_default());
        }
        out.truncate(start);
        out.extend_from_slice(&self.sorted);
    }

    fn array(&mut self, out: &mut Vec<u8>, depth: usize) -> Option<()> {
        self.at += 1;
        out.push(b'[');
        self.space();
        if self.take(b']').is_none() {
            loop {
                self.space();
                self.value(out, depth)?;
                self.space();
                if self.take(b',').is_none() {
                    self.take(b']')?;
                    break;
                }
                out.push(b',');
            }
        }
        out.push(b']');
        Some(())
    }

    /// The content of a string, borrowed where it has no escapes.
    fn string(&mut self) -> Option<Cow<'a, [u8]>> {
        self.take(b'"')?;
        let rest = self.text.get(self.at..)?;
        let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))?;
        let (content, behind) = rest.split_at_checked(plain)?;
        if behind.first() != Some(&b'"') {
            return self.escaped_string(content).map(Cow::Owned);
        }
        self.at += plain + 1;
        Some(Cow::Borrowed(content))
    }

    /// The content of a string that goes on behind `plain`. An unpaired surrogate is kept as its three generalised UTF-8 bytes
    /// (`ED A0..BF 80..BF`), which no UTF-8 text holds.
    fn escaped_string(&mut self, plain: &[u8]) -> Option<Vec<u8>> {
        self.at += plain.len();
        let mut content = plain.to_vec();
        loop {
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'"' => return Some(content),
                b'\\' => self.escape(&mut content)?,
                0..=0x1f => return None,
                _ => content.push(byte),
            }
        }
    }

    fn escape(&mut self, content: &mut Vec<u8>) -> Option<()> {
        let letter = self.peek()?;
        self.at += 1;
        content.push(match letter {
            b'"' | b'\\' | b'/' => letter,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let unit = self.hex4()?;
                let pair = self.low_surrogate_behind(unit);
                match char::from_u32(pair.unwrap_or(unit)) {
                    Some(c) => content.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                    None => content.extend_from_slice(&[0xed, 0x80 | (unit >> 6 & 0x3f) as u8, 0x80 | (unit & 0x3f) as u8]),
                }
                return Some(());
            }
            _ => return None,
        });
        Some(())
    }

    fn hex4(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.iter().try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?))
    }

    /// The whole code point, when `unit` is a high surrogate and a low one follows; moves behind it.
    fn low_surrogate_behind(&mut self, unit: u32) -> Option<u32> {
        let back = self.at;
        if (0xd800..0xdc00).contains(&unit)
            && self.take(b'\\').is_some()
            && self.take(b'u').is_some()
            && let Some(low) = self.hex4().filter(|low| (0xdc00..0xe000).contains(low))
        {
            return Some(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
        }
        self.at = back;
        None
    }

    fn number(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let start = self.at;
        let negative = self.take(b'-').is_some();
        let whole = self.digits();
        if whole.is_empty() || (whole.len() > 1 && whole.first() == Some(&b'0')) {
            return None;
        }
        let fraction = if self.take(b'.').is_some() { Some(self.digits()).filter(|digits| !digits.is_empty())? } else { b"" };
        let mut exponent: Option<i64> = Some(0);
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            let sign = if self.take(b'-').is_some() { -1 } else { 1 };
            if sign == 1 {
                let _ = self.take(b'+');
            }
            let digits = Some(self.digits()).filter(|digits| !digits.is_empty())?;
            exponent = if digits.len() <= 18 {
                std::str::from_utf8(digits).ok().and_then(|text| text.parse::<i64>().ok()).map(|value| sign * value)
            } else {
                None
            };
        }
        if self.at - start == usize::from(negative) + whole.len() && whole.last().is_some_and(|digit| *digit != b'0') {
            out.extend_from_slice(self.text.get(start..self.at)?);
            return Some(());
        }
        let mut coefficient: Vec<u8> = whole.iter().chain(fraction).copied().skip_while(|digit| *digit == b'0').collect();
        if coefficient.is_empty() {
            out.push(b'0');
            return Some(());
        }
        let Some(exponent) = exponent else {
            out.extend_from_slice(self.text.get(start..self.at)?);
            return Some(());
        };
        let mut exponent = exponent - fraction.len() as i64;
        while coefficient.last() == Some(&b'0') {
            coefficient.pop();
            exponent += 1;
        }
        if negative {
            out.push(b'-');
        }
        out.extend_from_slice(&coefficient);
        if exponent != 0 {
            out.extend_from_slice(format!("e{exponent}").as_bytes());
        }
        Some(())
    }

    fn digits(&mut self) -> &'a [u8] {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        rest.get(..count).unwrap_or_default()
    }
}

fn write_string(content: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    if !content.iter().any(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f | 0xed)) {
        out.extend_from_slice(content);
        out.push(b'"');
        return;
    }
    let mut rest = content;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, behind) {
            (b'"' | b'\\', _) => out.extend_from_slice(&[b'\\', byte]),
            (8, _) => out.extend_from_slice(b"\\b"),
            (12, _) => out.extend_from_slice(b"\\f"),
            (b'\n', _) => out.extend_from_slice(b"\\n"),
            (b'\r', _) => out.extend_from_slice(b"\\r"),
            (b'\t', _) => out.extend_from_slice(b"\\t"),
            (0..=0x1f, _) => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            // An unpaired surrogate, see `Parser::string`.
            (0xed, [middle @ 0xa0..=0xbf, last, after @ ..]) => {
                let unit = 0xd000 | u32::from(middle & 0x3f) << 6 | u32::from(last & 0x3f);
                out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
                rest = after;
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> Option<String> {
        content(text.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn equal_values_have_equal_bytes_and_no_digit_is_lost() {
        for (text, expected) in [
            (r#" { "b" : 1.10 , "a":[ 1, 2e2 ,-0.0] } "#, r#"{"a":[1,2e2,0],"b":11e-1}"#),
            ("9007199254740993", "9007199254740993"),
            ("12345678901234567890.123456789", "12345678901234567890123456789e-9"),
            ("1e400", "1e400"),
            ("100", "1e2"),
            ("10e-1", "1"),
            ("1e+05", "1e5"),
            (r#""\u0041\/\n\u00e9\ud83d\ude00""#, "\"A/\\né😀\""),
            (r#""\uD800x\u0000""#, r#""\ud800x\u0000""#),
            (r#"{"😀":1,"€":2,"a":3,"a":4}"#, r#"{"a":3,"a":4,"€":2,"😀":1}"#),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(expected), "{text}");
        }
        let names = r#"{"b\"":1,"b":{"z":[{"y":1,"x":{}}],"\u0061":-10},"":7,"b!":0}"#;
        assert_eq!(canonical(names).as_deref(), Some(r#"{"":7,"b":{"a":-1e1,"z":[{"x":{},"y":1}]},"b!":0,"b\"":1}"#));
        let long = "1e1234567890123456789";
        assert_eq!(canonical(long).as_deref(), Some(long));
    }

    #[test]
    fn what_is_not_one_json_text_has_no_canonical_form() {
        for text in ["", "{", "[1,]", "01", "1.", ".5", "+1", "1 2", "nul", "\"\n\"", "\"\\x\"", "{\"a\"}", "\u{feff}{}"] {
            assert_eq!(canonical(text), None, "{text}");
        }
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(canonical(&nested(512)).is_some());
        assert!(canonical(&nested(513)).is_none());
    }
}
