//! The replication slot: whose it is, how far it has come, and who its positions belong to.
//!
//! The server gives a slot no identity of its own. Ours is the consistent point at which it was created, kept in the
//! [`SourceIdentity`] with system identifier, timeline and database; a slot that was dropped and made again shows by a
//! confirmed position beyond everything that the relay holds.

use std::time::Duration;

use tidegate_api::{CommitPosition, Error, Lsn, Result, Resume, SourceIdentity, code};

use super::wire::{Wire, literal, text};
use crate::connect::Role;
use crate::connect::failure::Refusal;

/// A reader that has just let go, ours included, needs a moment to leave the slot.
const LEAVE: Duration = Duration::from_secs(5);

/// While something is waited for, the server is asked this often.
const POLL: Duration = Duration::from_millis(50);

/// An open transaction that a slot waits for is named after this long, and again every so often.
const PATIENCE: Duration = Duration::from_secs(3);

/// A slot, as `pg_replication_slots` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its name.
    pub name: String,
    /// The process that reads it now.
    pub active_pid: Option<u32>,
    /// The database it belongs to.
    pub database: String,
    /// Its output plugin.
    pub plugin: String,
    /// Whether it ends with its session.
    pub temporary: bool,
    /// Up to where its reader has confirmed.
    pub confirmed: Option<Lsn>,
    /// Bytes of log that the server keeps for it.
    pub retained_bytes: Option<u64>,
    /// `reserved`, `extended`, `unreserved` or `lost`.
    pub state: String,
    /// How many transactions were decoded by it since it was made, or since the server's statistics began.
    pub transactions: u64,
    /// Whether it is the one that this source reads.
    pub ours: bool,
}

/// The logical slots of the database, and the one of this name wherever it is.
pub(crate) async fn list(wire: &mut Wire, name: &str) -> Result<Vec<Slot>> {
    let name = literal(name);
    let sql = format!(
        "SELECT slot_name, active_pid, coalesce(database, ''), coalesce(plugin, ''), temporary, confirmed_flush_lsn,
            greatest(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), restart_lsn), 0)::bigint, coalesce(wal_status, ''),
            slot_name = {name}, coalesce(total_txns, 0)
         FROM pg_catalog.pg_replication_slots LEFT JOIN pg_catalog.pg_stat_replication_slots USING (slot_name)
         WHERE slot_name = {name} OR (slot_type = 'logical' AND database = current_database()) ORDER BY 1"
    );
    let rows = wire.query(&sql, "read slots").await?;
    Ok(rows
        .iter()
        .map(|row| Slot {
            name: text(row, 0).to_owned(),
            active_pid: text(row, 1).parse().ok(),
            database: text(row, 2).to_owned(),
            plugin: text(row, 3).to_owned(),
            temporary: text(row, 4) == "t",
            confirmed: text(row, 5).parse().ok(),
            retained_bytes: text(row, 6).parse().ok(),
            state: text(row, 7).to_owned(),
            ours: text(row, 8) == "t",
            transactions: text(row, 9).parse().unwrap_or(0),
        })
        .collect())
}

/// The slot of this name.
pub(crate) async fn find(wire: &mut Wire, name: &str) -> Result<Option<Slot>> {
    Ok(list(wire, name).await?.into_iter().find(|slot| slot.ours))
}

/// System identifier, timeline and database, with this epoch; and the end of the server's log.
pub(crate) async fn identity(replication: &mut Wire, database: &str, epoch: String) -> Result<(SourceIdentity, Lsn)> {
    let rows = replication.query("IDENTIFY_SYSTEM", "identify system").await?;
    let row = rows.first().ok_or_else(|| Error::new(&code::PROTOCOL, "identify system"))?;
    let timeline = text(row, 1).parse().unwrap_or(0);
    let head = text(row, 2).parse().map_err(|error| Error::new(&code::PROTOCOL, "identify system").because(error))?;
    Ok((SourceIdentity { system: text(row, 0).to_owned(), timeline, database: database.to_owned(), epoch }, head))
}

/// What is to be done with the slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// It is made.
    Create,
    /// What an interrupted creation left is dropped, then it is made.
    CreateAgain,
    /// It is read on.
    Resume(SourceIdentity, CommitPosition),
}

