//! The daemon's address, and one request to it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tidegate_api::{Error, Result, code};
use tidegate_control::Envelope;

use crate::cli::Daemon;
use crate::config;

/// An answer is at most this long (Invariant 11).
const MAX_ANSWER_BYTES: usize = 16 << 20;

/// A daemon that takes longer does not answer. A reset may have to wait for the server of the source.
const MAX_WAIT: Duration = Duration::from_secs(120);

/// The data_dir of the daemon that is meant.
pub(crate) fn data_dir(daemon: &Daemon) -> Result<PathBuf> {
    match &daemon.data_dir {
        Some(folder) => Ok(folder.clone()),
        None => config::data_dir(&daemon.config),
    }
}

/// Asks the daemon. A refusal is an answer, too: its envelope says why.
pub(crate) fn request(data_dir: &Path, method: Method, path: &str) -> Result<Envelope> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::new(&code::INTERNAL, "start runtime").because(error))?;
    runtime.block_on(async {
        match tokio::time::timeout(MAX_WAIT, exchange(data_dir, method, path)).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::new(&code::DAEMON_NOT_RUNNING, "wait for daemon").with("seconds", MAX_WAIT.as_secs())),
        }
    })
}

async fn exchange(data_dir: &Path, method: Method, path: &str) -> Result<Envelope> {
    let failed = |error: &dyn std::fmt::Display| Error::new(&code::DAEMON_NOT_RUNNING, "ask daemon").because(error.to_string());
    let stream = tidegate_control::connect(data_dir).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
    // It ends with the exchange; what went wrong in it, the request says.
    tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(hyper::header::HOST, "tidegate")
        .body(Empty::<Bytes>::new())
        .map_err(|error| failed(&error))?;
    let answer = sender.send_request(request).await.map_err(|error| failed(&error))?;
    let body = Limited::new(answer.into_body(), MAX_ANSWER_BYTES).collect().await.map_err(|error| failed(&error))?.to_bytes();
    serde_json::from_slice(&body).map_err(|error| failed(&error))
}
