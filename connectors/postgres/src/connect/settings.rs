//! The url of a server: `postgres://user:password@host:port/database?name=value`.
//!
//! Every part may be percent-encoded. A folder as host (`postgres:///db?host=/run/postgresql`, or
//! `postgres://%2Frun%2Fpostgresql/db`) means the unix socket in it. Parameters: `host port user password dbname sslmode
//! sslrootcert application_name connect_timeout`. sslmode is one of `disable prefer require verify-ca verify-full`, as
//! libpq has them: `prefer` (the default) and `require` encrypt without looking at the certificate, unless `sslrootcert`
//! is given beside `require`, which then means `verify-ca`. Without `sslrootcert`, or with `system`, the public web's
//! certificate authorities are trusted.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tidegate_api::{Error, Result};

use super::Role;

/// How much TLS is asked for, as libpq names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SslMode {
    /// None.
    Disable,
    /// Where the server offers it; the certificate is not looked at.
    Prefer,
    /// Always; the certificate is not looked at.
    Require,
    /// The certificate is issued by a trusted authority.
    VerifyCa,
    /// And for this host name.
    VerifyFull,
}

/// Where a server is and how to log in. `Debug` and `Display` never show the password.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: String,
    pub(crate) password: Option<String>,
    pub(crate) database: String,
    pub(crate) application_name: String,
    pub(crate) ssl_mode: SslMode,
    pub(crate) ssl_root_cert: Option<PathBuf>,
    pub(crate) connect_timeout: Duration,
}

impl Settings {
    /// Reads a url.
    ///
    /// # Errors
    /// A permanent setting error that names the part; it never shows the url, which may hold a password.
    pub(crate) fn parse(url: &str, role: Role) -> Result<Self> {
        let wrong = |part: &'static str, why: &str| {
            Error::new(role.setting(), "read url")
                .with("part", part)
                .because(why.to_owned())
                .fix("postgres://user:password@host:port/database")
        };
        let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"));
        let rest = rest.ok_or_else(|| wrong("scheme", "a url begins with postgres://"))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = place.split_once('/').unwrap_or((place, ""));
        let (login, address) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = login.split_once(':').map_or((login, None), |(user, password)| (user, Some(password)));
        let (host, port) = split_address(address).ok_or_else(|| wrong("host", "an ipv6 address stands in brackets"))?;
        if host.contains(',') {
            return Err(wrong("host", "one host only"));
        }
        let decode = |part: &'static str, text: &str| {
            let text = percent_decode_str(text).decode_utf8().map_err(|_| wrong(part, "not utf-8 behind its percent signs"))?;
            if text.contains('\0') { Err(wrong(part, "holds a zero byte")) } else { Ok(text.into_owned()) }
        };
        let number = |text: &str| text.parse().ok().filter(|port| *port > 0).ok_or_else(|| wrong("port", "a number from 1 to 65535"));
        let mut settings = Self {
            host: decode("host", host)?,
            port: if port.is_empty() { 5432 } else { number(port)? },
            user: decode("user", user)?,
            password: password.map(|text| decode("password", text)).transpose()?,
            database: decode("database", database)?,
            application_name: "tidegate".to_owned(),
            ssl_mode: SslMode::Prefer,
            ssl_root_cert: None,
            connect_timeout: Duration::from_secs(10),
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| wrong("parameter", "parameters have the form name=value"))?;
            let value = decode("parameter", value)?;
            match name {
                "host" => settings.host = value,
                "port" => settings.port = number(&value)?,
                "user" => settings.user = value,
                "password" => settings.password = Some(value),
                "dbname" => settings.database = value,
                "application_name" => settings.application_name = value,
                "sslrootcert" => settings.ssl_root_cert = (value != "system").then(|| value.into()),
                "sslmode" => {
                    settings.ssl_mode = match value.as_str() {
                        "disable" => SslMode::Disable,
                        "prefer" | "allow" => SslMode::Prefer,
                        "require" => SslMode::Require,
                        "verify-ca" => SslMode::VerifyCa,
                        "verify-full" => SslMode::VerifyFull,
                        _ => return Err(wrong("sslmode", "one of disable, prefer, require, verify-ca, verify-full")),
                    }
                }
                "connect_timeout" => {
                    let seconds = value.parse().ok().filter(|seconds| (1..=3600).contains(seconds));
                    let seconds = seconds.ok_or_else(|| wrong("connect_timeout", "whole seconds from 1 to 3600"))?;
                    settings.connect_timeout = Duration::from_secs(seconds);
                }
                _ => {
                    let known = "known are host, port, user, password, dbname, sslmode, sslrootcert, application_name, connect_timeout";
                    return Err(wrong("parameter", known).with("parameter", name));
                }
            }
        }
        if settings.host.is_empty() {
            settings.host = "localhost".to_owned();
        }
        if settings.user.is_empty() {
            return Err(wrong("user", "the user is missing"));
        }
        if settings.database.is_empty() {
            settings.database.clone_from(&settings.user);
        }
        Ok(settings)
    }

    /// The unix socket, where the host is a folder.
    pub(crate) fn unix_socket(&self) -> Option<PathBuf> {
        self.host.starts_with('/').then(|| PathBuf::from(format!("{}/.s.PGSQL.{}", self.host, self.port)))
    }

    /// TLS as it is done: never over a unix socket; a given authority is always asked.
    pub(crate) fn effective_ssl_mode(&self) -> SslMode {
        match self.ssl_mode {
            _ if self.host.starts_with('/') => SslMode::Disable,
            SslMode::Require if self.ssl_root_cert.is_some() => SslMode::VerifyCa,
            mode => mode,
        }
    }

    /// Host and port, for messages.
    pub(crate) fn place(&self) -> String {
        if self.host.contains(':') { format!("[{}]:{}", self.host, self.port) } else { format!("{}:{}", self.host, self.port) }
    }
}

