//! Settings.

use std::fmt;

use tidegate_api::{Error, Result, code};

use crate::connect::{Role, Settings};

/// The longest name that PostgreSQL does not cut.
const MAX_NAME_BYTES: usize = 63;

/// Settings of a PostgreSQL destination. `Debug` shows no password.
#[derive(Clone)]
pub struct Config {
    /// `postgres://user:password@host:port/database`; its parts are those of libpq.
    pub url: String,
    /// The schema of the tables; created at the first provisioning where it is missing.
    pub schema: String,
}

impl Config {
    /// Looks at the settings alone, without reaching the server.
    ///
    /// # Errors
    /// [`code::DESTINATION_SETTING`] for a wrong url or schema name.
    pub fn validate(&self) -> Result<()> {
        Settings::parse(&self.url, Role::Destination)?;
        let why = match self.schema.as_str() {
            "" => "the name is empty",
            name if name.len() > MAX_NAME_BYTES => "a name has at most 63 bytes",
            name if name.contains('\0') => "the name holds a zero character",
            name if name.starts_with("pg_") || name == "information_schema" => "the name belongs to the server",
            _ => return Ok(()),
        };
        Err(Error::new(&code::DESTINATION_SETTING, "read settings").with("schema", self.schema.escape_debug()).because(why))
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = Settings::parse(&self.url, Role::Destination).map_or_else(|_| "(unreadable)".to_owned(), |url| format!("{url:?}"));
        f.debug_struct("Config").field("url", &url).field("schema", &self.schema).finish()
    }
}
