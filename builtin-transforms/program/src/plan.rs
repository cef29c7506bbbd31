//! A program, made ready to run: names numbered, paths in one tree, everything that is ever written in one pool of text.

use std::collections::{BTreeMap, BTreeSet};

use crate::canonical::push_text;
use crate::literal::Literal;
use crate::overlay::{NONE, Source, Text};
use crate::path::Path;
use crate::program::{Instruction, Program};

/// The node of the tree of paths that stands for the root of a document.
pub(crate) const ROOT: u32 = 0;

pub(crate) struct Plan {
    /// Every name in any path, sorted by its bytes; the place is its number.
    names: Vec<Name>,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    pub(crate) steps: Vec<Step>,
    /// Names and literals as they are written, `{}`.
    pub(crate) pool: Vec<u8>,
    /// Parts of all paths together: as many members and objects as instructions can add.
    pub(crate) parts: usize,
}

struct Name {
    text: String,
    /// The name as it is written between the value of another member and its own: comma, quotes and colon too.
    opening: Text,
}

/// A place in documents that some path goes through.
struct Node {
    /// Its children, as a range of the edges.
    first: u32,
    count: u32,
    /// Bit n: a child's name has n bytes; 63: has 63 or more.
    lengths: u64,
}

/// From a place to one of its members.
#[derive(Clone, Copy)]
pub(crate) struct Edge {
    /// The name's first bytes and its length, in which most names differ already.
    head: u64,
    length: u32,
    pub(crate) name: u32,
    pub(crate) node: u32,
}

/// One name of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) name: u32,
    /// The place that has a member of this name, and the place of that member.
    pub(crate) above: u32,
    pub(crate) node: u32,
}

pub(crate) enum Step {
    Remove(Box<[Part]>),
    Set { path: Box<[Part]>, value: Text, whole: Option<Whole>, height: usize, growth: u64 },
    Copy { from: Box<[Part]>, to: Box<[Part]>, growth: u64 },
    Route(Box<[Part]>),
    DropWhenEquals(Box<[Part]>, Literal),
    RequireEquals(Box<[Part]>, Literal),
}

/// What `set` puts in place of a parent that is missing: all that it would make there. It can be text because no other path
/// goes there.
#[derive(Clone, Copy)]
pub(crate) struct Whole {
    /// Which part of the path this is.
    pub(crate) part: usize,
    pub(crate) value: Text,
}

/// What stands in the pool first.
pub(crate) const EMPTY_OBJECT: Text = Text { source: Source::Pool, start: 0, end: 2 };

impl Plan {
    pub(crate) fn new(program: &Program) -> Self {
        let mut pool = String::from("{}");
        let mut write = |text: &str| {
            let start = pool.len();
            pool.push_str(text);
            Text { source: Source::Pool, start: start as u32, end: pool.len() as u32 }
        };
        let paths = program.instructions.iter().flat_map(paths);
        let names: BTreeSet<&str> = paths.clone().flat_map(Path::segments).collect();
        let names: Vec<Name> = names
            .into_iter()
            .map(|name| {
                let mut opening = String::from(",");
                push_text(&mut opening, name);
                opening.push(':');
                Name { text: name.to_owned(), opening: write(&opening) }
            })
            .collect();
        let mut tree = Tree { names: &names, children: vec![BTreeMap::new()], uses: vec![] };
        paths.clone().for_each(|path| tree.count(path));
        let steps = program.instructions.iter().map(|instruction| tree.step(instruction, &mut write)).collect();
        let children = tree.children;
        let parts = paths.map(|path| path.segments().count()).sum();
        let (nodes, edges) = flatten(children, &names);
        // Behind every text of the pool stand 16 bytes or more: it can be read in chunks.
        pool.push_str(&" ".repeat(16));
        Self { names, nodes, edges, steps, pool: pool.into_bytes(), parts }
    }

