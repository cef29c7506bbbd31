//! What the server's catalogue says about tables, publications and types.

use std::collections::HashMap;

use tidegate_api::{Result, TableName};

use super::shape::Described;
use super::wire::{Row, Wire, literal, text};

const OPERATION: &str = "read catalogue";

/// A table that a pipeline reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// `pg_class.relkind`: `r` is an ordinary table.
    pub(crate) kind: String,
    /// `pg_class.relpersistence`: `p` is logged.
    pub(crate) persistence: String,
    /// `pg_class.relreplident`: `d`, `n`, `f` or `i`.
    pub(crate) identity: String,
    /// Whether values may be stored out of line.
    pub(crate) toast: bool,
    /// Whether the role may read the published columns.
    pub(crate) readable: bool,
    /// Whether row security would hide rows from the role.
    pub(crate) hidden: bool,
    /// The planner's estimate; `None` for a table that was never analysed.
    pub(crate) rows: Option<u64>,
    /// Whether the publication has it.
    pub(crate) published: bool,
    /// The publication's row filter.
    pub(crate) filter: Option<String>,
    /// The columns of the replica identity in its own order; empty where there is no usable one.
    pub(crate) key: Vec<String>,
    /// The columns that documents have, in order.
    pub(crate) columns: Vec<Column>,
    /// Whether an unpublished generated column stands beside them.
    pub(crate) unpublished_generated: bool,
}

/// A published column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) type_oid: u32,
}