/// Host and port; `None` for an address whose bracket is not closed.
fn split_address(address: &str) -> Option<(&str, &str)> {
    if let Some(rest) = address.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return Some((host, if rest.is_empty() { "" } else { rest.strip_prefix(':')? }));
    }
    Some(address.split_once(':').unwrap_or((address, "")))
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Invariant 12
        write!(f, "postgres://{}@{}/{}", self.user, self.place(), self.database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_part_by_part_and_percent_decoded() {
        let settings =
            Settings::parse("postgres://gu%40rd:p%40ss%2Fw%3Ard@db.example:6543/sh%20op?sslmode=verify-full", Role::Source).unwrap();
        assert_eq!((settings.user.as_str(), settings.password.as_deref()), ("gu@rd", Some("p@ss/w:rd")));
        assert_eq!((settings.host.as_str(), settings.port, settings.database.as_str()), ("db.example", 6543, "sh op"));
        assert_eq!(settings.ssl_mode, SslMode::VerifyFull);
        assert_eq!(format!("{settings:?}"), "postgres://gu@rd@db.example:6543/sh op");
    }

    #[test]
    fn a_folder_as_host_is_a_unix_socket_without_tls() {
        for url in ["postgres://u@/db?host=/run/pg&sslmode=require", "postgres://u@%2Frun%2Fpg/db"] {
            let settings = Settings::parse(url, Role::Source).unwrap();
            assert_eq!(settings.unix_socket(), Some("/run/pg/.s.PGSQL.5432".into()));
            assert_eq!(settings.effective_ssl_mode(), SslMode::Disable);
        }
    }

    #[test]
    fn what_libpq_leaves_out_has_its_usual_value() {
        let settings = Settings::parse("postgresql://u@[::1]", Role::Source).unwrap();
        assert_eq!((settings.place().as_str(), settings.database.as_str()), ("[::1]:5432", "u"));
        let settings = Settings::parse("postgres://u@h/?sslmode=require&sslrootcert=/ca.pem", Role::Source).unwrap();
        assert_eq!(settings.effective_ssl_mode(), SslMode::VerifyCa);
    }

    #[test]
    fn a_wrong_url_is_refused_without_showing_its_password() {
        for url in [
            "mysql://u:secret@h/db",
            "u:secret@h/db",
            "postgres://u:secret@h:99999/db",
            "postgres://u:secret@h:0/db",
            "postgres://u:secret@h/db?sslmode=off",
            "postgres://u:secret@h/db?sslmod=off",
            "postgres://u:secret@h/db?connect_timeout=soon",
            "postgres://u:secret@[::1/db",
            "postgres://u:secret@a,b/db",
            "postgres://u:secret%ff@h/db",
            "postgres://u:secret%00@h/db",
            "postgres://:secret@h/db",
        ] {
            let error = Settings::parse(url, Role::Source).unwrap_err();
            assert_eq!(error.code(), &tidegate_api::code::SOURCE_SETTING, "{url}");
            assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        }
    }
}
