//! `tidegate.yaml`, version 1, as types. The JSON Schema is made from these.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_pipeline::RetryPolicy;

use super::name::{Name, Table};
use super::units::{Size, Time};
use crate::registry::{DestinationKind, SourceKind};

/// The configuration of one daemon.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// The version of this format: 1.
    #[expect(dead_code, reason = "looked at before the rest is read")]
    #[schemars(extend("const" = 1))]
    version: u64,
    /// The folder that the daemon keeps everything in; used by one daemon only, on a local disk.
    pub(crate) data_dir: PathBuf,
    /// Where changes come from.
    pub(crate) sources: BTreeMap<Name, SourceKind>,
    /// Where changes are kept until every pipeline has them.
    #[serde(default)]
    pub(crate) relay: Relay,
    /// What goes where.
    pub(crate) pipelines: BTreeMap<Name, Pipeline>,
}

/// The relay's store.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(tag = "kind")]
pub(crate) enum Relay {
    /// Segment files in `data_dir`.
    Files(RelayFiles),
}

impl Default for Relay {
    fn default() -> Self {
        Self::Files(RelayFiles::default())
    }
}

/// Settings of the files store.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RelayFiles {
    /// The source is not read on while the relay holds more than this.
    #[serde(default)]
    pub(crate) max_bytes: Option<Size>,
}

/// One pipeline.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pipeline {
    /// The name of its source.
    pub(crate) source: Name,
    /// The tables that it takes from there.
    #[schemars(length(min = 1))]
    pub(crate) tables: Vec<Table>,
    /// What every document goes through. Empty: documents pass unchanged.
    #[serde(default)]
    pub(crate) transform: Vec<Stage>,
    /// The collections, beside the tables' own, that the transform may place rows in. A row is in one collection at most: where
    /// it is kept in one, it is deleted from the others.
    #[serde(default)]
    #[schemars(length(max = 16), inner(length(min = 1, max = 255)))]
    pub(crate) collections: Vec<String>,
    /// What a row that the transform drops does at the destination.
    #[serde(default)]
    pub(crate) on_drop: OnDrop,
    /// What a row that the transform refuses does.
    #[expect(dead_code, reason = "pausing is all that this release does")]
    #[serde(default)]
    on_poison: OnPoison,
    /// How often and how long a failed attempt is tried again.
    #[serde(default)]
    pub(crate) retry: Retry,
    /// The largest transaction that is taken; a larger one pauses the pipeline.
    #[serde(default)]
    pub(crate) max_transaction: MaxTransaction,
    /// Where the documents go.
    pub(crate) destination: DestinationKind,
}

/// One stage of a transform: exactly one of its keys, and `config` beside `module`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stage {
    /// The file of a program.
    #[serde(default)]
    pub(crate) program: Option<PathBuf>,
    /// Reserved: an uploaded module, NAME@N.
    #[serde(default)]
    pub(crate) module: Option<String>,
    /// Reserved: the module's configuration.
    #[serde(default)]
    pub(crate) config: Option<Anything>,
    /// Reserved: a filter stage.
    #[serde(default)]
    pub(crate) filter: Option<Anything>,
    /// Reserved: a json stage.
    #[serde(default)]
    pub(crate) json: Option<Anything>,
}

/// A value that is reserved for a later release.
#[derive(Debug, JsonSchema)]
#[schemars(transparent)]
pub(crate) struct Anything(#[expect(dead_code, reason = "only that it is there is looked at")] serde_json::Value);

impl<'de> Deserialize<'de> for Anything {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self(serde_json::Value::Null))
    }
}

/// What a dropped row does at the destination. Part of the fingerprint.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OnDrop {
    /// An earlier version of the row is deleted.
    #[default]
    Delete,
    /// An earlier version stays.
    Retain,
}

/// What poison does.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum OnPoison {
    /// The pipeline pauses in front of the transaction.
    #[default]
    Pause,
}

/// Bounded exponential backoff.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Retry {
    /// How many attempts are made in all before the pipeline faults, 1 to 100. A destination that cannot be reached at all is
    /// tried for ever.
    #[schemars(range(min = 1, max = 100))]
    pub(crate) attempts: u32,
    /// The first delay.
    pub(crate) base: Time,
    /// The longest delay.
    pub(crate) max: Time,
    /// What each delay is multiplied by to give the next.
    #[schemars(range(min = 1.0))]
    pub(crate) factor: f64,
    /// The share of a delay that is left to chance, from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(crate) jitter: f64,
}

impl Default for Retry {
    fn default() -> Self {
        let RetryPolicy { attempts, base, max, factor, jitter } = RetryPolicy::default();
        Self { attempts, base: Time(base), max: Time(max), factor, jitter }
    }
}

/// The largest transaction that is taken.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MaxTransaction {
    /// In rows.
    #[schemars(range(min = 1))]
    pub(crate) rows: u64,
    /// In bytes of its documents.
    pub(crate) bytes: Size,
}

impl Default for MaxTransaction {
    fn default() -> Self {
        let tidegate_pipeline::MaxTransaction { rows, bytes } = tidegate_pipeline::MaxTransaction::default();
        Self { rows, bytes: Size(bytes) }
    }
}
