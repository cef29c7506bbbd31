//! The one list of connectors.
//!
//! A new connector is one line in the list of its direction; everything else about it is in its own crate.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_api::{Destination, Error, Result, Source, TableName};
use tidegate_file::FileSource;
use tidegate_postgres::destination::PostgresDestination;
use tidegate_postgres::source::PostgresSource;
use tidegate_sqlite::SqliteDestination;

use crate::config::{Name, Pipeline, Settings, Unchanged};

/// A text that is never shown: a password, or an address with one in it.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// A source's settings.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(tag = "kind")]
pub(crate) enum SourceKind {
    /// A PostgreSQL database, by logical replication.
    Postgres(PostgresSourceSettings),
    /// A file of transactions, one a line.
    File(FileSettings),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostgresSourceSettings {
    /// postgres://user:password@host:port/database
    pub(crate) url: Secret,
    /// The publication; created where it is missing and the role may.
    pub(crate) publication: String,
    /// The replication slot; created and owned by this source.
    pub(crate) slot: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileSettings {
    /// The file.
    pub(crate) path: PathBuf,
}

/// A destination's settings.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(tag = "kind")]
pub(crate) enum DestinationKind {
    /// A SQLite database file.
    Sqlite(SqliteSettings),
    /// A schema of a PostgreSQL database.
    Postgres(PostgresDestinationSettings),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SqliteSettings {
    /// The database file; created where it is missing.
    pub(crate) path: PathBuf,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostgresDestinationSettings {
    /// postgres://user:password@host:port/database
    pub(crate) url: Secret,
    /// The schema that the tables are in; created where it is missing.
    pub(crate) schema: String,
}

impl SourceKind {
    pub(crate) fn make_absolute(&mut self, folder: &Path) {
        match self {
            Self::Postgres(_) => {}
            Self::File(file) => file.path = folder.join(&file.path),
        }
    }

    /// What only one source may read; `None` where several may.
    pub(crate) fn exclusive(&self) -> Option<String> {
        match self {
            Self::Postgres(postgres) => Some(format!("{}\0{}", postgres.slot, postgres.url.0)),
            Self::File(_) => None,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Postgres(_) => "postgres",
            Self::File(_) => "file",
        }
    }

    fn build(&self, tables: &BTreeMap<&TableName, Unchanged>) -> Result<Arc<dyn Source>> {
        Ok(match self {
            Self::Postgres(PostgresSourceSettings { url, publication, slot }) => {
                let (url, publication, slot) = (url.0.clone(), publication.clone(), slot.clone());
                let tables = tables.iter().map(|(name, policy)| ((*name).clone(), (*policy).into())).collect();
                Arc::new(PostgresSource::new(tidegate_postgres::source::SourceConfig { url, publication, slot, tables })?)
            }
            Self::File(FileSettings { path }) => Arc::new(FileSource::new(tidegate_file::Config { path: path.clone() })),
        })
    }
}

impl DestinationKind {
    pub(crate) fn make_absolute(&mut self, folder: &Path) {
        match self {
            Self::Sqlite(sqlite) => sqlite.path = folder.join(&sqlite.path),
            Self::Postgres(_) => {}
        }
    }

    /// Equal for destinations that are the same place. Not to be shown.
    pub(crate) fn address(&self) -> String {
        match self {
            Self::Sqlite(sqlite) => sqlite.path.display().to_string(),
            Self::Postgres(postgres) => format!("{}\0{}", postgres.url.0, postgres.schema),
        }
    }

    fn build(&self) -> Result<Arc<dyn Destination>> {
        Ok(match self {
            Self::Sqlite(SqliteSettings { path }) => Arc::new(SqliteDestination::new(tidegate_sqlite::Config { path: path.clone() })?),
            Self::Postgres(PostgresDestinationSettings { url, schema }) => {
                let (url, schema) = (url.0.clone(), schema.clone());
                Arc::new(PostgresDestination::new(tidegate_postgres::destination::Config { url, schema })?)
            }
        })
    }
}

impl From<Unchanged> for tidegate_postgres::source::Unchanged {
    fn from(policy: Unchanged) -> Self {
        match policy {
            Unchanged::Refuse => Self::Refuse,
            Unchanged::Reselect => Self::Reselect,
        }
    }
}

/// A source, ready to be opened.
pub(crate) struct BuiltSource {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) source: Arc<dyn Source>,
    /// The tables of all its pipelines.
    pub(crate) tables: Vec<TableName>,
}

/// The configured sources that a pipeline reads.
pub(crate) struct Sources(Vec<BuiltSource>);

impl Sources {
    pub(crate) fn build(settings: &Settings) -> Result<Self> {
        let mut built = Vec::new();
        for (name, kind) in &settings.sources {
            let readers = settings.pipelines.values().filter(|pipeline| pipeline.source == *name);
            let tables: BTreeMap<&TableName, Unchanged> =
                readers.flat_map(|pipeline| &pipeline.tables).map(|table| (&table.name, table.unchanged)).collect();
            if tables.is_empty() {
                continue;
            }
            built.push(BuiltSource {
                name: name.to_string(),
                kind: kind.name(),
                source: kind.build(&tables).map_err(|error| error.with("path", format_args!("sources.{name}")))?,
                tables: tables.into_keys().cloned().collect(),
            });
        }
        Ok(Self(built))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &BuiltSource> {
        self.0.iter()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|built| built.name.as_str())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<dyn Source>> {
        self.0.iter().find(|built| built.name == name).map(|built| &built.source)
    }

    pub(crate) fn into_all(self) -> impl Iterator<Item = BuiltSource> {
        self.0.into_iter()
    }
}

/// The destination of every pipeline.
pub(crate) struct Destinations(BTreeMap<String, Arc<dyn Destination>>);

impl Destinations {
    pub(crate) fn build(settings: &Settings) -> Result<Self> {
        let build = |(name, pipeline): (&Name, &Pipeline)| {
            let at = |error: Error| error.with("path", format_args!("pipelines.{name}.destination"));
            Ok((name.to_string(), pipeline.destination.build().map_err(at)?))
        };
        settings.pipelines.iter().map(build).collect::<Result<_>>().map(Self)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &Arc<dyn Destination>)> {
        self.0.iter().map(|(name, destination)| (name.as_str(), destination))
    }

    pub(crate) fn get(&self, pipeline: &str) -> Option<Arc<dyn Destination>> {
        self.0.get(pipeline).map(Arc::clone)
    }
}
