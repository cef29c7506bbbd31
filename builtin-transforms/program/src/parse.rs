//! From a program file to a program.

use crate::error::ProgramError;
use crate::limits::Limits;
use crate::literal::Literal;
use crate::path::Path;
use crate::program::{Instruction, Program};
use crate::tree::{self, Tree, push_index, push_name};

const MAX_INSTRUCTIONS: usize = 256;
const MAX_LITERAL_HEIGHT: usize = 64;

pub(crate) fn program(text: &[u8]) -> Result<Program, ProgramError> {
    if text.len() > Program::MAX_BYTES {
        let reason = format!("the program has {} bytes, and at most {} are read", text.len(), Program::MAX_BYTES);
        return Err(ProgramError::meaning("$", reason));
    }
    let mut file = Members::new(tree::read(text)?, "$".to_owned())?;
    let name = file.named_text("name")?;
    let version = file.named_text("version")?;
    let limits = match file.take("limits") {
        Some((value, path)) => limits(Members::new(value, path)?)?,
        None => Limits::default(),
    };
    let require_partitioned_deletes = match file.take("require_partitioned_deletes") {
        Some((Tree::Bool(value), _)) => value,
        Some((other, path)) => return Err(wrong_kind(path, "true or false", &other)),
        None => true,
    };
    let (value, path) = file.need("instructions")?;
    let instructions = instructions(value, &path, &limits)?;
    file.end()?;
    Ok(Program { name, version, limits, require_partitioned_deletes, instructions })
}

fn limits(mut given: Members) -> Result<Limits, ProgramError> {
    let mut limits = Limits::default();
    for (name, limit) in limits.named() {
        if let Some((value, path)) = given.take(name) {
            *limit = positive(&value, &path)?;
            if name == "depth" && *limit > Limits::MAX_DEPTH {
                return Err(ProgramError::meaning(path, format!("depth is at most {}", Limits::MAX_DEPTH)));
            }
        }
    }
    given.end()?;
    Ok(limits)
}

fn positive(value: &Tree, path: &str) -> Result<u64, ProgramError> {
    let Tree::Number(digits) = value else { return Err(wrong_kind(path.to_owned(), "an integer of at least 1", value)) };
    // An integer is written as one: not `1.0` or `1e3`.
    if digits == "0" || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ProgramError::meaning(path, "a limit is an integer of at least 1"));
    }
    digits.parse().map_err(|_| ProgramError::meaning(path, format!("a limit is at most {}", u64::MAX)))
}

fn instructions(value: Tree, path: &str, limits: &Limits) -> Result<Vec<Instruction>, ProgramError> {
    let Tree::Array(elements) = value else { return Err(wrong_kind(path.to_owned(), "an array", &value)) };
    if elements.is_empty() || elements.len() > MAX_INSTRUCTIONS {
        let reason = format!("a program has 1 to {MAX_INSTRUCTIONS} instructions, not {}", elements.len());
        return Err(ProgramError::meaning(path, reason));
    }
    let mut instructions = Vec::with_capacity(elements.len());
    for (index, element) in elements.into_iter().enumerate() {
        let mut path = path.to_owned();
        push_index(&mut path, index);
        instructions.push(instruction(element, path, limits)?);
    }
    Ok(instructions)
}

fn instruction(value: Tree, path: String, limits: &Limits) -> Result<Instruction, ProgramError> {
    let mut members = Members::new(value, path)?;
    let (op, op_path) = members.text("op")?;
    let instruction = match op.as_str() {
        "remove" => Instruction::Remove { path: members.path("path")? },
        "set" => Instruction::Set { path: members.path("path")?, value: members.literal(limits)? },
        "copy" => Instruction::Copy { from: members.path("from")?, to: members.path("to")? },
        "route" => Instruction::Route { path: members.path("path")? },
        "drop-when-equals" => Instruction::DropWhenEquals { path: members.path("path")?, value: members.literal(limits)? },
        "require-equals" => Instruction::RequireEquals { path: members.path("path")?, value: members.literal(limits)? },
        other => {
            let known = "remove, set, copy, route, drop-when-equals, require-equals";
            return Err(ProgramError::meaning(op_path, format!("{other:?} is no instruction; there are {known}")));
        }
    };
    members.end()?;
    Ok(instruction)
}

fn wrong_kind(path: String, wanted: &str, found: &Tree) -> ProgramError {
    let found = match found {
        Tree::Null => "null",
        Tree::Bool(_) => "true or false",
        Tree::Number(_) => "a number",
        Tree::Text(_) => "a text",
        Tree::Array(_) => "an array",
        Tree::Object(_) => "an object",
    };
    ProgramError::meaning(path, format!("expected {wanted}, found {found}"))
}

/// The members of an object that were not read yet.
struct Members {
    path: String,
    left: Vec<(String, Tree)>,
}

impl Members {
    fn new(value: Tree, path: String) -> Result<Self, ProgramError> {
        match value {
            Tree::Object(left) => Ok(Self { path, left }),
            other => Err(wrong_kind(path, "an object", &other)),
        }
    }

    fn path_of(&self, name: &str) -> String {
        let mut path = self.path.clone();
        push_name(&mut path, name);
        path
    }

    fn take(&mut self, name: &str) -> Option<(Tree, String)> {
        let index = self.left.iter().position(|(member, _)| member == name)?;
        Some((self.left.remove(index).1, self.path_of(name)))
    }

    fn need(&mut self, name: &str) -> Result<(Tree, String), ProgramError> {
        self.take(name).ok_or_else(|| ProgramError::meaning(self.path_of(name), "the member is missing"))
    }

    fn text(&mut self, name: &str) -> Result<(String, String), ProgramError> {
        match self.need(name)? {
            (Tree::Text(text), path) => Ok((text, path)),
            (other, path) => Err(wrong_kind(path, "a text", &other)),
        }
    }

    fn named_text(&mut self, name: &str) -> Result<String, ProgramError> {
        let (text, path) = self.text(name)?;
        if text.chars().all(char::is_whitespace) {
            return Err(ProgramError::meaning(path, "the text is blank"));
        }
        Ok(text)
    }

    fn path(&mut self, name: &str) -> Result<Path, ProgramError> {
        let (text, path) = self.text(name)?;
        Path::new(&text).map_err(|reason| ProgramError::meaning(path, reason))
    }

    fn literal(&mut self, limits: &Limits) -> Result<Literal, ProgramError> {
        let (value, path) = self.need("value")?;
        let literal = Literal::new(value);
        if literal.height > MAX_LITERAL_HEIGHT {
            let reason = format!("a literal has at most {MAX_LITERAL_HEIGHT} containers in each other, not {}", literal.height);
            return Err(ProgramError::meaning(path, reason));
        }
        if literal.height as u64 > limits.depth {
            let reason = format!("the literal has {} containers in each other, and depth is {}", literal.height, limits.depth);
            return Err(ProgramError::meaning(path, reason));
        }
        Ok(literal)
    }

    fn end(self) -> Result<(), ProgramError> {
        match self.left.first() {
            Some((name, _)) => Err(ProgramError::meaning(self.path_of(name), "the member is unknown here")),
            None => Ok(()),
        }
    }
}