    pub(crate) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The name of every node; the root has none.
    pub(crate) fn node_names(&self) -> impl Iterator<Item = u32> {
        let mut names = vec![NONE; self.nodes.len()];
        for edge in &self.edges {
            if let Some(name) = names.get_mut(edge.node as usize) {
                *name = edge.name;
            }
        }
        names.into_iter()
    }

    /// Whether any path goes on below this place.
    #[inline(always)]
    pub(crate) fn goes_on(&self, node: u32) -> bool {
        self.nodes.get(node as usize).is_some_and(|node| node.count > 0)
    }

    /// The members that paths have at a place.
    pub(crate) fn branches(&self, node: u32) -> Branches<'_> {
        let node = self.nodes.get(node as usize);
        let edges = node.and_then(|node| self.edges.get(node.first as usize..)?.get(..node.count as usize));
        Branches { plan: self, lengths: node.map_or(0, |node| node.lengths), edges: edges.unwrap_or_default() }
    }

    pub(crate) fn name(&self, name: u32) -> &str {
        self.names.get(name as usize).map_or("", |name| &name.text)
    }

    pub(crate) fn opening(&self, name: u32) -> Text {
        self.names.get(name as usize).map_or(EMPTY_OBJECT, |name| name.opening)
    }

    /// The number of a name, if any path has it. `name` is what the name says, without escapes.
    pub(crate) fn number(&self, name: &[u8]) -> Option<u32> {
        self.names.binary_search_by(|known| known.text.as_bytes().cmp(name)).ok().map(|number| number as u32)
    }

    /// A path as text, up to one of its parts.
    pub(crate) fn path(&self, path: &[Part], last: &Part) -> String {
        let above = path.iter().take_while(|part| part.node != last.node);
        let names: Vec<&str> = above.chain([last]).map(|part| self.name(part.name)).collect();
        names.join(".")
    }
}

/// The members that paths have at one place.
#[derive(Clone, Copy)]
pub(crate) struct Branches<'a> {
    plan: &'a Plan,
    lengths: u64,
    edges: &'a [Edge],
}

impl<'a> Branches<'a> {
    /// The one that a name leads to: `text` has what the name says from `start` to `end`.
    #[inline(always)]
    pub(crate) fn edge(self, text: &[u8], start: usize, end: usize) -> Option<&'a Edge> {
        let length = end.wrapping_sub(start);
        if self.lengths >> length.min(63) & 1 == 0 {
            return None;
        }
        let head = head(text, start, length);
        let edge = self.edges.iter().find(|edge| edge.head == head && edge.length as usize == length)?;
        if length <= 8 { Some(edge) } else { self.long_edge(text.get(start..end)?) }
    }

    /// The same for a name that is more than its head.
    fn long_edge(self, name: &[u8]) -> Option<&'a Edge> {
        self.edges.iter().find(|edge| self.plan.name(edge.name).as_bytes() == name)
    }
}

/// The first 8 bytes of a name.
#[inline(always)]
fn head(text: &[u8], start: usize, length: usize) -> u64 {
    let kept = if length >= 8 { u64::MAX } else { (1 << (length * 8)) - 1 };
    match text.get(start..).and_then(|text| text.first_chunk()) {
        Some(head) => u64::from_le_bytes(*head) & kept,
        None => short_head(text, start, length),
    }
}

/// The same near the end of everything.
#[cold]
fn short_head(text: &[u8], start: usize, length: usize) -> u64 {
    let name = text.get(start..).and_then(|text| text.get(..length)).unwrap_or_default();
    name.iter().rev().fold(0, |head, byte| head << 8 | u64::from(*byte))
}

fn paths(instruction: &Instruction) -> impl Iterator<Item = &Path> + Clone {
    let (first, second) = match instruction {
        Instruction::Copy { from, to } => (from, Some(to)),
        Instruction::Remove { path }
        | Instruction::Set { path, .. }
        | Instruction::Route { path }
        | Instruction::DropWhenEquals { path, .. }
        | Instruction::RequireEquals { path, .. } => (path, None),
    };
    std::iter::once(first).chain(second)
}

