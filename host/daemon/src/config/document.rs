//! YAML text → a tree of nodes that know where they stand.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use tidegate_api::code;

use super::mistake::{Mistake, Place};

/// A value and its place.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

/// What YAML holds, by the rules of YAML 1.2.
#[derive(Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// One member of a mapping.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) place: Place,
    pub(crate) value: Node,
}

impl Node {
    /// Reads one YAML document. Duplicate keys, tabs as indentation and every other breach of YAML are mistakes.
    pub(crate) fn parse(text: &str) -> Result<Self, Mistake> {
        let empty = || Mistake::new(&code::CONFIG_SYNTAX, "the configuration is empty").or_at(Place { line: 1, column: 1 }, "");
        if text.trim().is_empty() {
            return Err(empty());
        }
        let node: Self = serde_saphyr::from_str(text).map_err(|error| mistake(&error))?;
        if matches!(node.value, Value::Null) { Err(empty()) } else { Ok(node) }
    }

    /// The member `key` of a mapping.
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// Where the value at this path of keys stands: the deepest part of it that exists.
    pub(crate) fn locate(&self, path: &[&str]) -> Place {
        let Some((first, rest)) = path.split_first() else { return self.place };
        match (&self.value, first.parse::<usize>()) {
            (Value::List(items), Ok(index)) => items.get(index).map_or(self.place, |item| item.locate(rest)),
            _ => self.get(first).map_or(self.place, |entry| if rest.is_empty() { entry.place } else { entry.value.locate(rest) }),
        }
    }
}

fn mistake(error: &serde_saphyr::Error) -> Mistake {
    let reason = match error.without_snippet() {
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => format!("the key `{key}` is there twice"),
        // The parser's own text may go on over several lines: the first one says what is wrong.
        other => other.to_string().lines().next().unwrap_or("not valid YAML").to_owned(),
    };
    let mistake = Mistake::new(&code::CONFIG_SYNTAX, reason);
    match error.location() {
        Some(place) if place.line() > 0 => mistake.or_at(Place { line: place.line(), column: place.column() }, ""),
        _ => mistake,
    }
}

fn place<T>(spanned: &Spanned<T>) -> Place {
    Place { line: spanned.referenced.line().max(1), column: spanned.referenced.column().max(1) }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self { place: place(&spanned), value: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Unsigned(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(u64::try_from(value).map_or(Value::Signed(value), Value::Unsigned))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = members.next_key::<Spanned<String>>()? {
            entries.push(Entry { place: place(&key), key: key.value, value: members.next_value()? });
        }
        Ok(Value::Map(entries))
    }
}
