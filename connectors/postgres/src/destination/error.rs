//! What a refusal of the server means here, beyond what it means at both ends.

use tidegate_api::{Error, code};
use tokio_postgres::error::SqlState;

use crate::connect::{Role, failure};

/// The error for what tokio-postgres reports while doing `operation`.
pub(super) fn of_client(operation: &'static str, error: tokio_postgres::Error) -> Error {
    let unusable = |why: &'static str| Error::new(&code::DESTINATION_UNUSABLE, operation).because(why);
    let state = error.code().cloned();
    match state.as_ref() {
        Some(&(SqlState::UNDEFINED_TABLE | SqlState::INVALID_SCHEMA_NAME)) => missing(operation),
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            let message = error.as_db_error().map(|refusal| refusal.message().to_owned()).unwrap_or_default();
            Error::new(&code::DESTINATION_UNUSABLE, operation)
                .because(message)
                .fix("GRANT USAGE, CREATE ON SCHEMA … TO …; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA … TO …")
        }
        // A standby, or a server that somebody protects for a while.
        Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => unusable("the server takes no writes").fix("use the primary's address").transient(),
        Some(&(SqlState::UNTRANSLATABLE_CHARACTER | SqlState::CHARACTER_NOT_IN_REPERTOIRE)) => {
            Error::new(&code::DESTINATION_CONTENT, operation).because("the database's encoding lacks a character")
        }
        Some(&(SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT | SqlState::OBJECT_IN_USE | SqlState::CONFIGURATION_LIMIT_EXCEEDED)) => {
            failure::of_client(Role::Destination, operation, error).transient()
        }
        _ => failure::of_client(Role::Destination, operation, error),
    }
}

/// The error for tables that are not there.
pub(super) fn missing(operation: &'static str) -> Error {
    let dropped = "the tables are missing: they were dropped";
    Error::new(&code::DESTINATION_UNUSABLE, operation).because(dropped).fix("put them back, or `tidegate pipeline reset`")
}

/// The error for a server that does not answer in time.
pub(super) fn silent(operation: &'static str, seconds: u64) -> Error {
    Error::new(&code::DESTINATION_UNREACHABLE, operation).because(format!("no answer within {seconds} s")).transient()
}