/// The tree of paths while it grows: of each place, its members by name.
struct Tree<'a> {
    names: &'a [Name],
    children: Vec<BTreeMap<u32, u32>>,
    /// How many paths go through each place.
    uses: Vec<u32>,
}

impl Tree<'_> {
    fn step(&mut self, instruction: &Instruction, write: &mut impl FnMut(&str) -> Text) -> Step {
        match instruction {
            Instruction::Remove { path } => Step::Remove(self.parts(path)),
            Instruction::Set { path, value } => {
                let growth = self.growth(path) + value.text.len() as u64;
                let parts = self.parts(path);
                let whole = self.whole(&parts, path, &value.text).map(|(part, text)| Whole { part, value: write(&text) });
                Step::Set { path: parts, value: write(&value.text), whole, height: value.height, growth }
            }
            Instruction::Copy { from, to } => {
                let growth = self.growth(to);
                Step::Copy { from: self.parts(from), to: self.parts(to), growth }
            }
            Instruction::Route { path } => Step::Route(self.parts(path)),
            Instruction::DropWhenEquals { path, value } => Step::DropWhenEquals(self.parts(path), value.clone()),
            Instruction::RequireEquals { path, value } => Step::RequireEquals(self.parts(path), value.clone()),
        }
    }

    fn parts(&mut self, path: &Path) -> Box<[Part]> {
        let mut above = ROOT;
        let parts = path.segments().map(|segment| {
            let name = self.number(segment);
            let next = self.children.len() as u32;
            let node = self.children.get_mut(above as usize).map_or(next, |children| *children.entry(name).or_insert(next));
            if node == next {
                self.children.push(BTreeMap::new());
            }
            let part = Part { name, above, node };
            above = node;
            part
        });
        parts.collect()
    }

    fn count(&mut self, path: &Path) {
        for part in self.parts(path) {
            self.uses.resize(self.children.len(), 0);
            if let Some(uses) = self.uses.get_mut(part.node as usize) {
                *uses += 1;
            }
        }
    }

    /// The first parent that no other path goes through, and its value when it is made to hold `value` at the end of the path.
    fn whole(&self, parts: &[Part], path: &Path, value: &str) -> Option<(usize, String)> {
        let (_, parents) = parts.split_last()?;
        let part = parents.iter().position(|part| self.uses.get(part.node as usize) == Some(&1))?;
        let mut whole = value.to_owned();
        for name in path.segments().skip(part + 1).collect::<Vec<_>>().into_iter().rev() {
            let mut object = String::from("{");
            push_text(&mut object, name);
            object.push(':');
            object.push_str(&whole);
            object.push('}');
            whole = object;
        }
        Some((part, whole))
    }

    fn number(&self, segment: &str) -> u32 {
        self.names.partition_point(|name| name.text.as_str() < segment) as u32
    }

    /// The most bytes that making every member of a path adds, without the value at its end.
    fn growth(&self, path: &Path) -> u64 {
        let opening = |segment| self.names.get(self.number(segment) as usize).map_or(0, |name| name.opening.len() as u64);
        // Two braces around each, where there is no comma.
        path.segments().map(|segment| opening(segment) + 2).sum()
    }
}

fn flatten(children: Vec<BTreeMap<u32, u32>>, names: &[Name]) -> (Vec<Node>, Vec<Edge>) {
    let mut edges: Vec<Edge> = Vec::with_capacity(children.len());
    let nodes = children.into_iter().map(|children| {
        let mut node = Node { first: edges.len() as u32, count: children.len() as u32, lengths: 0 };
        for (name, child) in children {
            let text = names.get(name as usize).map_or("", |name| &name.text);
            node.lengths |= 1 << text.len().min(63);
            edges.push(Edge { head: head(text.as_bytes(), 0, text.len()), length: text.len() as u32, name, node: child });
        }
        node
    });
    (nodes.collect(), edges)
}
