//! A value's text to JSON: exactly what `row_to_json` makes of it, without insignificant white space.

mod array;
mod composite;
pub(crate) mod escape;
mod hstore;
mod json;

use super::shape::Shape;

/// Text that does not fit the type that the catalogue names: what is wrong, never the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Misfit(pub(crate) &'static str);

/// Appends the JSON of a value that is not NULL.
pub(crate) fn value(shape: &Shape, text: &[u8], out: &mut Vec<u8>) -> Result<(), Misfit> {
    match shape {
        Shape::Text => escape::string(text, out),
        Shape::Number if is_number(text) => out.extend_from_slice(text),
        Shape::Number if matches!(text, b"NaN" | b"Infinity" | b"-Infinity") => escape::string(text, out),
        Shape::Number => return Err(Misfit("no number")),
        Shape::Bool => out.extend_from_slice(match text {
            b"t" => b"true",
            b"f" => b"false",
            _ => return Err(Misfit("no boolean")),
        }),
        Shape::Json => json::compact(text, out)?,
        Shape::Timestamp => timestamp(text, false, out),
        Shape::TimestampTz => timestamp(text, true, out),
        Shape::Array { element, delimiter } => array::array(element, *delimiter, text, out)?,
        Shape::Vector(element) => array::vector(element, text, out)?,
        Shape::Composite(fields) => composite::object(fields, text, out)?,
        Shape::Hstore => hstore::object(text, out)?,
    }
    Ok(())
}

/// Appends the key text of a value: a string's content, else the JSON text.
pub(crate) fn key(shape: &Shape, text: &[u8], out: &mut Vec<u8>) -> Result<(), Misfit> {
    match shape {
        Shape::Text => out.extend_from_slice(text),
        Shape::Number if is_number(text) => out.extend_from_slice(text),
        _ => {
            let start = out.len();
            value(shape, text, out)?;
            if out.get(start) == Some(&b'"') {
                let quoted = out.split_off(start);
                json::content(quoted.get(1..quoted.len() - 1).unwrap_or_default(), out)?;
            }
        }
    }
    Ok(())
}

/// Whether the text is a number of JSON.
fn is_number(text: &[u8]) -> bool {
    fn digits(text: &[u8]) -> Option<&[u8]> {
        let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
        if end == 0 { None } else { text.get(end..) }
    }
    fn rest(text: &[u8]) -> Option<bool> {
        let text = text.strip_prefix(b"-").unwrap_or(text);
        let mut rest = match text {
            [b'0', rest @ ..] => rest,
            _ => digits(text)?,
        };
        if let [b'.', fraction @ ..] = rest {
            rest = digits(fraction)?;
        }
        if let [b'e' | b'E', exponent @ ..] = rest {
            rest = digits(exponent.strip_prefix(b"+").or_else(|| exponent.strip_prefix(b"-")).unwrap_or(exponent))?;
        }
        Some(rest.is_empty())
    }
    rest(text).unwrap_or(false)
}

/// `2024-02-29 12:34:56+00` as `"2024-02-29T12:34:56+00:00"`; `infinity` and the era stay.
fn timestamp(text: &[u8], zoned: bool, out: &mut Vec<u8>) {
    let (moment, era) = match text.strip_suffix(b" BC") {
        Some(moment) => (moment, b" BC".as_slice()),
        None => (text, b"".as_slice()),
    };
    let start = out.len();
    escape::string(moment, out);
    out.pop();
    if let Some(space) = out.iter_mut().skip(start).find(|byte| **byte == b' ') {
        *space = b'T';
        if zoned && matches!(moment, [.., b'+' | b'-', a, b] if a.is_ascii_digit() && b.is_ascii_digit()) {
            out.extend_from_slice(b":00");
        }
    }
    out.extend_from_slice(era);
    out.push(b'"');
}

