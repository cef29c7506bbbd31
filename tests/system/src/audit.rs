//! A log of every write to the destination's documents, kept by its own triggers: what a comparison at the end cannot see.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;

use crate::target::{Target, sqlite_rows};

const POSTGRES: &str = "
CREATE SCHEMA audit;
CREATE TABLE audit.log (no bigserial PRIMARY KEY, txid xid8 DEFAULT pg_current_xact_id(), op text, collection text, key text, version bigint, tx_no bigint);
CREATE FUNCTION audit.text_of(document anyelement) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  IF pg_typeof(document) = 'bytea'::regtype THEN RETURN convert_from(document::text::bytea, 'UTF8'); END IF;
  RETURN document::text;
END $$;
CREATE FUNCTION audit.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE document text;
BEGIN
  IF TG_OP = 'DELETE' THEN
    INSERT INTO audit.log (op, collection, key) VALUES ('delete', OLD.collection, OLD.key);
  ELSE
    document := audit.text_of(NEW.document);
    INSERT INTO audit.log (op, collection, key, version, tx_no) VALUES ('write', NEW.collection, NEW.key,
      substring(document FROM '\"version\":([0-9]+)')::bigint, substring(document FROM '\"tx_no\":([0-9]+)')::bigint);
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION audit.attach() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
  IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity = 'tidegate.documents' AND command_tag LIKE 'CREATE TABLE%') THEN
    CREATE TRIGGER audit_rows AFTER INSERT OR UPDATE OR DELETE ON tidegate.documents FOR EACH ROW EXECUTE FUNCTION audit.note();
  END IF;
END $$;
CREATE EVENT TRIGGER audit_attach ON ddl_command_end EXECUTE FUNCTION audit.attach();
";

const SQLITE: &str = "
CREATE TABLE audit_log (no INTEGER PRIMARY KEY, txid TEXT, op TEXT, collection TEXT, key TEXT, version INTEGER, tx_no INTEGER);
CREATE INDEX audit_log_open ON audit_log (no) WHERE txid IS NULL;
CREATE TRIGGER audit_checkpoint AFTER INSERT ON pipelines BEGIN
  UPDATE audit_log SET txid = NEW.checkpoint WHERE txid IS NULL;
END;
CREATE TRIGGER audit_insert AFTER INSERT ON documents BEGIN
  INSERT INTO audit_log (op, collection, key, version, tx_no) VALUES ('write', NEW.collection, NEW.key,
    json_extract(CAST(NEW.document AS TEXT), '$.version'), json_extract(CAST(NEW.document AS TEXT), '$.tx_no'));
END;
CREATE TRIGGER audit_update AFTER UPDATE ON documents BEGIN
  INSERT INTO audit_log (op, collection, key, version, tx_no) VALUES ('write', NEW.collection, NEW.key,
    json_extract(CAST(NEW.document AS TEXT), '$.version'), json_extract(CAST(NEW.document AS TEXT), '$.tx_no'));
END;
CREATE TRIGGER audit_delete AFTER DELETE ON documents BEGIN
  INSERT INTO audit_log (op, collection, key) VALUES ('delete', OLD.collection, OLD.key);
END;
";

/// One write, in the order of the log.
#[derive(Clone, Debug)]
struct Entry {
    /// The destination's own transaction; for SQLite, which does not tell, the checkpoint that was stored with it.
    transaction: Option<String>,
    delete: bool,
    collection: String,
    key: String,
    version: Option<i64>,
    tx_no: Option<i64>,
}

/// Makes the destination log every write from now on. A PostgreSQL database may still be empty; a SQLite file must have the
/// daemon's tables, and the daemon must not run.
///
/// # Panics
/// When the triggers cannot be made.
pub async fn attach(target: &Target) {
    match target {
        Target::Postgres(server, database) => server.execute(database, POSTGRES).await,
        Target::Sqlite(path) => {
            let connection = Connection::open(path).expect("the destination can be opened");
            connection.execute_batch(SQLITE).expect("the destination has its documents table");
        }
    }
}

/// Checks that every transaction after `first` was applied once and whole, and that no key went back.
///
/// # Panics
/// When it was not.
pub async fn check(target: &Target, first: i64) {
    let log = entries(target).await;
    assert!(!log.is_empty(), "nothing was logged: does the destination write to another table?");
    every_ledger_row_is_written_once(&log, first);
    versions_only_grow(&log);
    transactions_are_whole(&log, first);
}

/// A key that a delete of the source removed never comes back. Not for a transform that drops: a dropped row may return.
///
/// # Panics
/// When one came back.
pub async fn check_deleted_keys_stay_away(target: &Target, first: i64) {
    let mut deleted = BTreeSet::new();
    for entry in entries(target).await.into_iter().filter(|entry| entry.collection == "shop.orders") {
        if entry.delete {
            deleted.insert(entry.key);
        } else if entry.tx_no > Some(first) {
            assert!(!deleted.contains(&entry.key), "order {} was deleted and came back", entry.key);
        }
    }
}

fn every_ledger_row_is_written_once(log: &[Entry], first: i64) {
    let mut times: BTreeMap<i64, u32> = BTreeMap::new();
    for number in log.iter().filter(|entry| entry.collection == "shop.ledger" && !entry.delete).filter_map(|entry| entry.tx_no) {
        *times.entry(number).or_default() += 1;
    }
    let twice: Vec<_> = times.iter().filter(|(number, times)| **number > first && **times > 1).take(5).collect();
    assert!(twice.is_empty(), "source transactions that were applied more than once (number, times): {twice:?}");
}

fn versions_only_grow(log: &[Entry]) {
    let mut versions: BTreeMap<&str, i64> = BTreeMap::new();
    for entry in log.iter().filter(|entry| entry.collection == "shop.orders") {
        if let Some(version) = entry.version {
            let before = versions.insert(&entry.key, version);
            assert!(before <= Some(version), "order {} went back from version {before:?} to {version}", entry.key);
        }
    }
}

fn transactions_are_whole(log: &[Entry], first: i64) {
    let mut places: BTreeMap<i64, BTreeSet<&str>> = BTreeMap::new();
    for entry in log.iter().filter(|entry| entry.collection != "shop.side") {
        if let (Some(number), Some(transaction)) = (entry.tx_no.filter(|number| *number > first), &entry.transaction) {
            places.entry(number).or_default().insert(transaction);
        }
    }
    let torn: Vec<_> = places.iter().filter(|(_, places)| places.len() > 1).take(5).collect();
    assert!(torn.is_empty(), "source transactions in more than one transaction of the destination: {torn:?}");
}

async fn entries(target: &Target) -> Vec<Entry> {
    let query = |log| format!("SELECT txid, op, collection, key, version, tx_no FROM {log} ORDER BY no");
    let rows = match target {
        Target::Postgres(server, database) => server.rows(database, &query("audit.log")).await,
        Target::Sqlite(path) => {
            let connection = Connection::open(path).expect("the destination can be opened");
            sqlite_rows(&connection, &query("audit_log")).expect("the log can be read")
        }
    };
    let entry = |row: Vec<Option<String>>| {
        let mut values = row.into_iter();
        let mut next = || values.next().flatten();
        Entry {
            transaction: next(),
            delete: next().as_deref() == Some("delete"),
            collection: next().unwrap_or_default(),
            key: next().unwrap_or_default(),
            version: next().and_then(|text| text.parse().ok()),
            tx_no: next().and_then(|text| text.parse().ok()),
        }
    };
    rows.into_iter().map(entry).collect()
}
