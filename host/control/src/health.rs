//! Is it alive, is it ready, has it started.

use serde::Serialize;

use crate::status::Status;

/// A verdict, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Everything works.
    Healthy,
    /// Nothing is wrong but that somebody (or poison) paused a pipeline, or that a server is away for now.
    Degraded,
    /// Something waits for the operator, or the daemon is not there yet or about to go.
    Unhealthy,
}

/// The verdict over a daemon, and what it rests on.
#[derive(Debug, Serialize)]
pub struct Health {
    /// The worst of the reasons.
    pub status: Verdict,
    /// Everything that is not well.
    pub reasons: Vec<Reason>,
}

/// One thing that is not well.
#[derive(Debug, Serialize)]
pub struct Reason {
    /// How bad it is.
    pub status: Verdict,
    /// `pipeline`, `source` or `daemon`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: String,
    /// The code of what is behind it, where there is one.
    pub code: Option<String>,
}

impl Health {
    /// The verdict over a status.
    pub fn of(status: &Status) -> Self {
        let mut reasons = Vec::new();
        let daemon = |state: &str| Reason {
            status: Verdict::Unhealthy,
            kind: "daemon",
            name: "tidegate".to_owned(),
            state: state.to_owned(),
            code: None,
        };
        if !status.started {
            reasons.push(daemon("starting"));
        }
        if status.stopping {
            reasons.push(daemon("stopping"));
        }
        for pipeline in &status.pipelines {
            let verdict = match pipeline.state.as_str() {
                "faulted" | "rebuilding" | "stopped" => Verdict::Unhealthy,
                "paused" => Verdict::Degraded,
                _ => continue,
            };
            let code = pipeline.error.as_ref().map(|error| error.code.clone());
            reasons.push(Reason { status: verdict, kind: "pipeline", name: pipeline.name.clone(), state: pipeline.state.clone(), code });
        }
        for source in &status.sources {
            let verdict = match source.state.as_str() {
                "faulted" | "stopped" => Verdict::Unhealthy,
                "waiting" => Verdict::Degraded,
                _ => continue,
            };
            let code = source.error.as_ref().map(|error| error.code.clone());
            reasons.push(Reason { status: verdict, kind: "source", name: source.name.clone(), state: source.state.clone(), code });
        }
        let status = reasons.iter().map(|reason| reason.status).max().unwrap_or(Verdict::Healthy);
        Self { status, reasons }
    }

    /// Whether work should be expected of the daemon: a pause alone does not make it unready.
    pub fn ready(&self) -> bool {
        self.status < Verdict::Unhealthy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{Pipeline, Source};

    fn status(pipeline: &str, source: &str) -> Status {
        Status {
            started: true,
            pipelines: vec![Pipeline { state: pipeline.to_owned(), ..Pipeline::default() }],
            sources: vec![Source { state: source.to_owned(), ..Source::default() }],
            ..Status::default()
        }
    }

    #[test]
    fn a_pause_is_degraded_and_a_fault_or_a_needed_rebuild_is_unhealthy() {
        for (pipeline, source, expected) in [
            ("running", "capturing", Verdict::Healthy),
            ("snapshotting", "capturing", Verdict::Healthy),
            ("paused", "capturing", Verdict::Degraded),
            ("running", "waiting", Verdict::Degraded),
            ("faulted", "capturing", Verdict::Unhealthy),
            ("rebuilding", "capturing", Verdict::Unhealthy),
            ("paused", "faulted", Verdict::Unhealthy),
        ] {
            assert_eq!(Health::of(&status(pipeline, source)).status, expected, "{pipeline}, {source}");
        }
        assert!(!Health::of(&Status { started: false, ..status("running", "capturing") }).ready());
        assert!(!Health::of(&Status { stopping: true, ..status("running", "capturing") }).ready());
    }
}