#[cfg(test)]
pub(crate) fn rendered(shape: &Shape, text: &str) -> Result<String, Misfit> {
    let mut out = b"before ".to_vec();
    value(shape, text.as_bytes(), &mut out)?;
    Ok(String::from_utf8(out).unwrap().strip_prefix("before ").unwrap().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits_and_what_is_none_is_a_string() {
        for digits in ["0", "-0", "1.10", "9007199254740993", "1e+16", "1e-300", "123456789012345678901234567890", "0.000"] {
            assert_eq!(rendered(&Shape::Number, digits).as_deref(), Ok(digits));
        }
        for special in ["NaN", "Infinity", "-Infinity"] {
            assert_eq!(rendered(&Shape::Number, special), Ok(format!("\"{special}\"")));
        }
        for bad in ["", "-", "1.", ".5", "01", "1e", "1 2", "1;x", "--1", "+1"] {
            assert!(!is_number(bad.as_bytes()), "{bad}");
        }
        assert!(rendered(&Shape::Number, "1 \"2").is_err());
    }

    #[test]
    fn moments_are_written_as_row_to_json_does() {
        for (text, plain, zoned) in [
            ("2024-02-29 12:34:56.789+00", "2024-02-29T12:34:56.789+00", "2024-02-29T12:34:56.789+00:00"),
            ("0214-02-05 15:40:00+00 BC", "0214-02-05T15:40:00+00 BC", "0214-02-05T15:40:00+00:00 BC"),
            ("0214-02-05 15:40:00 BC", "0214-02-05T15:40:00 BC", "0214-02-05T15:40:00 BC"),
            ("2024-02-29 12:34:56+05:30", "2024-02-29T12:34:56+05:30", "2024-02-29T12:34:56+05:30"),
            ("infinity", "infinity", "infinity"),
            ("-infinity", "-infinity", "-infinity"),
        ] {
            assert_eq!(rendered(&Shape::Timestamp, text), Ok(format!("\"{plain}\"")));
            assert_eq!(rendered(&Shape::TimestampTz, text), Ok(format!("\"{zoned}\"")));
        }
    }

    #[test]
    fn a_key_is_a_string_s_content_or_the_json_text() {
        let key_of = |shape: &Shape, text: &str| {
            let mut out = b"x".to_vec();
            key(shape, text.as_bytes(), &mut out).unwrap();
            String::from_utf8(out).unwrap()[1..].to_owned()
        };
        assert_eq!(key_of(&Shape::Text, "a\"b\\c"), "a\"b\\c");
        assert_eq!(key_of(&Shape::Number, "1.10"), "1.10");
        assert_eq!(key_of(&Shape::Number, "NaN"), "NaN");
        assert_eq!(key_of(&Shape::Bool, "t"), "true");
        assert_eq!(key_of(&Shape::Json, "{\"a\": 1}"), "{\"a\":1}");
        assert_eq!(key_of(&Shape::Json, "\"a\\u00e9\\n\\ud83e\\udd14\""), "aé\n🤔");
        assert_eq!(key_of(&Shape::TimestampTz, "2024-02-29 12:34:56+00"), "2024-02-29T12:34:56+00:00");
    }

    #[test]
    fn mutated_texts_never_panic_whatever_their_type() {
        use std::sync::Arc;

        use super::super::shape::{Field, label};
        let array = |element: Shape| Shape::Array { element: Arc::new(element), delimiter: b',' };
        let field = |name: &str, shape: Shape| Field { label: label(name), shape: Arc::new(shape) };
        let inner = Shape::Composite(vec![field("a", Shape::Text), field("b", array(Shape::Json))]);
        let shapes = [
            Shape::Bool,
            Shape::Number,
            Shape::Json,
            Shape::Text,
            Shape::TimestampTz,
            Shape::Hstore,
            Shape::Vector(Arc::new(Shape::Number)),
            array(Shape::TimestampTz),
            Shape::Composite(vec![field("x", inner.clone()), field("y", array(inner))]),
        ];
        let seeds = [
            "-1.5e+10",
            "{\"a\": [1, \"\\u00e9\\ud83e\\udd14\"]}",
            "2024-02-29 12:34:56+00 BC",
            "\"a\"=>\"1\", \"b\"=>NULL",
            "[0:1][2:2]={{\"a \\\" b\"},{NULL}}",
            "(\"(\"\"a\"\",\"\"{1}\"\")\",\"{\"\"(a,)\"\",NULL}\")",
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize
        };
        let noise = b"{}()[]\",\\ N=:u0\xff";
        for _ in 0..20_000 {
            let mut text = seeds[random() % seeds.len()].as_bytes().to_vec();
            for _ in 0..random() % 4 {
                let place = random() % text.len().max(1);
                text[place] = noise[random() % noise.len()];
            }
            text.truncate(random() % (text.len() + 8));
            for shape in &shapes {
                let mut out = Vec::new();
                if value(shape, &text, &mut out).is_ok() {
                    let mut read = Vec::new();
                    assert!(json::compact(&out, &mut read).is_ok(), "{shape:?} of {text:?} breaks its document");
                }
                let _ = key(shape, &text, &mut Vec::new());
            }
        }
    }
}
