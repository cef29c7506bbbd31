//! How both ends reach a server: the url, TLS, the pinned session, and what a refusal means.
//!
//! Every session of ours says at start-up how values are written, because a role's or database's own settings
//! (`ALTER ROLE … SET DateStyle …`) would change the text of documents otherwise.

pub(crate) mod failure;
pub(crate) mod settings;
pub(crate) mod socket;
pub(crate) mod tls;

use tidegate_api::{Code, Error, Result, code};
use tokio_postgres::Client;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres_rustls::MakeRustlsConnect;

pub(crate) use settings::{Settings, SslMode};

/// Which end a connection belongs to: it chooses the error codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Changes and snapshots are read from it.
    Source,
    /// Documents are written to it.
    Destination,
}

impl Role {
    /// It cannot be reached now.
    pub(crate) fn unreachable(self) -> &'static Code {
        match self {
            Self::Source => &code::SOURCE_UNREACHABLE,
            Self::Destination => &code::DESTINATION_UNREACHABLE,
        }
    }

    /// User, password or database are wrong.
    pub(crate) fn authentication(self) -> &'static Code {
        match self {
            Self::Source => &code::SOURCE_AUTHENTICATION,
            Self::Destination => &code::DESTINATION_AUTHENTICATION,
        }
    }

    /// No trusted TLS connection.
    pub(crate) fn tls(self) -> &'static Code {
        match self {
            Self::Source => &code::SOURCE_TLS,
            Self::Destination => &code::DESTINATION_UNUSABLE,
        }
    }

    /// The url or another setting is wrong.
    pub(crate) fn setting(self) -> &'static Code {
        match self {
            Self::Source => &code::SOURCE_SETTING,
            Self::Destination => &code::DESTINATION_SETTING,
        }
    }

    /// The server answered with an error.
    pub(crate) fn failed(self) -> &'static Code {
        match self {
            Self::Source => &code::SOURCE_FAILED,
            Self::Destination => &code::DESTINATION_FAILED,
        }
    }
}

/// What every session says at start-up.
pub(crate) const PINNED: &[(&str, &str)] = &[
    ("DateStyle", "ISO, MDY"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "UTC"),
    ("extra_float_digits", "1"),
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("lc_monetary", "C"),
    ("search_path", "\"$user\", public"),
    ("quote_all_identifiers", "off"),
    ("standard_conforming_strings", "on"),
    ("statement_timeout", "0"),
    ("lock_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    ("idle_session_timeout", "0"),
];

/// Opens an ordinary session; its driver runs on the current tokio runtime until the client is dropped.
///
/// `more` are further settings for the start of the session; they win over the pinned ones.
///
/// # Errors
/// Transient when the server is away, starting, stopping or full; permanent when it refuses the login or TLS does not fit.
pub(crate) async fn connect(settings: &Settings, role: Role, more: &[(&str, &str)]) -> Result<Client> {
    let timed = tokio::time::timeout(settings.connect_timeout, establish(settings, role, more)).await;
    timed.unwrap_or_else(|_| Err(unanswered(settings, role, "connect")))
}

/// The error for a server that takes a connection and then says nothing.
pub(crate) fn unanswered(settings: &Settings, role: Role, operation: &'static str) -> Error {
    let late = format!("no answer within {} s", settings.connect_timeout.as_secs());
    Error::new(role.unreachable(), operation).with("server", settings.place()).because(late).transient()
}

async fn establish(settings: &Settings, role: Role, more: &[(&str, &str)]) -> Result<Client> {
    let mut config = tokio_postgres::Config::new();
    config.user(&settings.user).dbname(&settings.database).application_name(&settings.application_name);
    if let Some(password) = &settings.password {
        config.password(password);
    }
    config.options(options(more));
    let socket = socket::connect(settings, role).await?;
    config.ssl_mode(match settings.effective_ssl_mode() {
        SslMode::Disable => tokio_postgres::config::SslMode::Disable,
        SslMode::Prefer => tokio_postgres::config::SslMode::Prefer,
        SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => tokio_postgres::config::SslMode::Require,
    });
    let mut maker = MakeRustlsConnect::new(tls::client_config(settings, role)?);
    let Ok(connector) = MakeTlsConnect::<socket::Socket>::make_tls_connect(&mut maker, &settings.host);
    let (client, connection) = config
        .connect_raw(socket, connector)
        .await
        .map_err(|error| failure::of_client(role, "connect", error).with("server", settings.place()))?;
    tokio::spawn(async move {
        // Whoever uses the client meets the same error.
        if let Err(error) = connection.await {
            tracing::debug!(%error, "postgres session ended");
        }
    });
    Ok(client)
}

/// The start-up parameter `options`: the pinned settings and these, which win.
fn options(more: &[(&str, &str)]) -> String {
    // The driver itself sends client_encoding.
    let pinned = PINNED.iter().filter(|(name, _)| *name != "client_encoding" && !more.iter().any(|(other, _)| other == name));
    pinned.chain(more).map(|(name, value)| option(name, value)).collect::<Vec<_>>().join(" ")
}

/// One `-c name=value` of the start-up parameter `options`, in which a backslash protects white space and itself.
fn option(name: &str, value: &str) -> String {
    let mut text = format!("-c {name}=");
    for character in value.chars() {
        if character.is_ascii_whitespace() || character == '\\' {
            text.push('\\');
        }
        text.push(character);
    }
    text
}
