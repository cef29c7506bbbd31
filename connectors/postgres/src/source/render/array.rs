//! Arrays: `{1,NULL,"a b",{…}}`, with bounds in front where they do not begin at 1.

use super::{Misfit, value};
use crate::source::shape::Shape;

/// Nested deeper than the server's own limit of 6 dimensions, with room to spare.
const MAX_DIMENSIONS: usize = 16;

/// Appends an array.
pub(super) fn array(element: &Shape, delimiter: u8, text: &[u8], out: &mut Vec<u8>) -> Result<(), Misfit> {
    let text = without_bounds(text)?;
    let rest = dimension(element, delimiter, text, MAX_DIMENSIONS, out)?;
    if rest.is_empty() { Ok(()) } else { Err(Misfit("text behind an array")) }
}

/// Appends an `int2vector` or `oidvector`.
pub(super) fn vector(element: &Shape, text: &[u8], out: &mut Vec<u8>) -> Result<(), Misfit> {
    out.push(b'[');
    for (index, item) in text.split(|byte| *byte == b' ').filter(|item| !item.is_empty()).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        value(element, item, out)?;
    }
    out.push(b']');
    Ok(())
}

/// Drops `[0:1]=`.
fn without_bounds(text: &[u8]) -> Result<&[u8], Misfit> {
    if text.first() != Some(&b'[') {
        return Ok(text);
    }
    let sign = text.iter().position(|byte| *byte == b'=').ok_or(Misfit("array bounds without their end"))?;
    text.get(sign + 1..).ok_or(Misfit("array bounds without their end"))
}

/// Appends one dimension, whose text begins with its brace; gives what follows it.
fn dimension<'a>(element: &Shape, delimiter: u8, text: &'a [u8], depth: usize, out: &mut Vec<u8>) -> Result<&'a [u8], Misfit> {
    let depth = depth.checked_sub(1).ok_or(Misfit("an array of too many dimensions"))?;
    let mut rest = text.strip_prefix(b"{").ok_or(Misfit("an array without its brace"))?;
    out.push(b'[');
    if let Some(rest) = rest.strip_prefix(b"}") {
        out.push(b']');
        return Ok(rest);
    }
    loop {
        rest = match rest.first() {
            Some(b'{') => dimension(element, delimiter, rest, depth, out)?,
            Some(b'"') => quoted(element, rest, out)?,
            Some(_) => bare(element, delimiter, rest, out)?,
            None => return Err(Misfit("an array without its end")),
        };
        match rest.split_first() {
            Some((b'}', behind)) => {
                out.push(b']');
                return Ok(behind);
            }
            Some((byte, behind)) if *byte == delimiter => {
                out.push(b',');
                rest = behind;
            }
            _ => return Err(Misfit("an array without its end")),
        }
    }
}

fn bare<'a>(element: &Shape, delimiter: u8, text: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], Misfit> {
    let end = text.iter().position(|byte| *byte == delimiter || *byte == b'}').ok_or(Misfit("an array without its end"))?;
    let (item, rest) = text.split_at_checked(end).ok_or(Misfit("an array without its end"))?;
    if item.is_empty() {
        return Err(Misfit("an array element without a value"));
    }
    if item == b"NULL" {
        out.extend_from_slice(b"null");
    } else {
        value(element, item, out)?;
    }
    Ok(rest)
}

fn quoted<'a>(element: &Shape, text: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], Misfit> {
    let broken = Misfit("an array element without its closing quote");
    let mut rest = text.get(1..).ok_or(broken)?;
    let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).ok_or(broken)?;
    if rest.get(end) == Some(&b'"') {
        value(element, rest.get(..end).ok_or(broken)?, out)?;
        return rest.get(end + 1..).ok_or(broken);
    }
    let mut item = Vec::with_capacity(rest.len().min(256));
    loop {
        let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).ok_or(broken)?;
        item.extend_from_slice(rest.get(..end).ok_or(broken)?);
        match rest.get(end..) {
            Some([b'"', behind @ ..]) => {
                value(element, &item, out)?;
                return Ok(behind);
            }
            Some([_, escaped, behind @ ..]) => {
                item.push(*escaped);
                rest = behind;
            }
            _ => return Err(broken),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::rendered;
    use crate::source::shape::Shape;

    fn of(element: Shape) -> Shape {
        Shape::Array { element: Arc::new(element), delimiter: b',' }
    }

    #[test]
    fn arrays_are_nested_and_their_bounds_go() {
        for (text, json) in [
            ("{}", "[]"),
            ("{1,NULL,-3}", "[1,null,-3]"),
            ("[0:1]={7,8}", "[7,8]"),
            ("[-2:-1][3:3]={{1},{2}}", "[[1],[2]]"),
            ("{{{1},{2}},{{3},{NULL}}}", "[[[1],[2]],[[3],[null]]]"),
        ] {
            assert_eq!(rendered(&of(Shape::Number), text).as_deref(), Ok(json));
        }
    }

    #[test]
    fn elements_that_need_quotes_are_taken_out_of_them() {
        let text = r#"{NULL,"NULL","a\"b","a\\b","","{x}",N,"a,b"}"#;
        assert_eq!(rendered(&of(Shape::Text), text).as_deref(), Ok(r#"[null,"NULL","a\"b","a\\b","","{x}","N","a,b"]"#));
        let boxes = Shape::Array { element: Arc::new(Shape::Text), delimiter: b';' };
        assert_eq!(rendered(&boxes, "{(1,1),(0,0);(2,2),(1,1)}").as_deref(), Ok(r#"["(1,1),(0,0)","(2,2),(1,1)"]"#));
        assert_eq!(rendered(&of(Shape::Json), r#"{"{\"a\": 1}",NULL}"#).as_deref(), Ok(r#"[{"a":1},null]"#));
    }

    #[test]
    fn vectors_are_arrays_too() {
        let vector = Shape::Vector(Arc::new(Shape::Number));
        assert_eq!(rendered(&vector, "1 2 -3").as_deref(), Ok("[1,2,-3]"));
        assert_eq!(rendered(&vector, "").as_deref(), Ok("[]"));
    }

    #[test]
    fn text_that_is_no_array_is_a_misfit() {
        for bad in ["", "1", "{", "{1", "{1,", "{\"a", "{\"a\\", "{1}x", "[0:1]", "{1;2}", "{{1}", "{1,,2}", "{1,}"] {
            assert!(rendered(&of(Shape::Number), bad).is_err(), "{bad}");
        }
        assert!(rendered(&of(Shape::Text), &"{".repeat(100_000)).is_err());
    }
}
