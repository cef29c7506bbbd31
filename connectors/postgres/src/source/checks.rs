//! What must hold at the server: looked at by the doctor, and before a capture begins.

use std::collections::{HashMap, HashSet};

use tidegate_api::table::quote;
use tidegate_api::{Error, Finding, Result, Severity, TableName, code};

use super::Unchanged;
use super::catalogue::Facts;
use super::wire::{Wire, literal, text};

const OPERATION: &str = "check source";

/// The oldest server whose publications have what we need: column lists and row filters that can be read.
const OLDEST: u32 = 150_000;

/// Version, wal_level and encoding.
pub(crate) async fn server(wire: &mut Wire) -> Result<Vec<Finding>> {
    let sql = "SELECT current_setting('server_version'), current_setting('wal_level'), pg_catalog.pg_encoding_to_char(encoding)
        FROM pg_catalog.pg_database WHERE datname = current_database()";
    let rows = wire.query(sql, OPERATION).await?;
    let row = rows.first().cloned().unwrap_or_default();
    let (version, wal_level, encoding) = (text(&row, 0), text(&row, 1), text(&row, 2));
    let judge = |good: bool, code, subject: &str, seen: &str| {
        if good { Finding::passed(subject, seen) } else { Finding::failed(code, subject, seen, code.fix) }
    };
    Ok(vec![
        judge(wire.version >= OLDEST, &code::SERVER_VERSION, "server_version", version),
        judge(wal_level == "logical", &code::WAL_LEVEL, "wal_level", wal_level),
        judge(encoding != "SQL_ASCII", &code::ENCODING, "encoding", encoding),
    ])
}

/// Existence, rights and keys of the tables, and what they risk.
pub(crate) fn tables(
    names: &[TableName],
    facts: &HashMap<TableName, Facts>,
    policies: &HashMap<TableName, Unchanged>,
    role: &str,
    version: u32,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in names {
        let subject = format!("table {name}");
        let Some(facts) = facts.get(name) else {
            findings.push(Finding::failed(&code::TABLE_MISSING, subject, "there is no such table", code::TABLE_MISSING.fix));
            continue;
        };
        match unusable(name, facts, role) {
            Some(finding) => findings.push(finding),
            None => {
                findings.push(Finding::passed(&subject, format!("key ({})", facts.key.join(", "))));
                let policy = policies.get(name).copied().unwrap_or_default();
                findings.extend(unchanged_risk(name, facts, policy, version));
            }
        }
    }
    findings
}

/// Why a table cannot be captured.
fn unusable(name: &TableName, facts: &Facts, role: &str) -> Option<Finding> {
    let subject = format!("table {name}");
    let failed = |code, subject: String, detail: String, fix: String| Some(Finding::failed(code, subject, detail, fix));
    match facts.kind.as_str() {
        "r" => {}
        "p" => {
            let detail = "it is partitioned: its partitions can be read, each by its own name".to_owned();
            return failed(&code::TABLE_MISSING, subject, detail, "name the partitions in the pipeline's tables".to_owned());
        }
        _ => return failed(&code::TABLE_MISSING, subject, "it is no ordinary table".to_owned(), code::TABLE_MISSING.fix.to_owned()),
    }
    let table = name.quoted();
    if facts.persistence != "p" {
        return failed(&code::TABLE_MISSING, subject, "it is not logged".to_owned(), format!("ALTER TABLE {table} SET LOGGED"));
    }
    if !facts.readable {
        let fix = format!("GRANT USAGE ON SCHEMA {} TO {role}; GRANT SELECT ON {table} TO {role}", quote(&name.schema));
        return failed(&code::TABLE_RIGHT, subject, format!("role {role} may not read it"), fix);
    }
    if facts.hidden {
        return failed(
            &code::TABLE_RIGHT,
            subject,
            format!("row security hides rows from role {role}"),
            format!("ALTER ROLE {role} BYPASSRLS"),
        );
    }
    if facts.key.is_empty() {
        let (detail, fix) = match facts.identity.as_str() {
            "n" => ("its replica identity is nothing".to_owned(), format!("ALTER TABLE {table} REPLICA IDENTITY DEFAULT")),
            "i" => ("the index of its replica identity is gone".to_owned(), format!("ALTER TABLE {table} REPLICA IDENTITY DEFAULT")),
            _ => (
                "no primary key that is checked at once".to_owned(),
                format!(
                    "ALTER TABLE {table} ADD PRIMARY KEY (…), or a unique index over not-null columns and ALTER TABLE {table} REPLICA IDENTITY USING INDEX …"
                ),
            ),
        };
        return failed(&code::TABLE_WITHOUT_KEY, subject, detail, fix);
    }
    let columns: HashSet<_> = facts.columns.iter().map(|column| column.name.as_str()).collect();
    let hidden: Vec<_> = facts.key.iter().filter(|name| !columns.contains(name.as_str())).map(|name| quote(name)).collect();
    if facts.published && !hidden.is_empty() {
        let detail = format!("the publication leaves out key columns: {}", hidden.join(", "));
        return failed(&code::TABLE_WITHOUT_KEY, subject, detail, "publish them: ALTER PUBLICATION … SET TABLE …".to_owned());
    }
    None
}

