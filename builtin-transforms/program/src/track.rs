//! The first way through a document: reads all of it, and keeps what the program's paths lead to.

use crate::decode::decode;
use crate::outline::{DOCUMENT, Opened};
use crate::overlay::{NONE, Overlay, Source, Text, Value};
use crate::plan::{Branches, Plan, ROOT};
use crate::scan::{self, Around, Fault};

/// Reads `document`, which must be compact JSON, into the empty overlay. Gives the number of its root, or none where the
/// document is no object.
pub(crate) fn track(document: &[u8], plan: &Plan, limit: usize, overlay: &mut Overlay, around: &mut Around) -> Result<Option<u32>, Fault> {
    let mut tracker = Tracker { text: document, plan, limit, overlay, around };
    let (root, end) = match scan::byte(document, 0) {
        b'{' => tracker.object(0, ROOT, DOCUMENT, 1).map(|(root, end)| (Some(root), end))?,
        _ => (None, scan::value(document, 0, 0, limit, tracker.around, NONE)?),
    };
    if end == document.len() { Ok(root) } else { Err(Fault::Syntax(end)) }
}

struct Tracker<'a> {
    text: &'a [u8],
    plan: &'a Plan,
    limit: usize,
    overlay: &'a mut Overlay,
    around: &'a mut Around,
}

impl Tracker<'_> {
    /// Reads the object at `at`, the container number `depth` from the root, for the node of the plan and the place in the
    /// outline. Gives its number and one past its end. Calls itself as deep as paths are, whatever the document looks like.
    fn object(&mut self, at: usize, node: u32, place: u32, depth: usize) -> Result<(u32, usize), Fault> {
        if depth > self.limit {
            return Err(Fault::Depth(at));
        }
        let (text, plan) = (self.text, self.plan);
        let (object, stamp) = self.overlay.push_object(at, node);
        let mut cursor = self.around.outline.enter(place);
        let mut at = at + 1;
        let (mut first, mut last) = (NONE, NONE);
        if scan::byte(text, at) == b'}' {
            return Ok((object, self.close(object, at, first, last)));
        }
        loop {
            let find = |start, end, escapes| find(text, plan.branches(node), start, end, escapes);
            let (opened, read) = scan::name(text, at, &mut self.around.outline, cursor, &mut self.around.foreign, find)?;
            cursor = read;
            let Opened { start, place, node } = opened;
            if node == NONE {
                at = scan::value(text, start, depth, self.limit, self.around, place)?;
            } else if !self.begin(stamp, node, at, start) {
                // Nothing is learned of it: no path leads into it.
                at = scan::value(text, start, depth, self.limit, self.around, NONE)?;
            } else {
                match last {
                    NONE => first = node,
                    last => self.overlay.members[last].next = node,
                }
                last = node;
                let value = if scan::byte(text, start) == b'{' && plan.goes_on(node) {
                    let (inner, end) = self.object(start, node, place, depth + 1)?;
                    at = end;
                    Value::Object(inner)
                } else {
                    at = scan::value(text, start, depth, self.limit, self.around, place)?;
                    Value::Text(Text { source: Source::Document, start: start as u32, end: at as u32 })
                };
                let home = &mut self.overlay.members[node];
                home.value = value;
                home.end = at as u32;
            }
            match scan::byte(text, at) {
                b',' => at += 1,
                b'}' => return Ok((object, self.close(object, at, first, last))),
                _ => return Err(Fault::Syntax(at)),
            }
        }
    }

    fn close(&mut self, object: u32, brace: usize, first: u32, last: u32) -> usize {
        let object = &mut self.overlay.objects[object];
        (object.first, object.last) = (first, last);
        object.text.end = brace as u32 + 1;
        brace + 1
    }

    /// Begins a member that a path leads to, unless its name is there already.
    #[inline(always)]
    fn begin(&mut self, stamp: u64, node: u32, at: usize, start: usize) -> bool {
        let home = &mut self.overlay.members[node];
        if home.stamp == stamp {
            // Whoever looks for it is told; nobody reads either value.
            home.twice = true;
            self.overlay.bend();
            return false;
        }
        home.read(at as u32, start as u32, stamp);
        true
    }
}

/// The node that a name leads to, whose inside is at `start`.
pub(crate) fn find(text: &[u8], branches: Branches<'_>, start: usize, end: usize, escapes: bool) -> u32 {
    let edge = if escapes {
        let mut name = Vec::new();
        decode(text.get(start..end).unwrap_or_default(), &mut name);
        branches.edge(&name, 0, name.len())
    } else {
        branches.edge(text, start, end)
    };
    edge.map_or(NONE, |edge| edge.node)
}
