//! Addresses → acts. Every act is in the audit log before it happens.

use std::sync::Arc;

use axum::extract::{ConnectInfo, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde::Serialize;
use serde_json::Value;
use tidegate_api::{Class, Error, Result, code};

use crate::server::Peer;
use crate::status::{Pipeline, Status};
use crate::{Act, Envelope, Health, Host, Metrics, Store};

struct Control {
    host: Arc<dyn Host>,
    store: Arc<Store>,
    metrics: Metrics,
}

/// The router of a daemon.
///
/// # Errors
/// When the metrics cannot be set up.
pub fn router(host: Arc<dyn Host>, store: Arc<Store>) -> Result<Router> {
    let metrics = Metrics::new(&host)?;
    let control = Arc::new(Control { host, store, metrics });
    Ok(Router::new()
        .route("/v1/status", get(status))
        .route("/v1/pipelines", get(pipelines))
        .route("/v1/pipelines/{name}", delete(remove))
        .route("/v1/pipelines/{name}/{act}", post(act))
        .route("/v1/slots", get(slots))
        .route("/v1/slots/{source}", delete(drop_slot))
        .route("/livez", get(async || "alive\n"))
        .route("/readyz", get(readyz))
        .route("/startupz", get(startupz))
        .route("/metrics", get(metrics_text))
        .fallback(async || answer("request", Err::<(String, ()), _>(no_such_address())))
        .with_state(control))
}

type Answer = Result<(String, Value)>;

async fn status(State(control): State<Arc<Control>>) -> Response {
    let status = control.host.status();
    answer("status", Ok((summary(&status), status)))
}

async fn pipelines(State(control): State<Arc<Control>>) -> Response {
    let status = control.host.status();
    answer("pipeline list", Ok((summary(&status), status.pipelines)))
}

async fn act(
    State(control): State<Arc<Control>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Path((name, word)): Path<(String, String)>,
) -> Response {
    let Some(act) = [Act::Pause, Act::Resume, Act::Reset].into_iter().find(|act| act.word() == word) else {
        return answer("request", Err::<(String, ()), _>(no_such_address()));
    };
    // Behind a closed connection the act must still come to its end, and to its outcome in the audit log.
    let done = tokio::spawn(async move {
        find(&control.host.status(), &name)?;
        let audit = control.store.audit(&peer.to_string(), &format!("pipeline {act}"), &name)?;
        let outcome = control.host.act(&name, act).await;
        audit.finish(&outcome);
        outcome?;
        let pipeline = find(&control.host.status(), &name)?;
        Ok((format!("{name} is {}", pipeline.state), pipeline))
    });
    answer(&format!("pipeline {word}"), finished(done.await))
}

async fn remove(State(control): State<Arc<Control>>, ConnectInfo(peer): ConnectInfo<Peer>, Path(name): Path<String>) -> Response {
    let done = tokio::spawn(async move {
        let status = control.host.status();
        if !status.removed.iter().any(|removed| removed.name == name) {
            find(&status, &name)?;
        }
        let audit = control.store.audit(&peer.to_string(), "pipeline remove", &name)?;
        let outcome = control.host.remove(&name).await;
        audit.finish(&outcome);
        outcome?;
        Ok((format!("nothing is held for {name} any more"), Value::Null))
    });
    answer("pipeline remove", finished(done.await))
}

async fn slots(State(control): State<Arc<Control>>) -> Response {
    let sources = control.host.slots().await;
    answer("slots list", Ok((format!("{} sources", sources.len()), sources)))
}

async fn drop_slot(State(control): State<Arc<Control>>, ConnectInfo(peer): ConnectInfo<Peer>, Path(source): Path<String>) -> Response {
    let done = tokio::spawn(async move {
        if !control.host.status().sources.iter().any(|known| known.name == source) {
            return Err(Error::new(&code::NO_SUCH_SOURCE, "find source").with("source", &source));
        }
        let audit = control.store.audit(&peer.to_string(), "slots drop", &source)?;
        let outcome = control.host.drop_slot(&source).await;
        audit.finish(&outcome);
        outcome?;
        Ok((format!("what {source} held at its server is removed"), Value::Null))
    });
    answer("slots drop", finished(done.await))
}

async fn readyz(State(control): State<Arc<Control>>) -> Response {
    let health = Health::of(&control.host.status());
    let code = if health.ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(health)).into_response()
}

async fn startupz(State(control): State<Arc<Control>>) -> Response {
    if control.host.status().started {
        (StatusCode::OK, "started\n").into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "starting\n").into_response()
    }
}

async fn metrics_text(State(control): State<Arc<Control>>) -> Response {
    match control.metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response(),
        Err(error) => answer("metrics", Err::<(String, ()), _>(error)),
    }
}

fn find(status: &Status, name: &str) -> Result<Pipeline> {
    let found = status.pipelines.iter().find(|pipeline| pipeline.name == name).cloned();
    found.ok_or_else(|| Error::new(&code::NO_SUCH_PIPELINE, "find pipeline").with("pipeline", name))
}

fn no_such_address() -> Error {
    Error::new(&code::DAEMON_REFUSED, "answer request").because("there is nothing at this address")
}

/// What came of a task that was given a life of its own.
fn finished<T>(done: std::result::Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    done.unwrap_or_else(|error| Err(Error::new(&code::INTERNAL, "act").because(error.to_string())))
}

fn summary(status: &Status) -> String {
    let mut states: Vec<(&str, usize)> = Vec::new();
    for pipeline in &status.pipelines {
        match states.iter_mut().find(|(state, _)| *state == pipeline.state) {
            Some((_, count)) => *count += 1,
            None => states.push((&pipeline.state, 1)),
        }
    }
    let counted: Vec<String> = states.iter().map(|(state, count)| format!("{count} {state}")).collect();
    format!("{} pipelines: {}", status.pipelines.len(), counted.join(", "))
}

fn answer<T: Serialize>(command: &str, outcome: Result<(String, T)>) -> Response {
    let encoded: Answer = outcome.and_then(|(summary, result)| {
        let value = serde_json::to_value(result).map_err(|error| Error::new(&code::INTERNAL, "encode answer").because(error))?;
        Ok((summary, value))
    });
    match encoded {
        Ok((summary, result)) => Json(Envelope::success(command, summary, result)).into_response(),
        Err(error) => {
            let status = match (error.code().class, error.code() == &code::NO_SUCH_PIPELINE || error.code() == &code::NO_SUCH_SOURCE) {
                (_, true) => StatusCode::NOT_FOUND,
                (Class::Invalid, _) => StatusCode::BAD_REQUEST,
                (Class::Environment, _) => StatusCode::SERVICE_UNAVAILABLE,
                (Class::Runtime, _) => StatusCode::CONFLICT,
            };
            (status, Json(Envelope::failure(command, &error))).into_response()
        }
    }
}
