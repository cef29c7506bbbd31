//! Names of sources, pipelines and tables.

use std::borrow::{Borrow, Cow};
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use tidegate_api::TableName;

/// The name of a source or a pipeline: it is also a file name, a metric's label and a part of an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name(String);

const MAX_NAME_BYTES: usize = 63;

impl Name {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.chars().all(allowed) {
            return Ok(Self(name));
        }
        Err(D::Error::custom("a name is 1 to 63 letters, digits, _ or -"))
    }
}

impl JsonSchema for Name {
    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,63}$"})
    }
}

/// What is done with a value that the source does not send again because it did not change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Unchanged {
    /// Such a row is poison.
    #[default]
    Refuse,
    /// The value is read from the source again, by key.
    Reselect,
}

/// A table of a pipeline: its name, or `{name, unchanged}`.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: TableName,
    pub(crate) unchanged: Unchanged,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DetailedTable {
    /// schema.table, each part quoted as SQL does where needed.
    name: String,
    /// What is done with an unchanged value that the source does not send.
    #[serde(default)]
    unchanged: Unchanged,
}

#[derive(JsonSchema)]
#[schemars(untagged, rename = "Table")]
#[expect(dead_code, reason = "the shape for the schema")]
enum TableShape {
    /// schema.table, each part quoted as SQL does where needed.
    Name(String),
    Detailed(DetailedTable),
}

impl JsonSchema for Table {
    fn schema_name() -> Cow<'static, str> {
        TableShape::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        TableShape::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TableVisitor)
    }
}

struct TableVisitor;

impl<'de> Visitor<'de> for TableVisitor {
    type Value = Table;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table's name, or a mapping with the keys name and unchanged")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Table, E> {
        Ok(Table { name: name.parse().map_err(E::custom)?, unchanged: Unchanged::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Table, A::Error> {
        let DetailedTable { name, unchanged } = DetailedTable::deserialize(MapAccessDeserializer::new(members))?;
        Ok(Table { name: name.parse().map_err(A::Error::custom)?, unchanged })
    }
}
