//! `${env:NAME}` and `${file:PATH}` inside texts.
//!
//! `$${` stands for `${` itself. Paths are relative to the configuration file; one line end at the end of a file is cut.
//! What was put in is not looked at again.

use std::env::VarError;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use tidegate_api::code;

use super::document::{Node, Value};
use super::mistake::Mistake;

/// A secret's file is at most this long.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// Puts the values in, in every text below `node`.
pub(crate) fn resolve(node: &mut Node, folder: &Path) -> Result<(), Mistake> {
    walk(node, folder, "")
}

fn walk(node: &mut Node, folder: &Path, path: &str) -> Result<(), Mistake> {
    let place = node.place;
    match &mut node.value {
        Value::Text(text) if text.contains("${") => {
            *text = substitute(text, folder).map_err(|mistake| mistake.or_at(place, path))?;
        }
        Value::List(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                walk(item, folder, &format!("{path}[{index}]"))?;
            }
        }
        Value::Map(entries) => {
            for entry in entries {
                let path = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
                walk(&mut entry.value, folder, &path)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn substitute(text: &str, folder: &Path) -> Result<String, Mistake> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = after;
            continue;
        }
        out.push_str(before);
        let unclosed = || Mistake::new(&code::CONFIG_VALUE, "`${` without `}`; write `$${` for the two characters themselves");
        let (reference, behind) = after.split_once('}').ok_or_else(unclosed)?;
        out.push_str(&value(reference, folder)?);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

fn value(reference: &str, folder: &Path) -> Result<String, Mistake> {
    match reference.split_once(':') {
        Some(("env", name)) if !name.is_empty() => {
            // The error's own text may show the value.
            let refused = |error: VarError| match error {
                VarError::NotPresent => format!("the environment variable {name} is not set"),
                VarError::NotUnicode(_) => format!("the environment variable {name} is not UTF-8"),
            };
            std::env::var(name).map_err(|error| Mistake::new(&code::CONFIG_SECRET, refused(error)))
        }
        Some(("file", path)) if !path.is_empty() => {
            let refused = |error: std::io::Error| Mistake::new(&code::CONFIG_SECRET, format!("the file {path}: {error}"));
            let mut text = String::new();
            let file = File::open(folder.join(path)).map_err(refused)?;
            file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(refused)?;
            if text.len() as u64 > MAX_FILE_BYTES {
                return Err(Mistake::new(&code::CONFIG_SECRET, format!("the file {path} is longer than {MAX_FILE_BYTES} bytes")));
            }
            let line = text.strip_suffix('\n').unwrap_or(&text);
            Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
        }
        _ => Err(Mistake::new(
            &code::CONFIG_VALUE,
            "a reference is ${env:NAME} or ${file:PATH}; write `$${` for the two characters themselves",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_put_in_without_its_last_line_end_and_an_escape_stays() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("password"), "p${w}\n").unwrap();
        assert_eq!(substitute("a:${file:password}@$${env:X}", folder.path()).unwrap(), "a:p${w}@${env:X}");
        for bad in ["${env:}", "${nothing}", "${env:A", "${}", "${file:missing}"] {
            assert!(substitute(bad, folder.path()).is_err(), "{bad}");
        }
    }
}
