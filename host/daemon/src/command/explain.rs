//! `tidegate explain CODE`, and the pages of docs/errors: both are made from the one table of codes.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use tidegate_api::{Class, Code, Error, Result, code};

use crate::output::{self, Answer};
use crate::suggest;

pub(crate) fn run(wanted: &str) -> Result<Answer> {
    let upper = wanted.to_ascii_uppercase();
    let same = |known: &&Code| known.to_string() == upper || known.name == wanted;
    let Some(found) = code::ALL.iter().copied().find(same) else {
        let hint = suggest::hint(wanted, code::ALL.iter().map(|known| known.name));
        return Err(Error::new(&code::USAGE, "explain").with("code", wanted).because(format!("there is no such code{hint}")));
    };
    let result = json!({
        "code": found.to_string(), "name": found.name, "class": class(found), "exit_code": found.class.exit_code(),
        "summary": found.summary, "fix": found.fix,
    });
    Ok(Answer::new("explain", found.summary, result, page(found)))
}

fn class(code: &Code) -> &'static str {
    match code.class {
        Class::Invalid => "the configuration, a program or an argument is wrong",
        Class::Environment => "the surroundings are wrong: a server, a right, a file, a disk",
        Class::Runtime => "it happens while running",
    }
}

/// One page of docs/errors.
fn page(code: &Code) -> String {
    format!(
        "# {code}: {}\n\n{}.\n\n- What to do: {}\n- Kind: {} (exit code {})\n",
        code.name,
        sentence(code.summary),
        code.fix,
        class(code),
        code.class.exit_code()
    )
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    // A name of a setting keeps its case.
    match (chars.next(), text.split(' ').next().is_some_and(|word| word.contains('_'))) {
        (Some(first), false) => first.to_uppercase().chain(chars).collect(),
        _ => text.to_owned(),
    }
}

/// Writes every page and the list of them into `folder`.
pub(crate) fn write_pages(folder: &Path) -> ExitCode {
    match pages(folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output::fail(&Error::new(&code::OUTPUT_FAILED, "write pages").with("folder", folder.display()).because(error)),
    }
}

fn pages(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut list = String::from(
        "# Error codes\n\nMade from the table in `connectors/api/src/code.rs` by `tidegate schema errors --markdown-dir docs/errors`.\n\
         `tidegate explain CODE` shows the same without the network.\n\n| code | name | meaning |\n|---|---|---|\n",
    );
    for code in code::ALL {
        std::fs::write(folder.join(format!("{code}.md")), page(code))?;
        let _ = writeln!(list, "| [{code}]({code}.md) | {} | {} |", code.name, code.summary);
    }
    std::fs::write(folder.join("README.md"), list)
}
