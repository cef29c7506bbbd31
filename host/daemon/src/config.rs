//! `tidegate.yaml`: read, checked, with secrets put in and paths made absolute.

mod check;
mod document;
mod mistake;
mod model;
mod name;
mod secrets;
mod typed;
mod units;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use tidegate_api::{Error, Result, code};

use self::document::{Node, Value};
use self::mistake::Mistake;
pub(crate) use self::model::{OnDrop, Pipeline, Relay, Settings};
pub(crate) use self::name::{Name, Unchanged};

/// A configuration file is at most this long.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// A configuration that holds together.
#[derive(Debug)]
pub(crate) struct Config {
    /// The file, as it was named.
    pub(crate) file: PathBuf,
    pub(crate) settings: Settings,
}

/// Reads and checks a configuration. Offline: nothing but the file and the secrets' files is looked at.
pub(crate) fn load(file: &Path) -> Result<Config> {
    let mut root = parse(file)?;
    let folder = folder_of(file);
    let shown = file.display().to_string();
    let settings = version(&root)
        .and_then(|()| secrets::resolve(&mut root, &folder))
        .and_then(|()| typed::read::<Settings>(&root))
        .and_then(|mut settings| {
            make_absolute(&mut settings, &folder);
            check::all(&settings, &root)?;
            Ok(settings)
        })
        .map_err(|mistake| mistake.into_error(&shown))?;
    Ok(Config { file: file.to_owned(), settings })
}

/// Only the data_dir of a configuration: commands that talk to the daemon need no secrets and no valid rest.
pub(crate) fn data_dir(file: &Path) -> Result<PathBuf> {
    let mut root = parse(file)?;
    let folder = folder_of(file);
    let shown = file.display().to_string();
    let find = |root: &mut Node| -> Result<PathBuf, Mistake> {
        let Value::Map(entries) = &mut root.value else { return Err(not_a_mapping(root)) };
        entries.retain(|entry| entry.key == "data_dir");
        secrets::resolve(root, &folder)?;
        match root.get("data_dir").map(|entry| &entry.value.value) {
            Some(Value::Text(path)) => Ok(folder.join(path)),
            _ => Err(Mistake::new(&code::CONFIG_SYNTAX, "the key `data_dir` is missing, or is no text").or_at(root.place, "data_dir")),
        }
    };
    find(&mut root).map_err(|mistake| mistake.into_error(&shown))
}

fn parse(file: &Path) -> Result<Node> {
    let unreadable =
        |error: std::io::Error| Error::new(&code::CONFIG_UNREADABLE, "read configuration").with("file", file.display()).because(error);
    let mut bytes = Vec::new();
    File::open(file).map_err(unreadable)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let shown = file.display().to_string();
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Mistake::new(&code::CONFIG_SYNTAX, format!("longer than {MAX_FILE_BYTES} bytes")).into_error(&shown));
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| Mistake::new(&code::CONFIG_SYNTAX, "not UTF-8").into_error(&shown))?;
    Node::parse(text).map_err(|mistake| mistake.into_error(&shown))
}

/// Looks at the version first: another version may have other keys.
fn version(root: &Node) -> Result<(), Mistake> {
    if !matches!(root.value, Value::Map(_)) {
        return Err(not_a_mapping(root));
    }
    let Some(entry) = root.get("version") else {
        return Err(Mistake::new(&code::CONFIG_SYNTAX, "the key `version` is missing: write version: 1").or_at(root.place, "version"));
    };
    match entry.value.value {
        Value::Unsigned(1) => Ok(()),
        _ => Err(Mistake::new(&code::CONFIG_VERSION, "this release reads version: 1").or_at(entry.value.place, "version")),
    }
}

fn not_a_mapping(root: &Node) -> Mistake {
    Mistake::new(&code::CONFIG_SYNTAX, "a configuration is a mapping with the keys version, data_dir, sources, pipelines")
        .or_at(root.place, "")
}

fn folder_of(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}

/// Relative paths are relative to the configuration file.
fn make_absolute(settings: &mut Settings, folder: &Path) {
    settings.data_dir = folder.join(&settings.data_dir);
    for source in settings.sources.values_mut() {
        source.make_absolute(folder);
    }
    for pipeline in settings.pipelines.values_mut() {
        pipeline.destination.make_absolute(folder);
        for stage in &mut pipeline.transform {
            if let Some(program) = &mut stage.program {
                *program = folder.join(&program);
            }
        }
    }
}
