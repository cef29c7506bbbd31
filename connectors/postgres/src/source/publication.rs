//! The publication: checked, and made or widened where the role may.
//!
//! One that we made carries the comment [`COMMENT`]; only such a one is dropped when the source is removed.

use std::collections::HashMap;

use tidegate_api::table::quote;
use tidegate_api::{Error, Result, TableName, code};

use super::catalogue::Facts;
use super::wire::{Wire, literal, text};
use crate::connect::Role;

/// Marks a publication as made by us.
pub(crate) const COMMENT: &str = "created by tidegate";

const OPERATION: &str = "check publication";

/// A publication as the catalogue shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Publication {
    /// The operations that it leaves out.
    pub(crate) left_out: Vec<&'static str>,
    pub(crate) ours: bool,
}

/// Looks the publication up.
pub(crate) async fn find(wire: &mut Wire, name: &str) -> Result<Option<Publication>> {
    let sql = format!(
        "SELECT pubinsert, pubupdate, pubdelete, pubtruncate, coalesce(pg_catalog.obj_description(oid, 'pg_publication'), '')
         FROM pg_catalog.pg_publication WHERE pubname = {}",
        literal(name)
    );
    let rows = wire.query(&sql, OPERATION).await?;
    Ok(rows.first().map(|row| {
        let operations = ["insert", "update", "delete", "truncate"].into_iter().enumerate();
        let left_out = operations.filter(|(column, _)| text(row, *column) != "t").map(|(_, operation)| operation).collect();
        Publication { left_out, ours: text(row, 4) == COMMENT }
    }))
}

/// The statement that creates it.
pub(crate) fn create_sql(name: &str, tables: &[TableName]) -> String {
    if tables.is_empty() {
        format!("CREATE PUBLICATION {}", quote(name))
    } else {
        format!("CREATE PUBLICATION {} FOR TABLE {}", quote(name), list(tables))
    }
}

/// The statement that adds these tables.
pub(crate) fn add_sql(name: &str, tables: &[TableName]) -> String {
    format!("ALTER PUBLICATION {} ADD TABLE {}", quote(name), list(tables))
}

/// The statement that publishes every operation.
pub(crate) fn operations_sql(name: &str) -> String {
    format!("ALTER PUBLICATION {} SET (publish = 'insert, update, delete, truncate')", quote(name))
}

/// Whether the role may create the publication for these tables.
pub(crate) async fn may_create(wire: &mut Wire, tables: &[TableName]) -> Result<bool> {
    holds(wire, &format!("pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE') AND {}", owns(tables))).await
}

/// Whether the role may add these tables to the publication.
pub(crate) async fn may_add(wire: &mut Wire, name: &str, tables: &[TableName]) -> Result<bool> {
    let owner = "(SELECT pg_catalog.pg_has_role(pubowner, 'USAGE') FROM pg_catalog.pg_publication WHERE pubname = ";
    holds(wire, &format!("{owner}{}) AND {}", literal(name), owns(tables))).await
}

/// SQL: the role owns each of the tables that exist.
fn owns(tables: &[TableName]) -> String {
    let names = tables.iter().map(|table| format!("pg_catalog.to_regclass({})", literal(&table.quoted()))).collect::<Vec<_>>().join(", ");
    format!(
        "NOT EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = ANY (ARRAY[{names}]::pg_catalog.oid[])
         AND NOT pg_catalog.pg_has_role(c.relowner, 'USAGE'))"
    )
}

async fn holds(wire: &mut Wire, condition: &str) -> Result<bool> {
    let rows = wire.query(&format!("SELECT {condition}"), OPERATION).await?;
    Ok(rows.first().is_some_and(|row| text(row, 0) == "t"))
}

fn list(tables: &[TableName]) -> String {
    tables.iter().map(|table| format!("ONLY {}", table.quoted())).collect::<Vec<_>>().join(", ")
}

/// Makes sure that the publication covers the tables and every operation. Gives whether something was changed.
///
/// # Errors
/// Named refusals, with the statement that somebody with more rights must run.
pub(crate) async fn ensure(wire: &mut Wire, name: &str, tables: &[TableName], facts: &HashMap<TableName, Facts>) -> Result<bool> {
    let Some(publication) = find(wire, name).await? else {
        let create = create_sql(name, tables);
        let sql = format!("{create}; COMMENT ON PUBLICATION {} IS {}", quote(name), literal(COMMENT));
        run(wire, &sql, |error| error.with("publication", name).fix(create), &code::PUBLICATION_MISSING).await?;
        tracing::info!(publication = name, "publication created");
        return Ok(true);
    };
    if !publication.left_out.is_empty() {
        let error = Error::new(&code::PUBLICATION_OPERATIONS, OPERATION).with("publication", name);
        return Err(error.with("left out", publication.left_out.join(" ")).fix(operations_sql(name)));
    }
    let missing: Vec<_> = tables.iter().filter(|table| facts.get(table).is_none_or(|facts| !facts.published)).cloned().collect();
    if missing.is_empty() {
        return Ok(false);
    }
    let sql = add_sql(name, &missing);
    let named = missing.iter().map(TableName::to_string).collect::<Vec<_>>().join(", ");
    let describe = |error: Error| error.with("publication", name).with("tables", named).fix(sql.clone());
    run(wire, &sql, describe, &code::PUBLICATION_TABLES).await?;
    tracing::info!(publication = name, tables = missing.len(), "tables added to the publication");
    Ok(true)
}

/// Runs a statement; a missing right becomes the given code.
async fn run(wire: &mut Wire, sql: &str, describe: impl FnOnce(Error) -> Error, denied: &'static tidegate_api::Code) -> Result<()> {
    match wire.try_query(sql, OPERATION).await? {
        Ok(_) => Ok(()),
        Err(refusal) if refusal.state == "42501" => Err(describe(Error::new(denied, OPERATION).because(refusal.message))),
        Err(refusal) => Err(describe(refusal.into_error(Role::Source, OPERATION))),
    }
}

/// Drops the publication where it is ours.
pub(crate) async fn remove(wire: &mut Wire, name: &str) -> Result<()> {
    if find(wire, name).await?.is_some_and(|publication| publication.ours) {
        wire.query(&format!("DROP PUBLICATION {}", quote(name)), "drop publication").await?;
    }
    Ok(())
}
