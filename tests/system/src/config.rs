//! `tidegate.yaml`, written by the tests as JSON (which is YAML).

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{Shop, Target};

/// A configuration under construction.
#[derive(Clone, Debug)]
pub struct Config {
    value: Value,
    source: &'static str,
}

impl Config {
    /// One daemon with its data below `folder`.
    pub fn new(folder: &Path) -> Self {
        let value = json!({"version": 1, "data_dir": folder.join("data"), "sources": {}, "relay": {"kind": "files"}, "pipelines": {}});
        Self { value, source: "shop" }
    }

    /// Adds the shop as source `shop`.
    #[must_use]
    pub fn source(self, shop: &Shop) -> Self {
        self.source_at(shop, &shop.url())
    }

    /// As [`source`](Self::source), reached by another url.
    #[must_use]
    pub fn source_at(mut self, shop: &Shop, url: &str) -> Self {
        self.value["sources"]["shop"] = json!({"kind": "postgres", "url": url, "publication": Shop::PUBLICATION, "slot": shop.slot()});
        self
    }

    /// Adds a file as source `file`, which the pipelines behind it read.
    #[must_use]
    pub fn file_source(mut self, path: &Path) -> Self {
        self.value["sources"]["file"] = json!({"kind": "file", "path": path});
        self.source = "file";
        self
    }

    /// Adds a pipeline, without a transform or with one program.
    #[must_use]
    pub fn pipeline(mut self, name: &str, tables: &[&str], program: Option<&Path>, target: &Target) -> Self {
        let stages: Vec<Value> = program.iter().map(|path| json!({"program": path})).collect();
        self.value["pipelines"][name] = json!({
            "source": self.source,
            "tables": tables,
            "transform": stages,
            "destination": target.config(),
        });
        self
    }

    /// Sets a member of a pipeline.
    #[must_use]
    pub fn with(mut self, pipeline: &str, member: &str, value: Value) -> Self {
        self.value["pipelines"][pipeline][member] = value;
        self
    }

    /// Writes it to `folder/tidegate.yaml`.
    ///
    /// # Panics
    /// When the folder cannot be written.
    pub fn write(&self, folder: &Path) -> PathBuf {
        let path = folder.join("tidegate.yaml");
        fs::write(&path, format!("{:#}\n", self.value)).expect("the test's folder can be written");
        path
    }
}

/// Writes a program file.
///
/// # Panics
/// When the folder cannot be written.
pub fn write_program(path: &Path, name: &str, instructions: &Value) -> PathBuf {
    // The shop deletes rows, and a delete has no partition key.
    let program = json!({"name": name, "version": "v1", "require_partitioned_deletes": false, "instructions": instructions});
    fs::write(path, format!("{program:#}\n")).expect("the test's folder can be written");
    path.to_owned()
}
