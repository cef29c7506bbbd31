//! `tidegate status` and `tidegate pipeline …`: clients of the running daemon.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use hyper::Method;
use serde::de::DeserializeOwned;
use tidegate_api::{Error, Result, code};
use tidegate_control::Envelope;
use tidegate_control::status::{Pipeline, Removed, Source, Status};

use crate::cli::{Daemon, Named};
use crate::client;
use crate::output::{Answer, table};
use crate::suggest;

pub(crate) fn status(daemon: &Daemon) -> Result<Answer> {
    let envelope = client::request(&client::data_dir(daemon)?, Method::GET, "/v1/status")?;
    let status: Status = decode(&envelope)?;
    let mut text = String::new();
    if !status.started {
        text.push_str("the daemon is starting: it looks at sources and destinations\n\n");
    }
    text.push_str(&pipeline_table(&status.pipelines));
    text.push('\n');
    text.push_str(&source_table(&status.sources));
    text.push_str(&notes(&status));
    Ok(Answer { envelope, text, exit: None })
}

pub(crate) fn pipelines(daemon: &Daemon) -> Result<Answer> {
    let envelope = client::request(&client::data_dir(daemon)?, Method::GET, "/v1/pipelines")?;
    let pipelines: Vec<Pipeline> = decode(&envelope)?;
    Ok(Answer { envelope, text: pipeline_table(&pipelines), exit: None })
}

/// Pause or resume.
pub(crate) fn act(named: &Named, act: &str) -> Result<Answer> {
    ask(named, Method::POST, &format!("/{act}"))
}

pub(crate) fn reset(named: &Named, yes: bool) -> Result<Answer> {
    confirm(yes, &named.name, "this empties the pipeline's documents at the destination and fills them anew from a snapshot")?;
    act(named, "reset")
}

pub(crate) fn remove(named: &Named, yes: bool) -> Result<Answer> {
    confirm(yes, &named.name, "this lets go of what the relay holds for the pipeline; its documents at the destination stay")?;
    ask(named, Method::DELETE, "")
}

fn ask(named: &Named, method: Method, act: &str) -> Result<Answer> {
    let data_dir = client::data_dir(&named.daemon)?;
    let no_such = || Error::new(&code::NO_SUCH_PIPELINE, "find pipeline").with("pipeline", &named.name);
    if !named.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
        return Err(no_such());
    }
    let envelope = client::request(&data_dir, method, &format!("/v1/pipelines/{}{act}", named.name))?;
    if envelope.error.as_ref().and_then(tidegate_control::Failure::known_code) == Some(&code::NO_SUCH_PIPELINE) {
        let status: Status = decode(&client::request(&data_dir, Method::GET, "/v1/status")?)?;
        let pipelines = status.pipelines.iter().map(|pipeline| pipeline.name.as_str());
        let known = pipelines.chain(status.removed.iter().map(|removed| removed.name.as_str()));
        return Err(match suggest::nearest(&named.name, known) {
            Some(near) => no_such().fix(format!("did you mean `{near}`? `tidegate status` shows the names")),
            None => no_such(),
        });
    }
    let text = if envelope.ok { envelope.summary.clone() + "\n" } else { String::new() };
    Ok(Answer { envelope, text, exit: None })
}

/// On a terminal the name must be typed; elsewhere nobody is there to ask.
pub(crate) fn confirm(yes: bool, name: &str, what: &str) -> Result<()> {
    if yes || !std::io::stdin().is_terminal() {
        return Ok(());
    }
    eprint!("{what}.\ntype {name} to go on: ");
    let _ = std::io::stderr().flush();
    let mut typed = String::new();
    let read = std::io::stdin().lock().read_line(&mut typed);
    match read {
        Ok(_) if typed.trim() == name => Ok(()),
        _ => Err(Error::new(&code::USAGE, "confirm").because("not confirmed: nothing was changed").fix("type the name, or give --yes")),
    }
}

/// The result of an answer.
pub(crate) fn decode<T: DeserializeOwned + Default>(envelope: &Envelope) -> Result<T> {
    if !envelope.ok {
        return Ok(T::default());
    }
    serde_json::from_value(envelope.result.clone())
        .map_err(|error| Error::new(&code::DAEMON_REFUSED, "read answer").because(error).fix("use the release that the daemon runs"))
}

fn pipeline_table(pipelines: &[Pipeline]) -> String {
    let rows: Vec<Vec<String>> = pipelines
        .iter()
        .map(|pipeline| {
            let seconds = format!("{:.1} s", pipeline.lag_seconds);
            let position = pipeline.position.clone().unwrap_or_else(|| "-".to_owned());
            let code = pipeline.error.as_ref().map_or_else(|| "-".to_owned(), |error| error.code.clone());
            let (rows, transactions) = ((pipeline.rows + pipeline.snapshot_rows).to_string(), pipeline.transactions.to_string());
            let bytes = format!("{} B", pipeline.lag_bytes);
            vec![pipeline.name.clone(), pipeline.state.clone(), position, bytes, seconds, rows, transactions, code]
        })
        .collect();
    table(&["PIPELINE", "STATE", "POSITION", "LAG", "LAG", "ROWS", "TRANSACTIONS", "CODE"], &rows)
}

pub(crate) fn source_table(sources: &[Source]) -> String {
    let bytes = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |bytes| format!("{bytes} B"));
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let rows: Vec<Vec<String>> = sources
        .iter()
        .map(|source| {
            let code = source.error.as_ref().map_or_else(|| "-".to_owned(), |error| error.code.clone());
            let (kept, relay) = (bytes(source.retained_bytes), bytes(Some(source.relay_bytes)));
            let slot = text(&source.slot_state);
            vec![source.name.clone(), source.kind.clone(), source.state.clone(), text(&source.position), kept, slot, relay, code]
        })
        .collect();
    table(&["SOURCE", "KIND", "STATE", "POSITION", "WAL KEPT", "SLOT", "RELAY", "CODE"], &rows)
}

/// What is behind each code in the tables.
fn notes(status: &Status) -> String {
    let mut out = String::new();
    let pipelines = status.pipelines.iter().filter_map(|pipeline| Some((&pipeline.name, pipeline.error.as_ref()?)));
    let sources = status.sources.iter().filter_map(|source| Some((&source.name, source.error.as_ref()?)));
    for (name, error) in pipelines.chain(sources) {
        out.push_str(&format!("\n{name}: {} {}\n  fix: {}\n", error.code, error.message, error.fix));
    }
    for Removed { name, source, position, relay_bytes } in &status.removed {
        let (code, bytes) = (&code::PIPELINE_REMOVED, relay_bytes.map_or_else(String::new, |bytes| format!(", {bytes} B")));
        out.push_str(&format!("\n{name}: {code} {} (source {source}, from {position}{bytes})\n  fix: {}\n", code.summary, code.fix));
    }
    for pipeline in &status.pipelines {
        if let Some(poison) = &pipeline.poison {
            let ordinal = poison.ordinal.map_or_else(|| "-".to_owned(), |ordinal| ordinal.to_string());
            out.push_str(&format!(
                "\n{}: poison {}: {}\n  table {}, key sha256 {}…, position {}, xid {}, change {ordinal}, {} bytes\n",
                pipeline.name, poison.kind, poison.reason, poison.relation, poison.key_hash, poison.position, poison.xid, poison.size_bytes,
            ));
        }
    }
    out
}
