//! What a server's refusal means: which code, and whether it may pass.

use tidegate_api::{Code, Error, code};

use super::Role;

/// What the server says about an error, without the parts that may quote values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The SQLSTATE.
    pub(crate) state: String,
    /// The primary message.
    pub(crate) message: String,
}

impl Refusal {
    /// The error for this refusal, met while doing `operation`.
    pub(crate) fn into_error(self, role: Role, operation: &'static str) -> Error {
        let (code, transient) = meaning(role, &self.state, &self.message);
        let error = Error::new(code, operation).with("sqlstate", &self.state);
        let error = if may_be_shown(&self.state) { error.because(self.message) } else { error };
        if transient { error.transient() } else { error }
    }
}

/// The code, and whether it may pass by itself.
fn meaning(role: Role, state: &str, message: &str) -> (&'static Code, bool) {
    match state {
        // Invalid authorization, and a database that does not exist.
        _ if state.starts_with("28") || state == "3D000" => (role.authentication(), false),
        // The names of settings are not translated.
        "53300" if role == Role::Source && message.contains("max_wal_senders") => (&code::WALSENDERS_EXHAUSTED, true),
        // Shutting down, crashed, starting up, dropped database excepted; connection exceptions; out of connections.
        "57P01" | "57P02" | "57P03" | "57P05" | "53300" => (role.unreachable(), true),
        // A protocol violation is a defect of one side: it comes again.
        "08P01" => (role.failed(), false),
        _ if state.starts_with("08") => (role.unreachable(), true),
        // Disk full, out of memory; serialization failure, deadlock, lock not available; system errors; cancelled by an operator.
        "53000" | "53100" | "53200" | "40001" | "40P01" | "40003" | "55P03" | "57014" | "58030" => (role.failed(), true),
        _ => (role.failed(), false),
    }
}

/// Messages of these classes name objects, settings and rights; those of others (invalid text, constraint violations,
/// what a user's function raises) may quote a value of a row (Invariant 12).
fn may_be_shown(state: &str) -> bool {
    const CLASSES: &[&str] = &["08", "0A", "25", "28", "3D", "3F", "40", "42", "53", "54", "55", "57", "58", "XX"];
    CLASSES.iter().any(|class| state.starts_with(class))
}

/// The error for what tokio-postgres reports.
pub(crate) fn of_client(role: Role, operation: &'static str, error: tokio_postgres::Error) -> Error {
    if let Some(refusal) = error.as_db_error() {
        return Refusal { state: refusal.code().code().to_owned(), message: refusal.message().to_owned() }.into_error(role, operation);
    }
    // The crate's kinds are private; their texts are fixed and hold no value.
    let text = error.to_string();
    let closed = error.is_closed();
    let cause = error.into_source();
    let io = cause.as_ref().and_then(|cause| cause.downcast_ref::<std::io::Error>());
    // rustls reports what it does not trust as invalid data; every other kind is a connection that broke.
    let lost = closed || io.is_some_and(|error| error.kind() != std::io::ErrorKind::InvalidData);
    let code = if lost {
        role.unreachable()
    } else if text.starts_with("error performing TLS handshake") {
        role.tls()
    } else if text.starts_with("authentication error") || text.starts_with("invalid configuration") {
        role.authentication()
    } else {
        role.failed()
    };
    let told = Error::new(code, operation);
    let told = match cause {
        Some(cause) if code != role.failed() => told.because(cause),
        _ => told.because(text),
    };
    if lost { told.transient() } else { told }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_transient_and_a_protocol_violation_is_not() {
        let transient = |state: &str| meaning(Role::Destination, state, "").1;
        for state in ["08000", "08006", "40001", "40P01", "53100", "53200", "53300", "55P03", "57P01", "57P02", "57P03", "58030"] {
            assert!(transient(state), "{state}");
        }
        for state in ["08P01", "22001", "23505", "28P01", "3D000", "42501", "42P01", "XX000"] {
            assert!(!transient(state), "{state}");
        }
    }
}
