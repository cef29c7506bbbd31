//! Names of tables, written and read as SQL does.

use std::fmt;
use std::str::FromStr;

/// A table's schema and name, as the catalogue holds them (unquoted, case kept).
///
/// The text form quotes each part as SQL does where needed: `public.orders`, `odd."Name x"`, `"a.b".c`. It is also the
/// name of the collection that the table's rows go to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    /// The schema.
    pub schema: String,
    /// The table.
    pub table: String,
}

/// Why a text is no table name.
#[derive(Debug, PartialEq, Eq)]
pub struct ParseTableNameError;

impl fmt::Display for ParseTableNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a table is named schema.table, each part quoted as sql does where needed, for example public.orders or public.\"Order lines\"",
        )
    }
}

impl std::error::Error for ParseTableNameError {}

impl TableName {
    /// The name made of these parts.
    pub fn new(schema: impl Into<String>, table: impl Into<String>) -> Self {
        Self { schema: schema.into(), table: table.into() }
    }

    /// Both parts in double quotes, whatever they are: for building SQL.
    pub fn quoted(&self) -> String {
        format!("{}.{}", quote(&self.schema), quote(&self.table))
    }
}

/// `name` in double quotes, inner quotes doubled.
pub fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `name` bare where SQL takes it so, else in double quotes.
pub fn quote_where_needed(name: &str) -> String {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
    let bare = first && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_') && RESERVED.binary_search(&name).is_err();
    if bare { name.to_owned() } else { quote(name) }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", quote_where_needed(&self.schema), quote_where_needed(&self.table))
    }
}

impl FromStr for TableName {
    type Err = ParseTableNameError;

    fn from_str(text: &str) -> Result<Self, ParseTableNameError> {
        let (schema, rest) = part(text)?;
        let (table, rest) = part(rest.strip_prefix('.').ok_or(ParseTableNameError)?)?;
        if rest.is_empty() { Ok(Self { schema, table }) } else { Err(ParseTableNameError) }
    }
}

/// Reads one part; gives it and what follows. An unquoted part is folded to lower case, as SQL does.
fn part(text: &str) -> Result<(String, &str), ParseTableNameError> {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find('.').unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let mut chars = name.chars();
        let valid =
            chars.next().is_some_and(|c| c.is_alphabetic() || c == '_') && chars.all(|c| c.is_alphanumeric() || c == '_' || c == '$');
        return if valid { Ok((name.to_ascii_lowercase(), rest)) } else { Err(ParseTableNameError) };
    };
    let mut name = String::new();
    loop {
        let (before, after) = rest.split_once('"').ok_or(ParseTableNameError)?;
        name.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None if name.is_empty() => return Err(ParseTableNameError),
            None => return Ok((name, after)),
        }
    }
}

/// The reserved key words of SQL, and those reserved but for functions and types, as PostgreSQL 18 has them. Sorted.
///
/// The key words that may name a column or table (`interval`, `json`, `time` …) stay bare: which of them there are changes
/// with the server's version, and a collection's name must not.
const RESERVED: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "binary",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "false",
    "fetch",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "group",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "intersect",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "natural",
    "not",
    "notnull",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "outer",
    "overlaps",
    "placing",
    "primary",
    "references",
    "returning",
    "right",
    "select",
    "session_user",
    "similar",
    "some",
    "symmetric",
    "system_user",
    "table",
    "tablesample",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_name_is_read_and_written_as_sql_does() {
        for (text, schema, table, shown) in [
            ("public.orders", "public", "orders", "public.orders"),
            ("Public.Orders", "public", "orders", "public.orders"),
            ("odd.\"Name x\"", "odd", "Name x", "odd.\"Name x\""),
            ("\"a.b\".c", "a.b", "c", "\"a.b\".c"),
            ("\"We\"\"ird\".\"select\"", "We\"ird", "select", "\"We\"\"ird\".\"select\""),
            ("public.\"order\"", "public", "order", "public.\"order\""),
            ("public.t$1", "public", "t$1", "public.\"t$1\""),
        ] {
            let name: TableName = text.parse().unwrap();
            assert_eq!((name.schema.as_str(), name.table.as_str(), name.to_string().as_str()), (schema, table, shown));
        }
        for bad in ["", "orders", "a.b.c", "a.", ".a", "\"a.b", "a.\"\"", "a b.c", "1a.b"] {
            assert_eq!(bad.parse::<TableName>(), Err(ParseTableNameError), "{bad}");
        }
    }

    #[test]
    fn the_reserved_words_are_sorted() {
        assert!(RESERVED.is_sorted());
    }
}
