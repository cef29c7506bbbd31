//! `tidegate doctor`: everything that must hold before `run`, found without changing anything.

use std::path::Path;

use serde_json::{Value, json};
use tidegate_api::{Class, Error, Finding, Result, Severity, code};
use tidegate_control::Failure;

use crate::config;
use crate::daemon::{self, Found};
use crate::output::Answer;
use crate::program;
use crate::registry::{Destinations, Sources};

pub(crate) fn run(file: &Path) -> Result<Answer> {
    let config = config::load(file)?;
    for path in config.settings.pipelines.values().flat_map(|pipeline| &pipeline.transform).filter_map(|stage| stage.program.as_deref()) {
        program::load(path)?;
    }
    let sources = Sources::build(&config.settings)?;
    let destinations = Destinations::build(&config.settings)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Error::new(&code::INTERNAL, "start runtime").because(error))?;
    let found = runtime.block_on(daemon::look(&config.settings, sources.all(), &destinations));
    Ok(report(found))
}

fn report(found: Vec<Found>) -> Answer {
    let mut text = String::new();
    let mut shown: Vec<Value> = Vec::new();
    let (mut failed, mut warnings) = (0, 0);
    let mut first: Option<Failure> = None;
    for end in found {
        text.push_str(&format!("{}\n", end.subject));
        let findings = match end.outcome {
            Ok(findings) => findings,
            Err(error) => vec![Finding::failed(error.code(), "reachable", error.message(), error.advice())],
        };
        for finding in findings {
            let (mark, word) = match finding.severity {
                Severity::Passed => ("ok  ", "passed"),
                Severity::Warning => ("warn", "warning"),
                Severity::Failed => ("FAIL", "failed"),
            };
            failed += usize::from(finding.severity == Severity::Failed);
            warnings += usize::from(finding.severity == Severity::Warning);
            let code = finding.code.map(ToString::to_string);
            let shown_code = code.as_ref().map_or_else(String::new, |code| format!("{code} "));
            text.push_str(&format!("  {mark} {shown_code}{}: {}\n", finding.subject, finding.detail));
            if let Some(fix) = &finding.fix {
                text.push_str(&format!("       fix: {fix}\n"));
            }
            if finding.severity == Severity::Failed && first.is_none() {
                first = Some(Failure {
                    code: code.clone().unwrap_or_else(|| code::INTERNAL.to_string()),
                    message: format!("{}: {}: {}", end.subject, finding.subject, finding.detail),
                    fix: finding.fix.clone().unwrap_or_default(),
                    path: None,
                });
            }
            shown.push(json!({
                "end": end.subject, "severity": word, "subject": finding.subject, "detail": finding.detail,
                "code": code, "fix": finding.fix,
            }));
        }
    }
    let summary = format!("{failed} failed, {warnings} warnings");
    text.push_str(&format!("{summary}\n"));
    let mut answer = Answer::new("doctor", summary, json!({"findings": shown, "failed": failed, "warnings": warnings}), text);
    answer.envelope.ok = first.is_none();
    answer.envelope.error = first;
    answer.exit = Some(Class::Environment.exit_code());
    answer
}
