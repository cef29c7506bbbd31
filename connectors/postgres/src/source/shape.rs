//! How a type's text becomes JSON: what `row_to_json` does with a value of it.

use std::collections::HashMap;
use std::sync::Arc;

/// What `row_to_json` makes of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `true` or `false`.
    Bool,
    /// The digits as they are; a string where they are none (`NaN`, `Infinity`).
    Number,
    /// The text itself, without white space outside of strings.
    Json,
    /// A string.
    Text,
    /// A string with `T` between date and time.
    Timestamp,
    /// A string with `T` between date and time and an offset with minutes.
    TimestampTz,
    /// Nested arrays.
    Array {
        /// What the elements are.
        element: Arc<Shape>,
        /// What stands between them: a comma, for boxes a semicolon.
        delimiter: u8,
    },
    /// `int2vector`, `oidvector`: one array, with white space between its elements.
    Vector(Arc<Shape>),
    /// An object, with these members in order.
    Composite(Vec<Field>),
    /// An object of strings and nulls.
    Hstore,
}

/// A member of a composite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// `"name":`, escaped.
    pub(crate) label: Vec<u8>,
    /// What its values are.
    pub(crate) shape: Arc<Shape>,
}

/// A type as the catalogue describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Described {
    /// A domain over another type.
    Domain(u32),
    /// An array of another type.
    Array {
        /// The elements' type.
        element: u32,
        /// What stands between them.
        delimiter: u8,
    },
    /// A row type: names and types of its attributes.
    Composite(Vec<(String, u32)>),
    /// The extension's type.
    Hstore,
    /// Everything else: enums, ranges, what extensions bring.
    Text,
}

/// Types nest no deeper than this.
const MAX_DEPTH: usize = 32;

/// The shape of a built-in type that is neither an array nor made of others; `None` where the catalogue must be asked.
pub(crate) fn built_in(oid: u32) -> Option<Shape> {
    Some(match oid {
        16 => Shape::Bool,
        20 | 21 | 23 | 700 | 701 | 1700 => Shape::Number,
        114 | 3802 => Shape::Json,
        1114 => Shape::Timestamp,
        1184 => Shape::TimestampTz,
        22 => Shape::Vector(Arc::new(Shape::Number)),
        30 => Shape::Vector(Arc::new(Shape::Text)),
        // bytea, char, name, text, oid, bpchar, varchar, date, time, timetz, interval, uuid.
        17 | 18 | 19 | 25 | 26 | 1042 | 1043 | 1082 | 1083 | 1266 | 1186 | 2950 => Shape::Text,
        _ => return None,
    })
}

/// The shape of a type out of what the catalogue said about it and all that it is made of; `None` where a type is missing.
pub(crate) fn of(oid: u32, described: &HashMap<u32, Described>) -> Option<Shape> {
    build(oid, described, MAX_DEPTH)
}

fn build(oid: u32, described: &HashMap<u32, Described>, depth: usize) -> Option<Shape> {
    let depth = depth.checked_sub(1)?;
    if let Some(shape) = built_in(oid) {
        return Some(shape);
    }
    Some(match described.get(&oid)? {
        Described::Domain(base) => build(*base, described, depth)?,
        Described::Array { element, delimiter } => {
            Shape::Array { element: Arc::new(build(*element, described, depth)?), delimiter: *delimiter }
        }
        Described::Composite(attributes) => {
            let field = |(name, oid): &(String, u32)| Some(Field { label: label(name), shape: Arc::new(build(*oid, described, depth)?) });
            Shape::Composite(attributes.iter().map(field).collect::<Option<_>>()?)
        }
        Described::Hstore => Shape::Hstore,
        Described::Text => Shape::Text,
    })
}

/// `"name":`, as a member's name stands in a document.
pub(crate) fn label(name: &str) -> Vec<u8> {
    let mut label = Vec::with_capacity(name.len() + 3);
    super::render::escape::string(name.as_bytes(), &mut label);
    label.push(b':');
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_what_they_are_made_of_and_composites_nest() {
        let described = HashMap::from([
            (90_001, Described::Domain(90_002)),
            (90_002, Described::Domain(23)),
            (90_003, Described::Composite(vec![("a \"b\"".to_owned(), 90_001), ("c".to_owned(), 90_004)])),
            (90_004, Described::Array { element: 603, delimiter: b';' }),
            (603, Described::Text),
            (90_005, Described::Composite(vec![("gone".to_owned(), 99_999)])),
            (90_006, Described::Domain(90_006)),
        ]);
        assert_eq!(of(90_001, &described), Some(Shape::Number));
        let Some(Shape::Composite(fields)) = of(90_003, &described) else { panic!("no composite") };
        assert_eq!(fields[0], Field { label: br#""a \"b\"":"#.to_vec(), shape: Arc::new(Shape::Number) });
        assert_eq!(*fields[1].shape, Shape::Array { element: Arc::new(Shape::Text), delimiter: b';' });
        assert_eq!(of(90_005, &described), None);
        assert_eq!(of(90_006, &described), None);
    }
}
