//! `tidegate slots …`: through the daemon where one runs, else directly.

use hyper::Method;
use serde_json::{Value, json};
use tidegate_api::{Error, Result, code};
use tidegate_control::Store;
use tidegate_control::status::Source;

use crate::cli::Daemon;
use crate::client;
use crate::command::client::{confirm, decode, source_table};
use crate::config::{self, Config};
use crate::daemon::DataDir;
use crate::output::Answer;
use crate::registry::Sources;
use crate::suggest;

pub(crate) fn list(daemon: &Daemon) -> Result<Answer> {
    let data_dir = client::data_dir(daemon)?;
    match client::request(&data_dir, Method::GET, "/v1/slots") {
        Ok(envelope) => {
            let sources: Vec<Source> = decode(&envelope)?;
            Ok(Answer { envelope, text: source_table(&sources), exit: None })
        }
        Err(error) if stopped(&error, daemon) => {
            let config = config::load(&daemon.config)?;
            let sources = block_on(crate::daemon::source_states(&Sources::build(&config.settings)?))?;
            let result = serde_json::to_value(&sources).map_err(|error| Error::new(&code::INTERNAL, "encode answer").because(error))?;
            Ok(Answer::new("slots list", format!("{} sources", sources.len()), result, source_table(&sources)))
        }
        Err(error) => Err(error),
    }
}

pub(crate) fn drop(daemon: &Daemon, source: &str, yes: bool) -> Result<Answer> {
    confirm(yes, source, "this removes the source's slot: what its pipelines have not taken yet is lost to them")?;
    let data_dir = client::data_dir(daemon)?;
    if !source.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
        return Err(Error::new(&code::NO_SUCH_SOURCE, "find source").with("source", source));
    }
    match client::request(&data_dir, Method::DELETE, &format!("/v1/slots/{source}")) {
        Ok(envelope) => {
            let text = if envelope.ok { envelope.summary.clone() + "\n" } else { String::new() };
            Ok(Answer { envelope, text, exit: None })
        }
        Err(error) if stopped(&error, daemon) => drop_directly(&config::load(&daemon.config)?, source),
        Err(error) => Err(error),
    }
}

fn drop_directly(config: &Config, source: &str) -> Result<Answer> {
    let sources = Sources::build(&config.settings)?;
    let Some(found) = sources.get(source) else {
        let error = Error::new(&code::NO_SUCH_SOURCE, "find source").with("source", source);
        let near = suggest::nearest(source, sources.names());
        return Err(match near {
            Some(near) => error.fix(format!("did you mean `{near}`?")),
            None => error,
        });
    };
    // The lock keeps a daemon from starting meanwhile, and the audit log from having two writers.
    let data_dir = DataDir::lock(&config.settings.data_dir)?;
    let store = Store::open(data_dir.path())?;
    let actor = format!("uid {}", rustix::process::getuid().as_raw());
    let audit = store.audit(&actor, "slots drop", source)?;
    let outcome = block_on(found.remove()).and_then(|removed| removed);
    audit.finish(&outcome);
    outcome?;
    let summary = format!("what {source} held at its server is removed");
    Ok(Answer::new("slots drop", summary.clone(), json!({"source": source, "result": Value::Null}), summary + "\n"))
}

/// Whether there is no daemon, but a configuration that says what it would use.
fn stopped(error: &Error, daemon: &Daemon) -> bool {
    error.code() == &code::DAEMON_NOT_RUNNING && daemon.data_dir.is_none()
}

fn block_on<T>(future: impl Future<Output = T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Error::new(&code::INTERNAL, "start runtime").because(error))?;
    Ok(runtime.block_on(future))
}