/// Compares the slot with what the relay remembers; changes nothing.
///
/// # Errors
/// Every state that cannot be resumed without losing something has a code of its own.
pub(crate) async fn examine(admin: &mut Wire, replication: &mut Wire, name: &str, database: &str, resume: &Resume) -> Result<Plan> {
    let found = find(admin, name).await?;
    let operation = "open slot";
    if let Some(slot) = found.as_ref().filter(|slot| slot.plugin != "pgoutput" || slot.database != database || slot.temporary) {
        let error = Error::new(&code::SLOT_FOREIGN, operation).with("slot", name).with("plugin", &slot.plugin);
        return Err(error.with("database", &slot.database).fix(drop_or_rename(name)));
    }
    match (resume, found) {
        (Resume::New | Resume::Interrupted, None) => Ok(Plan::Create),
        // A creation that was interrupted left a slot that nothing was decoded by: reading begins only once it is
        // remembered. Any other slot of this name was read by somebody else, or by us with another relay.
        (Resume::Interrupted, Some(slot)) if slot.transactions == 0 => Ok(Plan::CreateAgain),
        (Resume::New | Resume::Interrupted, Some(slot)) => {
            let confirmed = slot.confirmed.map_or_else(String::new, |lsn| lsn.to_string());
            let error = Error::new(&code::SOURCE_AHEAD_OF_RELAY, operation).with("slot", name).with("confirmed", confirmed);
            Err(error.with("relay", "empty").fix(format!(
                "another data_dir reads this slot: use that one, or if it is gone and its changes are not needed any more: {}",
                drop_or_rename(name)
            )))
        }
        (Resume::At { .. }, None) => Err(Error::new(&code::SLOT_MISSING, operation).with("slot", name)),
        (Resume::At { identity, durable }, Some(slot)) => {
            if slot.state == "lost" {
                return Err(Error::new(&code::SLOT_LOST, operation).with("slot", name));
            }
            same(replication, identity, *durable, database).await?;
            let confirmed = CommitPosition(slot.confirmed.unwrap_or_default());
            // A new slot counts as confirmed up to the point of its creation: nothing before it can be decoded.
            let created: CommitPosition = identity.epoch.parse().unwrap_or_default();
            if confirmed > created.max(*durable) {
                let error = Error::new(&code::SOURCE_AHEAD_OF_RELAY, operation).with("slot", name);
                return Err(error.with("confirmed", confirmed).with("relay", durable));
            }
            if confirmed < created {
                let error = Error::new(&code::SOURCE_IDENTITY, operation).with("slot", name).with("confirmed", confirmed);
                return Err(error.with("slot was created at", &identity.epoch));
            }
            Ok(Plan::Resume(identity.clone(), *durable))
        }
    }
}

/// Does what was planned. Gives the identity of the slot's positions and the position to read from.
///
/// # Errors
/// When the slot cannot be made.
pub(crate) async fn carry_out(
    plan: Plan,
    admin: &mut Wire,
    replication: &mut Wire,
    name: &str,
    database: &str,
) -> Result<(SourceIdentity, CommitPosition)> {
    match plan {
        Plan::Resume(identity, durable) => return Ok((identity, durable)),
        Plan::CreateAgain => remove(admin, name).await?,
        Plan::Create => {}
    }
    create(admin, replication, name, database).await
}

/// The fault where the server is not the one that the relay was filled from.
async fn same(replication: &mut Wire, known: &SourceIdentity, durable: CommitPosition, database: &str) -> Result<()> {
    let (found, head) = identity(replication, database, known.epoch.clone()).await?;
    let mut error = Error::new(&code::SOURCE_IDENTITY, "open slot");
    for (part, known, found) in [
        ("system", known.system.clone(), found.system.clone()),
        ("timeline", known.timeline.to_string(), found.timeline.to_string()),
        ("database", known.database.clone(), found.database.clone()),
    ] {
        if known != found {
            error = error.with(part, format!("{found} in place of {known}"));
        }
    }
    // Invariant 7: a position of another source is never "already applied" here.
    if *known != found {
        return Err(error);
    }
    if head < durable.0 {
        return Err(error.with("the server's log ends at", head).with("relay", durable));
    }
    Ok(())
}

async fn create(admin: &mut Wire, replication: &mut Wire, name: &str, database: &str) -> Result<(SourceIdentity, CommitPosition)> {
    let sql = format!("CREATE_REPLICATION_SLOT {} LOGICAL pgoutput (SNAPSHOT 'nothing')", tidegate_api::table::quote(name));
    let created = run_create(admin, replication, &sql, name).await?;
    let (identity, _) = identity(replication, database, created.consistent_point.to_string()).await?;
    Ok((identity, created.consistent_point))
}

/// The answer to `CREATE_REPLICATION_SLOT`.
pub(crate) struct Created {
    /// Every transaction that commits behind it is streamed, every earlier one is in the snapshot.
    pub(crate) consistent_point: CommitPosition,
    /// The name of the exported snapshot, where one was asked for.
    pub(crate) snapshot: String,
}

