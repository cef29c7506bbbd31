//! A slow, plain model of what a program does: a tree of nodes, every rule written out as it is told. Documents that go
//! through the executor and through the model must come out the same.

/// Texts and names stay as they were written, with quotes and escapes; numbers too.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Remove(Vec<String>),
    Set(Vec<String>, Node),
    Copy(Vec<String>, Vec<String>),
    Route(Vec<String>),
    DropWhenEquals(Vec<String>, Node),
    RequireEquals(Vec<String>, Node),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Keep(Option<String>, String),
    Drop,
    Poison(&'static str),
}

type Result<T> = std::result::Result<T, &'static str>;

pub(crate) struct Limits {
    pub(crate) document_bytes: u64,
    pub(crate) batch_bytes: u64,
    pub(crate) operations: u64,
    pub(crate) depth: usize,
}

pub(crate) struct Model {
    pub(crate) steps: Vec<Step>,
    pub(crate) limits: Limits,
    pub(crate) operations: u64,
    pub(crate) bytes: u64,
}

impl Model {
    pub(crate) fn run(&mut self, document: &[u8]) -> Answer {
        self.attempt(document).unwrap_or_else(Answer::Poison)
    }

    fn attempt(&mut self, document: &[u8]) -> Result<Answer> {
        if document.len() as u64 > self.limits.document_bytes {
            return Err("limit-document-bytes");
        }
        self.count(document.len())?;
        let mut root = parse(document, self.limits.depth)?;
        if !matches!(root, Node::Object(_)) {
            return Err("not-an-object");
        }
        let mut route = None;
        for step in &self.steps {
            self.operations += 1;
            if self.operations > self.limits.operations {
                return Err("limit-operations");
            }
            match step {
                Step::Remove(path) => remove(&mut root, path)?,
                Step::Set(path, value) => set(&mut root, path, value.clone())?,
                Step::Copy(from, to) => {
                    let value = find(&root, from)?.cloned().ok_or("copy-source-missing")?;
                    set(&mut root, to, value)?;
                }
                Step::Route(path) => route = Some(partition_key(find(&root, path)?)?),
                Step::DropWhenEquals(path, value) => {
                    if equal(find(&root, path)?.unwrap_or(&Node::Null), value)? {
                        return Ok(Answer::Drop);
                    }
                }
                Step::RequireEquals(path, value) => {
                    if !equal(find(&root, path)?.unwrap_or(&Node::Null), value)? {
                        return Err("required-value-differs");
                    }
                }
            }
        }
        if height(&root) > self.limits.depth {
            return Err("limit-depth");
        }
        let mut out = String::new();
        write(&root, &mut out);
        if out.len() as u64 > self.limits.document_bytes {
            return Err("limit-document-bytes");
        }
        self.count(out.len())?;
        Ok(Answer::Keep(route, out))
    }

    fn count(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes as u64;
        if self.bytes > self.limits.batch_bytes { Err("limit-batch-bytes") } else { Ok(()) }
    }
}

/// The one member of a name.
fn member(members: &[(String, Node)], name: &str) -> Result<Option<usize>> {
    let name: Vec<u16> = name.encode_utf16().collect();
    let mut found = (0..members.len()).filter(|index| units(&members[*index].0) == name);
    let first = found.next();
    if found.next().is_some() { Err("duplicate-name") } else { Ok(first) }
}

fn find<'a>(root: &'a Node, path: &[String]) -> Result<Option<&'a Node>> {
    let mut node = root;
    for name in path {
        let Node::Object(members) = node else { return Ok(None) };
        match member(members, name)? {
            Some(index) => node = &members[index].1,
            None => return Ok(None),
        }
    }
    Ok(Some(node).filter(|node| **node != Node::Null))
}

fn remove(root: &mut Node, path: &[String]) -> Result<()> {
    let mut node = root;
    for (depth, name) in path.iter().enumerate() {
        let Node::Object(members) = node else { return Ok(()) };
        let Some(index) = member(members, name)? else { return Ok(()) };
        if depth + 1 == path.len() {
            members.remove(index);
            return Ok(());
        }
        node = &mut members[index].1;
    }
    Ok(())
}

