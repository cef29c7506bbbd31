//! Where a version's server programs are.

use std::env;
use std::path::{Path, PathBuf};

/// The versions that are tested: the oldest that is supported, and the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// From `TIDEGATE_PG_BIN`, the folder of `tests/run`, or the usual Debian folder.
    V15,
    /// From `TIDEGATE_PG18_BIN`, the folder of `tests/run`, or the usual Debian folder.
    V18,
}

impl Version {
    /// Every version, oldest first.
    pub const ALL: [Self; 2] = [Self::V15, Self::V18];

    /// The major number.
    pub fn major(self) -> u32 {
        match self {
            Self::V15 => 15,
            Self::V18 => 18,
        }
    }

    fn variable(self) -> &'static str {
        match self {
            Self::V15 => "TIDEGATE_PG_BIN",
            Self::V18 => "TIDEGATE_PG18_BIN",
        }
    }
}

#[derive(Debug)]
pub(super) struct Programs {
    pub(super) folder: PathBuf,
    /// Libraries that came with the programs.
    pub(super) libraries: Option<PathBuf>,
}

impl Programs {
    pub(super) fn find(version: Version) -> Self {
        let major = version.major();
        let chosen = env::var_os(version.variable()).filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let usual = || {
            let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."));
            let installed = workspace.join(format!("target/services/postgresql-{major}/bin"));
            vec![installed, PathBuf::from(format!("/usr/lib/postgresql/{major}/bin"))]
        };
        let candidates = chosen.map_or_else(usual, |folder| vec![folder]);
        let folder = candidates.iter().find(|folder| folder.join("initdb").exists() && folder.join("postgres").exists());
        let Some(folder) = folder else {
            panic!(
                "PostgreSQL {major} is missing: no initdb and postgres in {candidates:?}; \
                 `tests/run services` installs it, or set {} to the folder of its programs",
                version.variable()
            );
        };
        let libraries = folder.parent().map(|parent| parent.join("lib")).filter(|lib| lib.join("libpq.so.5").exists());
        Self { folder: folder.clone(), libraries }
    }
}
