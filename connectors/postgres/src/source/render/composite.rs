//! Composites: `(1,,"a b","q""q")`.

use super::{Misfit, value};
use crate::source::shape::Field;

/// Appends a composite as an object.
pub(super) fn object(fields: &[Field], text: &[u8], out: &mut Vec<u8>) -> Result<(), Misfit> {
    let broken = Misfit("a composite without its parentheses");
    let inner = text.strip_prefix(b"(").and_then(|text| text.strip_suffix(b")")).ok_or(broken)?;
    if fields.is_empty() {
        out.extend_from_slice(b"{}");
        return if inner.is_empty() { Ok(()) } else { Err(Misfit("a composite of another number of fields")) };
    }
    let mut rest = Some(inner);
    for (index, field) in fields.iter().enumerate() {
        let text = rest.ok_or(Misfit("a composite of another number of fields"))?;
        out.push(if index == 0 { b'{' } else { b',' });
        out.extend_from_slice(&field.label);
        rest = item(field, text, out)?;
    }
    out.push(b'}');
    if rest.is_none() { Ok(()) } else { Err(Misfit("a composite of another number of fields")) }
}

/// Appends one field's value; gives what follows its comma, `None` where it was the last.
fn item<'a>(field: &Field, text: &'a [u8], out: &mut Vec<u8>) -> Result<Option<&'a [u8]>, Misfit> {
    // Nothing between two commas is NULL; an empty text stands in quotes.
    let end = text.iter().position(|byte| matches!(byte, b',' | b'"' | b'\\'));
    let simple = match end {
        None => Some((text, None)),
        Some(place) if text.get(place) == Some(&b',') => text.split_at_checked(place).map(|(item, rest)| (item, rest.get(1..))),
        Some(_) => None,
    };
    if let Some((item, rest)) = simple {
        if item.is_empty() {
            out.extend_from_slice(b"null");
        } else {
            value(&field.shape, item, out)?;
        }
        return Ok(rest);
    }
    let mut content = Vec::with_capacity(text.len().min(256));
    let mut quoted = false;
    let mut bytes = text.iter().enumerate();
    let mut rest = None;
    while let Some((place, byte)) = bytes.next() {
        match byte {
            b'"' if quoted && text.get(place + 1) == Some(&b'"') => {
                content.push(b'"');
                bytes.next();
            }
            b'"' => quoted = !quoted,
            b'\\' => {
                let (_, escaped) = bytes.next().ok_or(Misfit("a composite that ends in a backslash"))?;
                content.push(*escaped);
            }
            b',' if !quoted => {
                rest = text.get(place + 1..);
                break;
            }
            other => content.push(*other),
        }
    }
    if quoted {
        return Err(Misfit("a composite field without its closing quote"));
    }
    value(&field.shape, &content, out)?;
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::rendered;
    use crate::source::shape::{Field, Shape, label};

    fn composite(fields: &[(&str, Shape)]) -> Shape {
        Shape::Composite(fields.iter().map(|(name, shape)| Field { label: label(name), shape: Arc::new(shape.clone()) }).collect())
    }

    #[test]
    fn a_composite_is_an_object_of_its_fields() {
        let tags = Shape::Array { element: Arc::new(Shape::Text), delimiter: b',' };
        let address = composite(&[("street", Shape::Text), ("house No", Shape::Number), ("quo\"ted", Shape::Text), ("tags", tags)]);
        let text = r#"("Main St",12,"a""b\\c","{a,NULL,""b c""}")"#;
        let json = r#"{"street":"Main St","house No":12,"quo\"ted":"a\"b\\c","tags":["a",null,"b c"]}"#;
        assert_eq!(rendered(&address, text).as_deref(), Ok(json));
        let nulls = r#"{"street":null,"house No":null,"quo\"ted":null,"tags":null}"#;
        assert_eq!(rendered(&address, "(,,,)").as_deref(), Ok(nulls));
        assert_eq!(rendered(&composite(&[("a", Shape::Text)]), "()").as_deref(), Ok(r#"{"a":null}"#));
        assert_eq!(rendered(&composite(&[("a", Shape::Text)]), r#"("")"#).as_deref(), Ok(r#"{"a":""}"#));
        assert_eq!(rendered(&composite(&[]), "()").as_deref(), Ok("{}"));
    }

    #[test]
    fn composites_nest() {
        let inner = composite(&[("x", Shape::Text), ("y", Shape::Number)]);
        let outer = composite(&[("name", Shape::Text), ("inner", inner)]);
        assert_eq!(rendered(&outer, r#"(n,"(""a, """"b"""""",2)")"#).as_deref(), Ok(r#"{"name":"n","inner":{"x":"a, \"b\"","y":2}}"#));
    }

    #[test]
    fn another_number_of_fields_is_a_misfit() {
        let pair = composite(&[("a", Shape::Text), ("b", Shape::Text)]);
        for bad in ["", "(", "1,2", "(1)", "(1,2,3)", "(1,\"2)", "(1,2\\)", "()"] {
            assert!(rendered(&pair, bad).is_err(), "{bad}");
        }
    }
}