fn set(root: &mut Node, path: &[String], value: Node) -> Result<()> {
    let mut node = root;
    for name in path {
        if *node == Node::Null {
            *node = Node::Object(Vec::new());
        }
        let Node::Object(members) = node else { return Err("parent-not-object") };
        let index = match member(members, name)? {
            Some(index) => index,
            None => {
                members.push((quote(name), Node::Null));
                members.len() - 1
            }
        };
        node = &mut members[index].1;
    }
    *node = value;
    Ok(())
}

fn partition_key(node: Option<&Node>) -> Result<String> {
    match node {
        None | Some(Node::Null) => Err("route-missing"),
        Some(Node::Array(_) | Node::Object(_)) => Err("route-not-scalar"),
        Some(Node::Bool(value)) => Ok(value.to_string()),
        Some(Node::Number(digits)) => Ok(digits.clone()),
        Some(Node::Text(raw)) => {
            let text = String::from_utf16(&units(raw)).map_err(|_| "route-not-text")?;
            if text.trim().is_empty() { Err("route-missing") } else { Ok(text) }
        }
    }
}

/// `document` against the literal of the program.
fn equal(document: &Node, literal: &Node) -> Result<bool> {
    match (document, literal) {
        (Node::Null, Node::Null) => Ok(true),
        (Node::Bool(a), Node::Bool(b)) => Ok(a == b),
        (Node::Number(a), Node::Number(b)) => Ok(decimal(a)? == decimal(b)?),
        (Node::Text(a), Node::Text(b)) => Ok(units(a) == units(b)),
        (Node::Array(a), Node::Array(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.iter().zip(b) {
                if !equal(a, b)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Node::Object(a), Node::Object(b)) => {
            for (index, (name, _)) in a.iter().enumerate() {
                if a[..index].iter().any(|(earlier, _)| units(earlier) == units(name)) {
                    return Err("duplicate-name");
                }
            }
            if a.len() != b.len() {
                return Ok(false);
            }
            for (name, value) in a {
                let Some((_, other)) = b.iter().find(|(other, _)| units(other) == units(name)) else { return Ok(false) };
                if !equal(value, other)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Sign, digits without zeros at either end, and the power of ten of the last digit.
fn decimal(text: &str) -> Result<(bool, String, i128)> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    if exponent.trim_start_matches(['+', '-']).len() > 18 {
        return Err("number-exponent");
    }
    let mut exponent: i128 = exponent.parse().unwrap();
    let negative = mantissa.starts_with('-');
    let (whole, fraction) = mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa.trim_start_matches('-'), ""));
    exponent -= fraction.len() as i128;
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let kept = digits.trim_end_matches('0');
    if kept.is_empty() {
        return Ok((false, String::new(), 0));
    }
    Ok((negative, kept.to_owned(), exponent + (digits.len() - kept.len()) as i128))
}

fn height(node: &Node) -> usize {
    match node {
        Node::Array(elements) => 1 + elements.iter().map(height).max().unwrap_or(0),
        Node::Object(members) => 1 + members.iter().map(|(_, value)| height(value)).max().unwrap_or(0),
        _ => 0,
    }
}

pub(crate) fn write(node: &Node, out: &mut String) {
    match node {
        Node::Null => out.push_str("null"),
        Node::Bool(value) => out.push_str(&value.to_string()),
        Node::Number(raw) | Node::Text(raw) => out.push_str(raw),
        Node::Array(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(element, out);
            }
            out.push(']');
        }
        Node::Object(members) => {
            out.push('{');
            for (index, (name, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(name);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
    }
}

pub(crate) fn quote(name: &str) -> String {
    let mut out = String::from("\"");
    for c in name.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out + "\""
}

/// What a quoted text says, in UTF-16 units.
pub(crate) fn units(raw: &str) -> Vec<u16> {
    let mut units = Vec::new();
    let mut rest = &raw[1..raw.len() - 1];
    while let Some(c) = rest.chars().next() {
        let mut used = c.len_utf8();
        if c == '\\' {
            used = 2;
            match rest.as_bytes()[1] {
                b'b' => units.push(8),
                b'f' => units.push(12),
                b'n' => units.push(10),
                b'r' => units.push(13),
                b't' => units.push(9),
                b'u' => {
                    units.push(u16::from_str_radix(&rest[2..6], 16).unwrap());
                    used = 6;
                }
                other => units.push(other.into()),
            }
        } else {
            units.extend(c.encode_utf16(&mut [0; 2]).iter());
        }
        rest = &rest[used..];
    }
    units
}

/// Exactly one JSON text, with at most `depth` containers open at once.
pub(crate) fn parse(text: &[u8], depth: usize) -> Result<Node> {
    let mut parser = Parser { text, at: 0, depth };
    let answer = parser.value(0).and_then(|node| {
        parser.blank();
        if parser.at == text.len() { Ok(node) } else { Err("invalid-json") }
    });
    // Whatever comes first in the document is told.
    let read = if answer == Err("limit-depth") { &text[..parser.at] } else { text };
    if std::str::from_utf8(read).is_err() { Err("invalid-json") } else { answer }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> u8 {
        // No byte of a JSON text outside of a text may be 0.
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn blank(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    fn eat(&mut self, wanted: u8) -> bool {
        let found = self.peek() == wanted;
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, open: usize) -> Result<Node> {
        self.blank();
        let start = self.at;
        match self.peek() {
            b'{' | b'[' if open == self.depth => Err("limit-depth"),
            b'{' => {
                self.at += 1;
                let mut members = Vec::new();
                self.list(b'}', |parser| {
                    parser.blank();
                    let name = parser.string()?;
                    parser.blank();
                    if !parser.eat(b':') {
                        return Err("invalid-json");
                    }
                    members.push((name, parser.value(open + 1)?));
                    Ok(())
                })?;
                Ok(Node::Object(members))
            }
            b'[' => {
                self.at += 1;
                let mut elements = Vec::new();
                self.list(b']', |parser| {
                    elements.push(parser.value(open + 1)?);
                    Ok(())
                })?;
                Ok(Node::Array(elements))
            }
            b'"' => self.string().map(Node::Text),
            b'-' | b'0'..=b'9' => {
                while matches!(self.peek(), b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9') {
                    self.at += 1;
                }
                let text = std::str::from_utf8(&self.text[start..self.at]).unwrap();
                if number(text) { Ok(Node::Number(text.to_owned())) } else { Err("invalid-json") }
            }
            _ => {
                for (word, node) in [("null", Node::Null), ("true", Node::Bool(true)), ("false", Node::Bool(false))] {
                    if self.text[self.at..].starts_with(word.as_bytes()) {
                        self.at += word.len();
                        return Ok(node);
                    }
                }
                Err("invalid-json")
            }
        }
    }

    fn list(&mut self, end: u8, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.blank();
        if self.eat(end) {
            return Ok(());
        }
        loop {
            item(self)?;
            self.blank();
            if self.eat(end) {
                return Ok(());
            }
            if !self.eat(b',') {
                return Err("invalid-json");
            }
        }
    }

    fn string(&mut self) -> Result<String> {
        let start = self.at;
        if !self.eat(b'"') {
            return Err("invalid-json");
        }
        loop {
            if self.at >= self.text.len() || self.peek() < b' ' {
                return Err("invalid-json");
            }
            match self.peek() {
                b'"' => {
                    self.at += 1;
                    return std::str::from_utf8(&self.text[start..self.at]).map(str::to_owned).map_err(|_| "invalid-json");
                }
                b'\\' => {
                    self.at += 1;
                    match self.peek() {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
                        b'u' => {
                            let hex = self.text.get(self.at + 1..self.at + 5).ok_or("invalid-json")?;
                            if !hex.iter().all(u8::is_ascii_hexdigit) {
                                return Err("invalid-json");
                            }
                            self.at += 5;
                        }
                        _ => return Err("invalid-json"),
                    }
                }
                _ => self.at += 1,
            }
        }
    }
}

/// The grammar of numbers.
fn number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}