/// A warning where updates may come without large values that they did not touch.
fn unchanged_risk(name: &TableName, facts: &Facts, policy: Unchanged, version: u32) -> Option<Finding> {
    if !facts.toast || facts.identity == "f" || policy == Unchanged::Reselect {
        return None;
    }
    let reselect = "unchanged: reselect for this table in tidegate.yaml";
    // FULL would break updates there, or make the primary key the key in place of the index's columns.
    let fix = if (version >= 180_000 && facts.unpublished_generated) || facts.identity != "d" {
        reselect.to_owned()
    } else {
        format!("ALTER TABLE {} REPLICA IDENTITY FULL, or {reselect}", name.quoted())
    };
    let detail = "an update that leaves a large value as it is comes without it, and stops the pipeline";
    Some(Finding::warning(&code::UNCHANGED_TOAST, format!("table {name}: unchanged large values"), detail, fix))
}

/// The role's name as SQL writes it.
pub(crate) async fn role(wire: &mut Wire) -> Result<String> {
    let rows = wire.query("SELECT pg_catalog.quote_ident(current_user)", OPERATION).await?;
    Ok(rows.first().map(|row| text(row, 0).to_owned()).unwrap_or_default())
}

/// Free slots and walsenders, and the limit on what a slot keeps.
pub(crate) async fn room(wire: &mut Wire, slot: &str) -> Result<Vec<Finding>> {
    let sql = format!(
        "SELECT current_setting('max_replication_slots')::int, (SELECT count(*) FROM pg_catalog.pg_replication_slots),
            current_setting('max_wal_senders')::int, (SELECT count(*) FROM pg_catalog.pg_stat_replication),
            current_setting('max_slot_wal_keep_size'), (SELECT count(*) FROM pg_catalog.pg_replication_slots WHERE slot_name = {slot}),
            (SELECT count(*) FROM pg_catalog.pg_replication_slots WHERE slot_name = {slot} AND active)",
        slot = literal(slot)
    );
    let rows = wire.query(&sql, OPERATION).await?;
    let row = rows.first().cloned().unwrap_or_default();
    let number = |column| text(&row, column).parse::<i64>().unwrap_or(0);
    let mut findings = Vec::new();
    // Ours, where it is not there yet, and one for a snapshot.
    for (subject, code, setting, limit, used, ours) in [
        ("replication slots", &code::SLOTS_EXHAUSTED, "max_replication_slots", number(0), number(1), number(5)),
        ("walsenders", &code::WALSENDERS_EXHAUSTED, "max_wal_senders", number(2), number(3), number(6)),
    ] {
        let needed = 2 - ours.min(1);
        let detail = format!("{} of {limit} free, {needed} needed", (limit - used).max(0));
        findings.push(if limit - used >= needed {
            Finding::passed(subject, detail)
        } else {
            Finding::failed(code, subject, detail, format!("ALTER SYSTEM SET {setting} = {}; then restart the server", used + needed + 2))
        });
    }
    let keep = text(&row, 4);
    findings.push(if keep == "-1" {
        let detail = "unlimited: a reader that stays away can fill the server's disk";
        Finding::warning(&code::WAL_KEEP_UNLIMITED, "max_slot_wal_keep_size", detail, code::WAL_KEEP_UNLIMITED.fix)
    } else {
        Finding::passed("max_slot_wal_keep_size", keep)
    });
    Ok(findings)
}

/// The first finding that cannot work, as an error.
pub(crate) fn refuse(findings: &[Finding]) -> Result<()> {
    let mut failed = findings.iter().filter(|finding| finding.severity == Severity::Failed);
    let Some(first) = failed.next() else { return Ok(()) };
    let code = first.code.unwrap_or(&code::SOURCE_FAILED);
    let error = Error::new(code, OPERATION).with("subject", &first.subject).with("found", &first.detail);
    let error = match failed.count() {
        0 => error,
        more => error.with("further findings", more),
    };
    Err(error.fix(first.fix.clone().unwrap_or_else(|| code.fix.to_owned())))
}

/// Says what works but may go wrong later.
pub(crate) fn warn(findings: &[Finding]) {
    for finding in findings.iter().filter(|finding| finding.severity == Severity::Warning) {
        if let Some(code) = finding.code {
            let fix = finding.fix.as_deref().unwrap_or(code.fix);
            tracing::warn!(%code, subject = finding.subject, fix, "{}", finding.detail);
        }
    }
}
