//! The schema and its tables: looked at, and made where they are missing.

use tidegate_api::table::quote;
use tidegate_api::{Error, Result, code};

use super::client::Session;
use super::error;
use super::format::FORMAT;

/// What is at the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Not even the schema.
    Nothing,
    /// The schema without our tables.
    Schema,
    /// Our tables.
    Ours,
}

/// Looks without changing anything.
///
/// # Errors
/// [`code::DESTINATION_FORMAT`] for a newer format, [`code::DESTINATION_UNUSABLE`] for tables of somebody else, another encoding
/// than UTF8, and a server that takes no writes.
pub(super) async fn look(session: &Session, schema: &str) -> Result<Found> {
    let unusable = |why: &'static str| Error::new(&code::DESTINATION_UNUSABLE, "provision").with("schema", schema).because(why);
    let row = session.ask(session.client.query_one(include_str!("../../queries/look.sql"), &[&schema])).await?;
    let is = |column: usize| row.try_get::<_, bool>(column).unwrap_or_default();
    let (there, metadata, others, read_only) = (is(0), is(1), is(2), is(4));
    if row.try_get::<_, &str>(3).ok() != Some("UTF8") {
        return Err(unusable("the database is not encoded in UTF8").fix("CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"));
    }
    if read_only {
        return Err(unusable("the server takes no writes").fix("use the primary's address").transient());
    }
    if metadata {
        let found = session.ask(session.client.query_opt("SELECT value FROM metadata WHERE name = 'format'", &[])).await?;
        let found: Option<String> = found.and_then(|row| row.try_get(0).ok());
        return match found {
            Some(found) if found.parse() == Ok(FORMAT) => Ok(Found::Ours),
            Some(found) => {
                Err(Error::new(&code::DESTINATION_FORMAT, "provision").with("schema", schema).with("found", found).with("known", FORMAT))
            }
            None => Err(unusable("the schema's tables are another application's").fix("name another schema")),
        };
    }
    if others {
        return Err(unusable("the schema's tables are another application's").fix("name another schema"));
    }
    Ok(if there { Found::Schema } else { Found::Nothing })
}

/// Expects our tables: whoever provisioned made them.
///
/// # Errors
/// As for [`look`], and when they are missing.
pub(super) async fn expect(session: &Session, schema: &str, operation: &'static str) -> Result<()> {
    match look(session, schema).await? {
        Found::Ours => Ok(()),
        Found::Nothing | Found::Schema => Err(error::missing(operation).with("schema", schema)),
    }
}

/// Makes what is missing, in a transaction of its own. Two that do so at once take turns.
///
/// # Errors
/// As for [`look`], and where the role may not create.
pub(super) async fn ensure(session: &Session, schema: &str) -> Result<()> {
    if look(session, schema).await? == Found::Ours {
        return Ok(());
    }
    session.ask(session.client.batch_execute("BEGIN; SET LOCAL synchronous_commit TO on")).await?;
    let claim = "SELECT pg_advisory_xact_lock(hashtextextended('tidegate ' || $1, 0))";
    session.ask(session.client.query(claim, &[&schema])).await?;
    create(session, schema).await?;
    session.commit().await
}

/// Makes what is missing in the open transaction.
pub(super) async fn create(session: &Session, schema: &str) -> Result<()> {
    let found = look(session, schema).await?;
    if found == Found::Nothing {
        let made = session.ask(session.client.batch_execute(&format!("CREATE SCHEMA {}", quote(schema)))).await;
        made.map_err(|error| match error.code() == &code::DESTINATION_UNUSABLE {
            true => error.fix(format!("CREATE SCHEMA {} AUTHORIZATION …, as a superuser", quote(schema))),
            false => error,
        })?;
    }
    if found != Found::Ours {
        session.ask(session.client.batch_execute(include_str!("../../queries/create.sql"))).await?;
    }
    Ok(())
}