/// Creates a slot. That waits for every transaction that is open now: those are told.
pub(crate) async fn run_create(admin: &mut Wire, replication: &mut Wire, sql: &str, name: &str) -> Result<Created> {
    let operation = "create slot";
    let mut creation = std::pin::pin!(replication.try_query(sql, operation));
    let answer = loop {
        match tokio::time::timeout(PATIENCE, &mut creation).await {
            Ok(answer) => break answer?,
            Err(_) => tell_what_is_waited_for(admin, name).await,
        }
    };
    let rows = answer.map_err(|refusal| match refusal.state.as_str() {
        "53400" => Error::new(&code::SLOTS_EXHAUSTED, operation).with("slot", name).because(refusal.message),
        "42710" => Error::new(&code::SLOT_FOREIGN, operation).with("slot", name).because(refusal.message),
        "42501" => Error::new(&code::REPLICATION_RIGHT, operation).because(refusal.message),
        _ => refusal.into_error(Role::Source, operation).with("slot", name),
    })?;
    let row = rows.first().ok_or_else(|| Error::new(&code::PROTOCOL, operation))?;
    let consistent_point = text(row, 1).parse().map_err(|error| Error::new(&code::PROTOCOL, operation).because(error))?;
    Ok(Created { consistent_point, snapshot: text(row, 2).to_owned() })
}

async fn tell_what_is_waited_for(admin: &mut Wire, slot: &str) {
    let sql = "SELECT 'process ' || pid, extract(epoch FROM clock_timestamp() - xact_start)::bigint AS seconds, backend_xid,
            format('SELECT pg_terminate_backend(%s)', pid)
        FROM pg_catalog.pg_stat_activity WHERE backend_xid IS NOT NULL AND xact_start IS NOT NULL
        UNION ALL SELECT 'a prepared transaction', extract(epoch FROM clock_timestamp() - prepared)::bigint, transaction,
            format('ROLLBACK PREPARED %L, or COMMIT PREPARED %L', gid, gid) FROM pg_catalog.pg_prepared_xacts
        ORDER BY seconds DESC LIMIT 1";
    // A session that is lost here is met again by its next user.
    if let Ok(rows) = admin.query(sql, "read open transactions").await {
        for row in rows {
            let (holder, seconds, xid, fix) = (text(&row, 0), text(&row, 1), text(&row, 2), text(&row, 3));
            let code = &code::SNAPSHOT_WAITS;
            tracing::warn!(%code, slot, holder, xid, seconds, fix, "{}", code.summary);
        }
    }
}

/// Drops the slot where there is one; waits a moment for a reader that is about to leave.
///
/// # Errors
/// [`SLOT_IN_USE`](code::SLOT_IN_USE), transient, when somebody goes on reading it.
pub(crate) async fn remove(admin: &mut Wire, name: &str) -> Result<()> {
    let operation = "drop slot";
    let deadline = tokio::time::Instant::now() + LEAVE;
    let sql = format!("SELECT pg_catalog.pg_drop_replication_slot({})", literal(name));
    loop {
        match admin.try_query(&sql, operation).await? {
            Ok(_) => return Ok(()),
            Err(refusal) if refusal.state == "42704" => return Ok(()),
            Err(refusal) if refusal.state == "55006" && tokio::time::Instant::now() < deadline => tokio::time::sleep(POLL).await,
            Err(refusal) => return Err(of_start(refusal, name, operation)),
        }
    }
}

/// Starts to read the slot behind `position`; waits a moment for a reader that is about to leave.
///
/// # Errors
/// As [`of_start`] says.
pub(crate) async fn start(replication: &mut Wire, name: &str, publication: &str, position: CommitPosition) -> Result<()> {
    let operation = "start replication";
    let deadline = tokio::time::Instant::now() + LEAVE;
    let sql = format!(
        "START_REPLICATION SLOT {} LOGICAL {position} (proto_version '1', publication_names {}, messages 'false')",
        tidegate_api::table::quote(name),
        literal(&tidegate_api::table::quote(publication)),
    );
    loop {
        match replication.start_copy(&sql, operation).await? {
            Ok(()) => return Ok(()),
            Err(refusal) => {
                replication.until_ready(operation).await?;
                if refusal.state != "55006" || tokio::time::Instant::now() >= deadline {
                    return Err(of_start(refusal, name, operation));
                }
                tokio::time::sleep(POLL).await;
            }
        }
    }
}

/// What a refusal to read the slot means, at the start and in mid-stream.
pub(crate) fn of_start(refusal: Refusal, name: &str, operation: &'static str) -> Error {
    match refusal.state.as_str() {
        // "replication slot … is active for PID …".
        "55006" => Error::new(&code::SLOT_IN_USE, operation).with("slot", name).because(refusal.message).transient(),
        "42704" => Error::new(&code::SLOT_MISSING, operation).with("slot", name),
        // Invalidated, or its segments are removed.
        "55000" | "58P01" => Error::new(&code::SLOT_LOST, operation).with("slot", name).because(refusal.message),
        _ => refusal.into_error(Role::Source, operation).with("slot", name),
    }
}

fn drop_or_rename(name: &str) -> String {
    format!("SELECT pg_drop_replication_slot({}), or choose another slot name", literal(name))
}
