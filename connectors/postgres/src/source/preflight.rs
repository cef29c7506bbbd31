//! The doctor's view of a source: every finding with its code and the exact statement that mends it.

use std::sync::atomic::Ordering;

use tidegate_api::{Finding, Result, Severity, TableName, code};

use super::wire::{Mode, Wire};
use super::{Inner, catalogue, checks, publication, slot};

/// Looks at everything, changes nothing.
pub(crate) async fn run(inner: &Inner, tables: &[TableName]) -> Result<Vec<Finding>> {
    let mut wire = Wire::open(&inner.settings, Mode::Ordinary).await?;
    let mut findings = checks::server(&mut wire).await?;
    if findings.iter().any(|finding| finding.code == Some(&code::SERVER_VERSION)) {
        return Ok(findings);
    }
    let role = checks::role(&mut wire).await?;
    findings.push(replication_right(inner, &role).await);
    let facts = catalogue::tables(&mut wire, &inner.publication, tables).await?;
    findings.extend(checks::tables(tables, &facts, &inner.policies, &role, wire.version));
    findings.extend(publication_findings(&mut wire, inner, tables, &facts).await?);
    findings.push(slot_finding(&mut wire, inner).await?);
    findings.extend(checks::room(&mut wire, &inner.slot).await?);
    wire.close().await;
    inner.warned.store(true, Ordering::Relaxed); // whoever looked has them
    Ok(findings)
}

/// Asked of the server itself: hosted servers give the right in ways of their own.
async fn replication_right(inner: &Inner, role: &str) -> Finding {
    match Wire::open(&inner.settings, Mode::Replication).await {
        Ok(wire) => {
            wire.close().await;
            Finding::passed("replication right", format!("role {role}"))
        }
        Err(error) => {
            let fix =
                if error.code() == &code::REPLICATION_RIGHT { format!("ALTER ROLE {role} REPLICATION") } else { error.advice().to_owned() };
            Finding::failed(error.code(), "replication right", error.message(), fix)
        }
    }
}

async fn publication_findings(
    wire: &mut Wire,
    inner: &Inner,
    tables: &[TableName],
    facts: &std::collections::HashMap<TableName, catalogue::Facts>,
) -> Result<Vec<Finding>> {
    let name = &inner.publication;
    let subject = format!("publication {name}");
    let Some(found) = publication::find(wire, name).await? else {
        let fix = publication::create_sql(name, tables);
        let finding = if publication::may_create(wire, tables).await? {
            Finding::warning(&code::PUBLICATION_MISSING, subject, "it does not exist: it is created at the start", fix)
        } else {
            Finding::failed(&code::PUBLICATION_MISSING, subject, "it does not exist, and the role may not create it", fix)
        };
        return Ok(vec![finding]);
    };
    let mut findings = Vec::new();
    if !found.left_out.is_empty() {
        let detail = format!("it leaves out {}", found.left_out.join(", "));
        findings.push(Finding::failed(&code::PUBLICATION_OPERATIONS, &subject, detail, publication::operations_sql(name)));
    }
    let missing: Vec<_> = tables.iter().filter(|table| facts.get(table).is_some_and(|facts| !facts.published)).cloned().collect();
    if !missing.is_empty() {
        let named = missing.iter().map(TableName::to_string).collect::<Vec<_>>().join(", ");
        let fix = publication::add_sql(name, &missing);
        findings.push(if publication::may_add(wire, name, &missing).await? {
            Finding::warning(&code::PUBLICATION_TABLES, &subject, format!("it lacks {named}: added at the start"), fix)
        } else {
            Finding::failed(&code::PUBLICATION_TABLES, &subject, format!("it lacks {named}, and the role may not add them"), fix)
        });
    }
    if findings.iter().all(|finding| finding.severity == Severity::Passed) {
        let published = tables.iter().filter(|table| facts.get(table).is_some_and(|facts| facts.published)).count();
        findings.push(Finding::passed(&subject, format!("every operation of {published} of our tables")));
    }
    for (table, facts) in tables.iter().filter_map(|table| Some((table, facts.get(table)?))) {
        if facts.filter.is_some() {
            findings.push(Finding::passed(format!("{subject}: table {table}"), "some rows only: it has a row filter"));
        }
    }
    Ok(findings)
}

async fn slot_finding(wire: &mut Wire, inner: &Inner) -> Result<Finding> {
    let subject = format!("slot {}", inner.slot);
    let drop_sql = format!("SELECT pg_drop_replication_slot('{}')", inner.slot);
    let Some(slot) = slot::find(wire, &inner.slot).await? else {
        return Ok(Finding::passed(subject, "not there yet: it is created at the start"));
    };
    if slot.plugin != "pgoutput" || slot.database != inner.settings.database {
        let detail = format!("plugin {}, database {}", slot.plugin, slot.database);
        return Ok(Finding::failed(&code::SLOT_FOREIGN, subject, detail, format!("{drop_sql}, or choose another slot name")));
    }
    if slot.state == "lost" {
        return Ok(Finding::failed(&code::SLOT_LOST, subject, "wal_status lost", code::SLOT_LOST.fix));
    }
    let kept = slot.retained_bytes.map_or_else(String::new, |bytes| format!(", {bytes} bytes of log kept"));
    let detail = format!("wal_status {}{kept}", slot.state);
    Ok(match slot.active_pid {
        Some(pid) => {
            let fix = "stop the other reader (a running daemon is one), or give this source a slot of its own";
            Finding::warning(&code::SLOT_IN_USE, subject, format!("{detail}, read by process {pid}"), fix)
        }
        None => Finding::passed(subject, detail),
    })
}
