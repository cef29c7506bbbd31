//! What must hold before the first row: looked at by `doctor`, and by `run` at its start.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate_api::{BoxFuture, Error, Finding, Result, Severity, code};

use crate::config::Settings;
use crate::registry::{BuiltSource, Destinations};

/// A server that says nothing for so long is taken for unreachable.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// A look that is on its way.
type Looking<'a> = BoxFuture<'a, Result<Vec<Finding>>>;

/// What was found at one end.
pub(crate) struct Found {
    /// `source shop`, `destination of all`.
    pub(crate) subject: String,
    /// The findings, or why it could not be asked at all.
    pub(crate) outcome: Result<Vec<Finding>>,
}

impl Found {
    /// What cannot work, as errors.
    pub(crate) fn failures(self) -> Vec<Error> {
        match self.outcome {
            Err(error) => vec![error],
            Ok(findings) => findings.into_iter().filter(|finding| finding.severity == Severity::Failed).map(failure).collect(),
        }
    }
}

/// A failed finding as an error.
fn failure(finding: Finding) -> Error {
    let error =
        Error::new(finding.code.unwrap_or(&code::INTERNAL), "look before the start").with("what", finding.subject).because(finding.detail);
    match finding.fix {
        Some(fix) => error.fix(fix),
        None => error,
    }
}

/// Whether this may pass by itself, or at another process's hands, so that waiting for it makes sense.
pub(crate) fn may_pass(error: &Error) -> bool {
    const WAITING: &[&tidegate_api::Code] =
        &[&code::SOURCE_UNREACHABLE, &code::SLOT_IN_USE, &code::SNAPSHOT_WAITS, &code::DESTINATION_UNREACHABLE];
    error.is_transient() || WAITING.contains(&error.code())
}

/// Looks at every source and every destination, all at once.
pub(crate) async fn look(settings: &Settings, sources: impl Iterator<Item = &BuiltSource>, destinations: &Destinations) -> Vec<Found> {
    let mut looking: Vec<(String, bool, Looking<'_>)> = Vec::new();
    for source in sources {
        looking.push((format!("source {}", source.name), true, source.source.preflight(&source.tables)));
    }
    // Pipelines that share a destination share what is found there.
    let mut seen = BTreeMap::new();
    for (pipeline, destination) in destinations.all() {
        let address = settings.pipelines.get(pipeline).map(|pipeline| pipeline.destination.address());
        if seen.insert(address, ()).is_none() {
            looking.push((format!("destination of {pipeline}"), false, destination.preflight()));
        }
    }
    let looks = looking.into_iter().map(async |(subject, source, look)| {
        let outcome = tokio::time::timeout(MAX_WAIT, look).await.unwrap_or_else(|_| {
            let code = if source { &code::SOURCE_UNREACHABLE } else { &code::DESTINATION_UNREACHABLE };
            Err(Error::new(code, "look before the start").with("seconds", MAX_WAIT.as_secs()).transient())
        });
        Found { subject, outcome }
    });
    futures_util::future::join_all(looks).await
}
