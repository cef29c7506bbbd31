//! Programs: what a program file says, and its canonical form.

use crate::canonical::push_text;
use crate::error::ProgramError;
use crate::limits::Limits;
use crate::literal::Literal;
use crate::parse;
use crate::path::Path;

/// A finite program: a list of instructions that runs from its beginning to its end on every document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) limits: Limits,
    pub(crate) require_partitioned_deletes: bool,
    pub(crate) instructions: Vec<Instruction>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    Remove { path: Path },
    Set { path: Path, value: Literal },
    Copy { from: Path, to: Path },
    Route { path: Path },
    DropWhenEquals { path: Path, value: Literal },
    RequireEquals { path: Path, value: Literal },
}

impl Program {
    /// The longest program file, in bytes.
    pub const MAX_BYTES: usize = 4 << 20;

    /// Reads a program file.
    ///
    /// # Errors
    /// When it is not JSON, or a member is unknown, missing, repeated or of the wrong kind, or a value breaks its rule; with
    /// the place.
    pub fn parse(text: &[u8]) -> Result<Self, ProgramError> {
        parse::program(text)
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The limits, with defaults where the file says nothing.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether a delete needs a partition key where the program routes.
    #[must_use]
    pub fn require_partitioned_deletes(&self) -> bool {
        self.require_partitioned_deletes
    }

    /// The number of instructions.
    #[must_use]
    pub fn instructions(&self) -> usize {
        self.instructions.len()
    }

    /// Whether any instruction sets the partition key.
    #[must_use]
    pub fn routes(&self) -> bool {
        self.instructions.iter().any(|instruction| matches!(instruction, Instruction::Route { .. }))
    }

    /// The canonical form: equal for programs that mean the same, different for all others.
    ///
    /// It is a program file without white space. All members are there, defaults written out, in this order: `name`,
    /// `version`, `limits` (`mutations`, `document_bytes`, `batch_bytes`, `operations`, `depth`, `milliseconds`,
    /// `memory_bytes`), `require_partitioned_deletes`, `instructions`; of an instruction `op`, then `path` or `from`, then
    /// `to` or `value`. Texts have only the escapes that they need: `"`, `\` and control characters (`\b \f \n \r \t`, else
    /// `\u00xx`). Members of a literal are sorted by the UTF-8 bytes of their names; digits stand as written.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut out = String::from("{\"name\":");
        push_text(&mut out, &self.name);
        out.push_str(",\"version\":");
        push_text(&mut out, &self.version);
        out.push_str(",\"limits\":{");
        let mut limits = self.limits;
        for (index, (name, limit)) in limits.named().into_iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            out.push_str(&format!("{comma}\"{name}\":{limit}"));
        }
        let deletes = self.require_partitioned_deletes;
        out.push_str(&format!("}},\"require_partitioned_deletes\":{deletes},\"instructions\":["));
        for (index, instruction) in self.instructions.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            push_instruction(&mut out, instruction);
        }
        out.push_str("]}");
        out
    }
}

fn push_instruction(out: &mut String, instruction: &Instruction) {
    let (op, first, path, second) = match instruction {
        Instruction::Remove { path } => ("remove", "path", path, None),
        Instruction::Set { path, value } => ("set", "path", path, Some(value)),
        Instruction::Copy { from, .. } => ("copy", "from", from, None),
        Instruction::Route { path } => ("route", "path", path, None),
        Instruction::DropWhenEquals { path, value } => ("drop-when-equals", "path", path, Some(value)),
        Instruction::RequireEquals { path, value } => ("require-equals", "path", path, Some(value)),
    };
    out.push_str(&format!("{{\"op\":\"{op}\",\"{first}\":"));
    push_text(out, path.as_str());
    if let Instruction::Copy { to, .. } = instruction {
        out.push_str(",\"to\":");
        push_text(out, to.as_str());
    }
    if let Some(value) = second {
        out.push_str(",\"value\":");
        out.push_str(&value.text);
    }
    out.push('}');
}
