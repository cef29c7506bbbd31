//! `tidegate validate`: everything that can be known offline.

use std::path::Path;

use serde_json::json;
use tidegate_api::Result;

use crate::config;
use crate::output::Answer;
use crate::program;
use crate::registry::{Destinations, Sources};

pub(crate) fn run(file: &Path) -> Result<Answer> {
    let config = config::load(file)?;
    let settings = &config.settings;
    let mut programs = 0;
    for pipeline in settings.pipelines.values() {
        for path in pipeline.transform.iter().filter_map(|stage| stage.program.as_deref()) {
            program::load(path)?;
            programs += 1;
        }
    }
    Sources::build(settings)?;
    Destinations::build(settings)?;
    let (sources, pipelines) = (settings.sources.len(), settings.pipelines.len());
    let summary = format!("{}: valid ({sources} sources, {pipelines} pipelines, {programs} programs)", config.file.display());
    let result = json!({"file": config.file, "sources": sources, "pipelines": pipelines, "programs": programs});
    Ok(Answer::new("validate", summary.clone(), result, summary + "\n"))
}
