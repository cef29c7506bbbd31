//! Whether the destination can be used, without leaving anything behind.

use tidegate_api::{Finding, Result};

use super::client::Session;
use super::setup::{self, Found};
use crate::connect::Settings;

/// Looks at the server and, in a transaction that is rolled back, makes and writes what a pipeline would.
///
/// # Errors
/// When the server cannot be reached or refuses the login.
pub(super) async fn look(settings: &Settings, schema: &str) -> Result<Vec<Finding>> {
    let session = Session::open(settings, schema, "preflight").await?;
    let subject = format!("postgres schema {schema} at {}", settings.place());
    let finding = match writable(&session, schema).await {
        Ok(Found::Ours) => Finding::passed(subject, "writable"),
        Ok(Found::Schema) => Finding::passed(subject, "writable, its tables will be created"),
        Ok(Found::Nothing) => Finding::passed(subject, "will be created"),
        Err(error) if error.code() == &tidegate_api::code::DESTINATION_UNREACHABLE => return Err(error),
        Err(error) => Finding::failed(error.code(), subject, error.message(), error.advice()),
    };
    Ok(vec![finding])
}

async fn writable(session: &Session, schema: &str) -> Result<Found> {
    let found = setup::look(session, schema).await?;
    session.ask(session.client.batch_execute("BEGIN")).await?;
    setup::create(session, schema).await?;
    session.ask(session.client.batch_execute(include_str!("../../queries/probe.sql"))).await?;
    session.ask(session.client.batch_execute("ROLLBACK")).await?;
    Ok(found)
}