/// What is known of these tables; those that do not exist are missing from the answer.
pub(crate) async fn tables(wire: &mut Wire, publication: &str, names: &[TableName]) -> Result<HashMap<TableName, Facts>> {
    if names.is_empty() {
        return Ok(HashMap::new());
    }
    let mut tables = HashMap::new();
    let (scope, publication) = (scope(names), literal(publication));
    let sql = format!(
        "SELECT n.nspname, c.relname, c.relkind, c.relpersistence, c.relreplident, c.reltoastrelid <> 0,
            pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND (pg_catalog.has_table_privilege(c.oid, 'SELECT')
                OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT')),
            pg_catalog.row_security_active(c.oid), nullif(c.reltuples, -1)::bigint, p.pubname IS NOT NULL, p.rowfilter
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         LEFT JOIN pg_catalog.pg_publication_tables p ON p.pubname = {publication} AND p.schemaname = n.nspname AND p.tablename = c.relname
         WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {scope}"
    );
    for row in wire.query(&sql, OPERATION).await? {
        let name = name_of(&row);
        let flag = |column| text(&row, column) == "t";
        let facts = Facts {
            kind: text(&row, 2).to_owned(),
            persistence: text(&row, 3).to_owned(),
            identity: text(&row, 4).to_owned(),
            toast: flag(5),
            readable: flag(6),
            hidden: flag(7),
            rows: text(&row, 8).parse().ok(),
            published: flag(9),
            filter: row.get(10).cloned().flatten(),
            ..Facts::default()
        };
        tables.insert(name, facts);
    }
    for row in key_rows(wire, &scope).await? {
        if let Some(facts) = tables.get_mut(&name_of(&row)) {
            facts.key.push(text(&row, 2).to_owned());
        }
    }
    // Before version 18 the view names stored generated columns too, which the plugin never sends; from then on they are
    // sent where the publication says so.
    let generated = if wire.version < 180_000 { "a.attgenerated = ''" } else { "(a.attgenerated = '' OR p.attnames IS NOT NULL)" };
    let sql = format!(
        "SELECT n.nspname, c.relname, a.attname, a.atttypid, {generated} AND (p.attnames IS NULL OR a.attname = ANY (p.attnames)),
            a.attgenerated <> ''
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
         LEFT JOIN pg_catalog.pg_publication_tables p ON p.pubname = {publication} AND p.schemaname = n.nspname AND p.tablename = c.relname
         WHERE c.relkind IN ('r', 'p') AND {scope} ORDER BY 1, 2, a.attnum"
    );
    for row in wire.query(&sql, OPERATION).await? {
        let Some(facts) = tables.get_mut(&name_of(&row)) else { continue };
        if text(&row, 4) == "t" {
            facts.columns.push(Column { name: text(&row, 2).to_owned(), type_oid: text(&row, 3).parse().unwrap_or(0) });
        } else if text(&row, 5) == "t" {
            facts.unpublished_generated = true;
        }
    }
    Ok(tables)
}

/// The key columns of one table, in the key's order; empty where it has no usable key or is gone.
pub(crate) async fn key(wire: &mut Wire, name: &TableName) -> Result<Vec<String>> {
    let rows = key_rows(wire, &scope(std::slice::from_ref(name))).await?;
    Ok(rows.iter().map(|row| text(row, 2).to_owned()).collect())
}

/// The replica identity's columns: the named index's, else the primary key's. A deferrable primary key is none under
/// DEFAULT: the server would refuse updates of a published table.
async fn key_rows(wire: &mut Wire, scope: &str) -> Result<Vec<Row>> {
    let sql = format!(
        "SELECT n.nspname, c.relname, a.attname
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisvalid AND CASE c.relreplident
            WHEN 'i' THEN i.indisreplident WHEN 'd' THEN i.indisprimary AND i.indimmediate WHEN 'f' THEN i.indisprimary END
         CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k (attnum, place)
         JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
         WHERE k.place <= i.indnkeyatts AND {scope} ORDER BY 1, 2, k.place"
    );
    wire.query(&sql, OPERATION).await
}

fn scope(names: &[TableName]) -> String {
    let pairs: Vec<_> = names.iter().map(|name| format!("({}, {})", literal(&name.schema), literal(&name.table))).collect();
    format!("(n.nspname, c.relname) IN ({})", pairs.join(", "))
}

fn name_of(row: &Row) -> TableName {
    TableName::new(text(row, 0), text(row, 1))
}

/// What these types are, and everything that they are made of. Types that are gone are missing from the answer.
pub(crate) async fn describe(wire: &mut Wire, types: &[u32]) -> Result<HashMap<u32, Described>> {
    let mut described = HashMap::new();
    if types.is_empty() {
        return Ok(described);
    }
    let wanted: Vec<_> = types.iter().map(u32::to_string).collect();
    // A true array is what the server's own array functions read; name or point have elements, but are none.
    let sql = format!(
        "WITH RECURSIVE made_of (oid) AS (
            SELECT oid FROM pg_catalog.pg_type WHERE oid IN ({wanted})
            UNION
            SELECT part.oid FROM made_of m JOIN pg_catalog.pg_type t ON t.oid = m.oid
            CROSS JOIN LATERAL (
                SELECT t.typbasetype WHERE t.typtype = 'd'
                UNION ALL SELECT t.typelem WHERE t.typsubscript = 'pg_catalog.array_subscript_handler'::regproc
                UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a
                    WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
            ) part (oid) WHERE part.oid <> 0)
         SELECT t.oid, CASE WHEN t.typtype = 'd' THEN 'd' WHEN t.typsubscript = 'pg_catalog.array_subscript_handler'::regproc THEN 'a'
                WHEN t.typtype = 'c' THEN 'c' WHEN t.typname = 'hstore' AND EXISTS (
                    SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
                    WHERE d.classid = 'pg_catalog.pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e' AND e.extname = 'hstore') THEN 'h'
                ELSE '' END,
            t.typbasetype, t.typelem, coalesce(e.typdelim, ','), a.attname, a.atttypid
         FROM made_of m JOIN pg_catalog.pg_type t ON t.oid = m.oid
         LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem
         LEFT JOIN pg_catalog.pg_attribute a ON t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
         ORDER BY t.oid, a.attnum",
        wanted = wanted.join(", ")
    );
    for row in wire.query(&sql, OPERATION).await? {
        let number = |column| text(&row, column).parse().unwrap_or(0);
        let oid = number(0);
        match text(&row, 1) {
            "d" => drop(described.insert(oid, Described::Domain(number(2)))),
            "a" => {
                let delimiter = text(&row, 4).bytes().next().unwrap_or(b',');
                described.insert(oid, Described::Array { element: number(3), delimiter });
            }
            "c" => {
                let entry = described.entry(oid).or_insert_with(|| Described::Composite(Vec::new()));
                if let (Described::Composite(attributes), Some(Some(name))) = (entry, row.get(5)) {
                    attributes.push((name.clone(), number(6)));
                }
            }
            "h" => drop(described.insert(oid, Described::Hstore)),
            _ => drop(described.insert(oid, Described::Text)),
        }
    }
    Ok(described)
}
