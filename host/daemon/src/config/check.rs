//! Rules that go over more than one value.

use std::collections::BTreeMap;

use tidegate_api::code;

use super::document::Node;
use super::mistake::Mistake;
use super::model::{Pipeline, Settings, Stage};
use super::name::Name;
use crate::suggest;

/// The first rule that is broken, in the order of the file.
pub(crate) fn all(settings: &Settings, root: &Node) -> Result<(), Mistake> {
    let wrong = |code, path: &[&str], reason: String| Err(Mistake::new(code, reason).or_at(root.locate(path), shown(path)));
    if settings.sources.is_empty() {
        return wrong(&code::CONFIG_VALUE, &["sources"], "at least one source is needed".to_owned());
    }
    if settings.pipelines.is_empty() {
        return wrong(&code::CONFIG_VALUE, &["pipelines"], "at least one pipeline is needed".to_owned());
    }
    let mut readers: BTreeMap<String, &Name> = BTreeMap::new();
    for (name, source) in &settings.sources {
        if let Some(other) = source.exclusive().and_then(|what| readers.insert(what, name)) {
            return wrong(&code::CONFIG_VALUE, &["sources", name.as_str()], format!("it reads the same slot as the source {other}"));
        }
    }
    for (name, pipeline) in &settings.pipelines {
        let path = ["pipelines", name.as_str()];
        if !settings.sources.contains_key(&pipeline.source) {
            let hint = suggest::hint(pipeline.source.as_str(), settings.sources.keys().map(Name::as_str));
            let reason = format!("no source `{}` is declared{hint}", pipeline.source);
            return wrong(&code::CONFIG_REFERENCE, &[path[0], path[1], "source"], reason);
        }
        self::pipeline(pipeline, &path, root)?;
    }
    unchanged(settings, root)
}

/// The path as it is shown everywhere: `pipelines.all.tables[0]`.
fn shown(path: &[&str]) -> String {
    let mut out = String::new();
    for part in path {
        if part.bytes().all(|byte| byte.is_ascii_digit()) && !out.is_empty() {
            out.push_str(&format!("[{part}]"));
        } else {
            out.push_str(if out.is_empty() { "" } else { "." });
            out.push_str(part);
        }
    }
    out
}

fn pipeline(pipeline: &Pipeline, path: &[&str; 2], root: &Node) -> Result<(), Mistake> {
    let wrong = |code, below: &[&str], reason: &str| {
        let path: Vec<&str> = path.iter().chain(below).copied().collect();
        Err(Mistake::new(code, reason).or_at(root.locate(&path), shown(&path)))
    };
    if pipeline.tables.is_empty() {
        return wrong(&code::CONFIG_VALUE, &["tables"], "at least one table is needed");
    }
    for (index, table) in pipeline.tables.iter().enumerate() {
        if pipeline.tables.iter().take(index).any(|earlier| earlier.name == table.name) {
            return wrong(&code::CONFIG_VALUE, &["tables", &index.to_string()], &format!("the table {} is there twice", table.name));
        }
    }
    for (index, stage) in pipeline.transform.iter().enumerate() {
        let at = ["transform", &index.to_string()];
        if let Err(mistake) = self::stage(stage) {
            return wrong(mistake.code, &at, &mistake.reason);
        }
    }
    if let Err((index, reason)) = collections(pipeline) {
        return wrong(&code::CONFIG_VALUE, &["collections", &index.to_string()], reason);
    }
    let retry = &pipeline.retry;
    if !(1..=100).contains(&retry.attempts) {
        return wrong(&code::CONFIG_VALUE, &["retry", "attempts"], "1 to 100 attempts are made");
    }
    if retry.base.0 > retry.max.0 {
        return wrong(&code::CONFIG_VALUE, &["retry", "base"], "the first delay is longer than the longest (`max`)");
    }
    if !(1.0..=100.0).contains(&retry.factor) {
        return wrong(&code::CONFIG_VALUE, &["retry", "factor"], "a factor is a number from 1 to 100");
    }
    if !(0.0..=1.0).contains(&retry.jitter) {
        return wrong(&code::CONFIG_VALUE, &["retry", "jitter"], "jitter is a number from 0 to 1");
    }
    if pipeline.max_transaction.rows == 0 {
        return wrong(&code::CONFIG_VALUE, &["max_transaction", "rows"], "at least one row must be allowed");
    }
    if pipeline.max_transaction.bytes.0 == 0 {
        return wrong(&code::CONFIG_VALUE, &["max_transaction", "bytes"], "at least one byte must be allowed");
    }
    Ok(())
}

/// The first collection that cannot be declared, and why.
fn collections(pipeline: &Pipeline) -> Result<(), (usize, &'static str)> {
    for (index, name) in pipeline.collections.iter().enumerate() {
        if name.is_empty() || name.len() > 255 || name.chars().any(char::is_control) {
            return Err((index, "a collection's name has 1 to 255 bytes and no control characters"));
        }
        if index >= 16 {
            return Err((index, "a pipeline declares at most 16 collections"));
        }
        if pipeline.collections.iter().take(index).any(|earlier| earlier == name) {
            return Err((index, "the collection is there twice"));
        }
        if pipeline.tables.iter().any(|table| table.name.to_string() == *name) {
            return Err((index, "it is the collection of one of the pipeline's own tables"));
        }
    }
    Ok(())
}

fn stage(stage: &Stage) -> Result<(), Mistake> {
    let Stage { program, module, config, filter, json } = stage;
    match (program.is_some(), module.is_some(), filter.is_some(), json.is_some()) {
        (true, false, false, false) if config.is_none() => Ok(()),
        (false, true, false, false) => Err(Mistake::new(&code::STAGE_UNSUPPORTED, "module stages come with a later release")),
        (false, false, true, false) if config.is_none() => {
            Err(Mistake::new(&code::STAGE_UNSUPPORTED, "filter stages come with a later release"))
        }
        (false, false, false, true) if config.is_none() => {
            Err(Mistake::new(&code::STAGE_UNSUPPORTED, "json stages come with a later release"))
        }
        _ => Err(Mistake::new(&code::CONFIG_VALUE, "a stage has exactly one of the keys program, module, filter, json")),
    }
}

/// A table is read once for all pipelines of a source: they must agree on what is done with its unchanged values.
fn unchanged(settings: &Settings, root: &Node) -> Result<(), Mistake> {
    let mut seen = BTreeMap::new();
    for (name, pipeline) in &settings.pipelines {
        for (index, table) in pipeline.tables.iter().enumerate() {
            let (first, policy) = *seen.entry((&pipeline.source, &table.name)).or_insert((name, table.unchanged));
            if policy != table.unchanged {
                let path = ["pipelines", name.as_str(), "tables", &index.to_string()];
                let reason = format!("the pipeline {first} says otherwise on unchanged values of {}", table.name);
                return Err(Mistake::new(&code::CONFIG_VALUE, reason).or_at(root.locate(&path), shown(&path)));
            }
        }
    }
    Ok(())
}
