//! Reading a program file: JSON, strictly, into a tree that keeps the digits of numbers.

use std::fmt::Write as _;

use crate::ProgramError;

/// One JSON value of a program file. Members stand in the order of the file, and no two have one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    /// As written.
    Number(String),
    Text(String),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

/// Containers that may be open at once, in any program file: more than a literal may have, so that a literal which is too
/// deep is told by its own rule.
const MAX_DEPTH: usize = 300;

/// Reads `text`, which must be exactly one JSON value in UTF-8 without a byte order mark.
pub(crate) fn read(text: &[u8]) -> Result<Tree, ProgramError> {
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => return Err(ProgramError::syntax("$", format!("byte {} is not UTF-8", error.valid_up_to()))),
    };
    if text.starts_with('\u{feff}') {
        return Err(ProgramError::syntax("$", "a byte order mark stands before the program"));
    }
    let mut reader = Reader { text, at: 0, path: String::from("$"), depth: 0 };
    let value = reader.value()?;
    reader.blank();
    if reader.at < text.len() { Err(reader.unexpected("the end of the file")) } else { Ok(value) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    path: String,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn blank(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn error(&self, reason: impl Into<String>) -> ProgramError {
        let before = self.text.get(..self.at).unwrap_or_default();
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        ProgramError::syntax(self.path.clone(), format!("{} at line {line}, column {column}", reason.into()))
    }

    fn unexpected(&self, wanted: &str) -> ProgramError {
        match self.rest().chars().next() {
            Some(found) => self.error(format!("expected {wanted}, found {found:?}")),
            None => self.error(format!("expected {wanted}, found the end of the file")),
        }
    }

    fn value(&mut self) -> Result<Tree, ProgramError> {
        self.blank();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Tree::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                for (word, value) in [("null", Tree::Null), ("true", Tree::Bool(true)), ("false", Tree::Bool(false))] {
                    if self.rest().starts_with(word) {
                        self.at += word.len();
                        return Ok(value);
                    }
                }
                Err(self.unexpected("a value"))
            }
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Tree, ProgramError>) -> Result<Tree, ProgramError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("more than {MAX_DEPTH} containers in each other")));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Tree, ProgramError> {
        let mut members: Vec<(String, Tree)> = Vec::new();
        let mut names = std::collections::BTreeSet::new();
        let above = self.path.len();
        self.blank();
        if self.eat(b'}') {
            return Ok(Tree::Object(members));
        }
        loop {
            self.blank();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a member's name in quotes"));
            }
            let name = self.string()?;
            push_name(&mut self.path, &name);
            if !names.insert(name.clone()) {
                return Err(ProgramError { syntax: false, ..self.error("the member is there twice") });
            }
            self.blank();
            if !self.eat(b':') {
                return Err(self.unexpected("':'"));
            }
            let value = self.value()?;
            members.push((name, value));
            self.path.truncate(above);
            self.blank();
            if self.eat(b'}') {
                return Ok(Tree::Object(members));
            }
            if !self.eat(b',') {
                return Err(self.unexpected("',' or '}'"));
            }
        }
    }

    fn array(&mut self) -> Result<Tree, ProgramError> {
        let mut elements = Vec::new();
        let above = self.path.len();
        self.blank();
        if self.eat(b']') {
            return Ok(Tree::Array(elements));
        }
        loop {
            push_index(&mut self.path, elements.len());
            elements.push(self.value()?);
            self.path.truncate(above);
            self.blank();
            if self.eat(b']') {
                return Ok(Tree::Array(elements));
            }
            if !self.eat(b',') {
                return Err(self.unexpected("',' or ']'"));
            }
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<Tree, ProgramError> {
        let start = self.at;
        self.eat(b'-');
        let leading_zero = self.peek() == Some(b'0');
        match self.digits() {
            0 => return Err(self.unexpected("a digit")),
            1 => {}
            _ if leading_zero => return Err(self.error("a number begins with 0")),
            _ => {}
        }
        if self.eat(b'.') && self.digits() == 0 {
            return Err(self.unexpected("a digit"));
        }
        if self.eat(b'e') || self.eat(b'E') {
            if !self.eat(b'+') {
                self.eat(b'-');
            }
            if self.digits() == 0 {
                return Err(self.unexpected("a digit"));
            }
        }
        Ok(Tree::Number(self.text.get(start..self.at).unwrap_or_default().to_owned()))
    }

    fn string(&mut self) -> Result<String, ProgramError> {
        self.at += 1;
        let mut value = String::new();
        loop {
            let plain = self.rest().find(|c: char| c == '"' || c == '\\' || c < ' ').unwrap_or(self.rest().len());
            value.push_str(self.rest().get(..plain).unwrap_or_default());
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(value);
                }
                Some(b'\\') => value.push(self.escape()?),
                Some(_) => return Err(self.error("a control character stands in a text without an escape")),
                None => return Err(self.unexpected("'\"'")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, ProgramError> {
        let escaped = match self.text.as_bytes().get(self.at + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.unit(self.at)?;
                let second = if (0xd800..0xdc00).contains(&first) { self.unit(self.at + 6).ok() } else { None };
                let units = [Some(first), second].into_iter().flatten();
                let Some(Ok(decoded)) = char::decode_utf16(units).next() else {
                    return Err(self.error("a lone surrogate escape is no character"));
                };
                self.at += 6 * decoded.len_utf16();
                return Ok(decoded);
            }
            _ => return Err(self.error("an escape that JSON does not have")),
        };
        self.at += 2;
        Ok(escaped)
    }

    /// The UTF-16 unit of the `\u` escape at `at`.
    fn unit(&self, at: usize) -> Result<u16, ProgramError> {
        let hex = self.text.get(at..at + 6).and_then(|escape| escape.strip_prefix("\\u"));
        let hex = hex.filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        hex.and_then(|hex| u16::from_str_radix(hex, 16).ok()).ok_or_else(|| self.error("an escape needs four hexadecimal digits"))
    }
}

/// Appends a member's name to a JSON path.
pub(crate) fn push_name(path: &mut String, name: &str) {
    let plain = |c: char| c.is_alphanumeric() || c == '_';
    if !name.is_empty() && name.chars().all(plain) && !name.starts_with(|c: char| c.is_numeric()) {
        path.push('.');
        path.push_str(name);
    } else {
        path.push('[');
        crate::canonical::push_text(path, name);
        path.push(']');
    }
}

/// Appends an index to a JSON path.
pub(crate) fn push_index(path: &mut String, index: usize) {
    // Writing to a string cannot fail.
    let _ = write!(path, "[{index}]");
}
