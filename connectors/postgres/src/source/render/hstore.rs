//! The extension hstore: `"a"=>"1", "b"=>NULL`, which its own cast to json makes an object.

use super::{Misfit, escape};

const BROKEN: Misfit = Misfit("no hstore");

/// Appends an hstore as an object of strings and nulls.
pub(super) fn object(mut text: &[u8], out: &mut Vec<u8>) -> Result<(), Misfit> {
    out.push(b'{');
    let mut first = true;
    while !text.is_empty() {
        if !first {
            text = text.strip_prefix(b", ").ok_or(BROKEN)?;
            out.push(b',');
        }
        first = false;
        text = string(text, out)?;
        out.push(b':');
        text = text.strip_prefix(b"=>").ok_or(BROKEN)?;
        text = match text.strip_prefix(b"NULL") {
            Some(rest) => {
                out.extend_from_slice(b"null");
                rest
            }
            None => string(text, out)?,
        };
    }
    out.push(b'}');
    Ok(())
}

/// Appends a quoted string; gives what follows it.
fn string<'a>(text: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], Misfit> {
    let mut rest = text.strip_prefix(b"\"").ok_or(BROKEN)?;
    let mut content = Vec::new();
    loop {
        let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).ok_or(BROKEN)?;
        content.extend_from_slice(rest.get(..end).ok_or(BROKEN)?);
        match rest.get(end..) {
            Some([b'"', behind @ ..]) => {
                escape::string(&content, out);
                return Ok(behind);
            }
            Some([_, escaped, behind @ ..]) => {
                content.push(*escaped);
                rest = behind;
            }
            _ => return Err(BROKEN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rendered;
    use crate::source::shape::Shape;

    #[test]
    fn an_hstore_is_an_object_of_strings_and_nulls() {
        assert_eq!(
            rendered(&Shape::Hstore, r#""a"=>"1", "b c"=>NULL, "q\"\\"=>"NULL""#).as_deref(),
            Ok(r#"{"a":"1","b c":null,"q\"\\":"NULL"}"#)
        );
        assert_eq!(rendered(&Shape::Hstore, "").as_deref(), Ok("{}"));
        for bad in ["a=>1", "\"a\"", "\"a\"=>", "\"a\"=>\"1", "\"a\"=>\"1\" \"b\"=>NULL", "\"a\\"] {
            assert!(rendered(&Shape::Hstore, bad).is_err(), "{bad}");
        }
    }
}
