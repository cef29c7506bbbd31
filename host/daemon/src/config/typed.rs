//! Nodes → typed settings, by serde, with the place and the path of whatever does not fit.
//!
//! Two rules beyond plain serde: an enum is read from a text (its variant's name), or from a mapping whose key `kind` names
//! the variant and whose other keys are the variant's content; and null counts as absent.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use tidegate_api::code;

use super::document::{Entry, Node, Value};
use super::mistake::Mistake;

const KIND: &str = "kind";

/// Reads a whole document.
pub(crate) fn read<'a, T: Deserialize<'a>>(node: &'a Node) -> Result<T, Mistake> {
    T::deserialize(Reader { node, path: Path::Root })
}

/// The way from the document's root to a node: `pipelines.all.tables[0]`.
#[derive(Clone, Copy)]
enum Path<'p> {
    Root,
    Key(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(Self::Root, key) => f.write_str(key),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

struct Reader<'a, 'p> {
    node: &'a Node,
    path: Path<'p>,
}

impl<'de> Reader<'de, '_> {
    fn any<V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, Mistake> {
        match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Unsigned(value) => visitor.visit_u64(*value),
            Value::Signed(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(value) => visitor.visit_borrowed_str(value),
            Value::List(items) => visitor.visit_seq(Items { items: items.iter().enumerate(), path: &self.path }),
            Value::Map(entries) => visitor.visit_map(Members { entries, without: None, value: None, path: &self.path }),
        }
    }

    fn variant<V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, Mistake> {
        match &self.node.value {
            Value::Text(name) => visitor.visit_enum(name.as_str().into_deserializer()),
            Value::Map(entries) => match self.node.get(KIND).map(|entry| &entry.value) {
                None => Err(de::Error::missing_field(KIND)),
                Some(Node { value: Value::Text(name), place }) => visitor.visit_enum(Kinded { name, entries, path: &self.path }).map_err(
                    // What has no place yet is the name itself: serde does not know the variant.
                    |mistake: Mistake| mistake.or_at(*place, Path::Key(&self.path, KIND)),
                ),
                Some(other) => Err(Mistake::new(&code::CONFIG_SYNTAX, "expected a word").or_at(other.place, Path::Key(&self.path, KIND))),
            },
            _ => Err(Mistake::new(&code::CONFIG_SYNTAX, "expected a word, or a mapping with the key `kind`")),
        }
    }
}

impl<'de> Deserializer<'de> for Reader<'de, '_> {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.any(visitor).map_err(|mistake| mistake.or_at(self.node.place, self.path))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        if matches!(self.node.value, Value::Null) { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Mistake> {
        let (place, path) = (self.node.place, self.path);
        visitor.visit_newtype_struct(self).map_err(|mistake| mistake.or_at(place, path))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        self.variant(visitor).map_err(|mistake| mistake.or_at(self.node.place, self.path))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

struct Items<'a, 'p> {
    items: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
    path: &'p Path<'p>,
}

impl<'de> SeqAccess<'de> for Items<'de, '_> {
    type Error = Mistake;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Mistake> {
        let Some((index, node)) = self.items.next() else { return Ok(None) };
        let path = Path::Index(self.path, index);
        // A type that refuses a value that it has read already leaves it to us to say where that stands.
        seed.deserialize(Reader { node, path }).map(Some).map_err(|mistake| mistake.or_at(node.place, path))
    }
}

struct Members<'a, 'p> {
    entries: &'a [Entry],
    /// A key that was read already.
    without: Option<&'static str>,
    value: Option<&'a Entry>,
    path: &'p Path<'p>,
}

impl<'de> MapAccess<'de> for Members<'de, '_> {
    type Error = Mistake;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Mistake> {
        loop {
            let Some((entry, rest)) = self.entries.split_first() else { return Ok(None) };
            self.entries = rest;
            if Some(entry.key.as_str()) == self.without {
                continue;
            }
            self.value = Some(entry);
            let key: StrDeserializer<'_, Mistake> = entry.key.as_str().into_deserializer();
            let path = Path::Key(self.path, &entry.key);
            return seed.deserialize(key).map(Some).map_err(|mistake| mistake.or_at(entry.place, path));
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mistake> {
        let entry = self.value.take().ok_or_else(|| Mistake::new(&code::INTERNAL, "a value without its key"))?;
        let path = Path::Key(self.path, &entry.key);
        seed.deserialize(Reader { node: &entry.value, path }).map_err(|mistake| mistake.or_at(entry.value.place, path))
    }
}

/// A mapping whose `kind` is the variant.
struct Kinded<'a, 'p> {
    name: &'a str,
    entries: &'a [Entry],
    path: &'p Path<'p>,
}

impl<'de, 'p> EnumAccess<'de> for Kinded<'de, 'p> {
    type Error = Mistake;
    type Variant = Content<'de, 'p>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Content<'de, 'p>), Mistake> {
        let name: StrDeserializer<'_, Mistake> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, Content { entries: self.entries, path: self.path }))
    }
}

/// The rest of that mapping.
struct Content<'a, 'p> {
    entries: &'a [Entry],
    path: &'p Path<'p>,
}

impl<'de> Content<'de, '_> {
    fn members<'p>(&self, path: &'p Path<'p>) -> Members<'de, 'p> {
        Members { entries: self.entries, without: Some(KIND), value: None, path }
    }
}

impl<'de> VariantAccess<'de> for Content<'de, '_> {
    type Error = Mistake;

    fn unit_variant(self) -> Result<(), Mistake> {
        match self.entries.iter().find(|entry| entry.key != KIND) {
            None => Ok(()),
            Some(entry) => {
                let mistake: Mistake = de::Error::unknown_field(&entry.key, &[KIND]);
                Err(mistake.or_at(entry.place, Path::Key(self.path, &entry.key)))
            }
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Mistake> {
        // What is missing from the mapping is told at the mapping, not at its kind.
        let start = self.entries.first().map(|entry| entry.place);
        let path = *self.path;
        let members = de::value::MapAccessDeserializer::new(self.members(&path));
        seed.deserialize(members).map_err(|mistake| match start {
            Some(place) => mistake.or_at(place, path),
            None => mistake,
        })
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, _visitor: V) -> Result<V::Value, Mistake> {
        Err(Mistake::new(&code::INTERNAL, "a kind with unnamed settings"))
    }

    fn struct_variant<V: Visitor<'de>>(self, _fields: &'static [&'static str], visitor: V) -> Result<V::Value, Mistake> {
        let path = *self.path;
        visitor.visit_map(self.members(&path))
    }
}
