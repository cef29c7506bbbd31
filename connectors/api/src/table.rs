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

/// `name` as `quote_ident` of the server gives it: bare where it may be, else in double quotes.
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

/// Key words that `quote_ident` puts in quotes: all but the unreserved ones of PostgreSQL 18. Sorted.
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
    "between",
    "bigint",
    "binary",
    "bit",
    "boolean",
    "both",
    "case",
    "cast",
    "char",
    "character",
    "check",
    "coalesce",
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
    "dec",
    "decimal",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "exists",
    "extract",
    "false",
    "fetch",
    "float",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "greatest",
    "group",
    "grouping",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "inout",
    "int",
    "integer",
    "intersect",
    "interval",
    "into",
    "is",
    "isnull",
    "join",
    "json",
    "json_array",
    "json_arrayagg",
    "json_exists",
    "json_object",
    "json_objectagg",
    "json_query",
    "json_scalar",
    "json_serialize",
    "json_table",
    "json_value",
    "lateral",
    "leading",
    "least",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "merge_action",
    "national",
    "natural",
    "nchar",
    "none",
    "normalize",
    "not",
    "notnull",
    "null",
    "nullif",
    "numeric",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "out",
    "outer",
    "overlaps",
    "overlay",
    "placing",
    "position",
    "precision",
    "primary",
    "real",
    "references",
    "returning",
    "right",
    "row",
    "select",
    "session_user",
    "setof",
    "similar",
    "smallint",
    "some",
    "substring",
    "symmetric",
    "system_user",
    "table",
    "tablesample",
    "then",
    "time",
    "timestamp",
    "to",
    "trailing",
    "treat",
    "trim",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "values",
    "varchar",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
    "xmlattributes",
    "xmlconcat",
    "xmlelement",
    "xmlexists",
    "xmlforest",
    "xmlnamespaces",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
    "xmltable",
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
