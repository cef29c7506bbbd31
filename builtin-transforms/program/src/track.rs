//! The first way through a document: reads all of it, and keeps what the program's paths lead to.

use crate::decode::decode;
use crate::overlay::{Member, Overlay, Source, Text, Value};
use crate::plan::{Branches, Edge, Plan, ROOT};
use crate::scan::{self, Fault};

/// Reads `document`, which must be compact JSON, into the empty overlay. Gives the number of its root, or none where the
/// document is no object.
pub(crate) fn track(document: &[u8], plan: &Plan, limit: usize, overlay: &mut Overlay) -> Result<Option<u32>, Fault> {
    let mut tracker = Tracker { text: document, plan, limit, overlay };
    let (root, end) = match scan::byte(document, 0) {
        b'{' => tracker.object(0, ROOT, 1).map(|(root, end)| (Some(root), end))?,
        _ => (None, scan::value(document, 0, 0, limit)?),
    };
    if end == document.len() { Ok(root) } else { Err(Fault::Syntax(end)) }
}

struct Tracker<'a> {
    text: &'a [u8],
    plan: &'a Plan,
    limit: usize,
    overlay: &'a mut Overlay,
}

impl Tracker<'_> {
    /// Reads the object at `at`, the container number `depth` from the root, for the place `node`. Gives its number and one past
    /// its end. Calls itself as deep as paths are, whatever the document looks like.
    fn object(&mut self, at: usize, node: u32, depth: usize) -> Result<(u32, usize), Fault> {
        if depth > self.limit {
            return Err(Fault::Depth(at));
        }
        let text = self.text;
        let branches = self.plan.branches(node);
        let (object, stamp) = self.overlay.push_object(at, node);
        let mut at = at + 1;
        if scan::byte(text, at) == b'}' {
            return Ok((object, self.close(object, at)));
        }
        loop {
            let member = at;
            if scan::byte(text, at) != b'"' {
                return Err(Fault::Syntax(at));
            }
            let (end, escapes) = scan::string(text, at + 1)?;
            if scan::byte(text, end) != b':' {
                return Err(Fault::Syntax(end));
            }
            let start = end + 1;
            let edge = if escapes { self.escaped(branches, member + 1, end - 1) } else { branches.edge(text, member + 1, end - 1) };
            let tracked = edge.filter(|edge| self.begin(object, stamp, edge, member, start));
            let value = match tracked {
                Some(edge) if scan::byte(text, start) == b'{' && self.plan.goes_on(edge.node) => {
                    let (inner, end) = self.object(start, edge.node, depth + 1)?;
                    at = end;
                    Value::Object(inner)
                }
                _ => {
                    at = scan::value(text, start, depth, self.limit)?;
                    Value::Text(Text { source: Source::Document, start: start as u32, end: at as u32 })
                }
            };
            if let Some(edge) = tracked {
                let home = &mut self.overlay.members[edge.node];
                home.value = value;
                home.end = at as u32;
            }
            match scan::byte(text, at) {
                b',' => at += 1,
                b'}' => return Ok((object, self.close(object, at))),
                _ => return Err(Fault::Syntax(at)),
            }
        }
    }

    fn close(&mut self, object: u32, brace: usize) -> usize {
        self.overlay.objects[object].text.end = brace as u32 + 1;
        brace + 1
    }

    /// The edge of a name with escapes, whose inside begins at `start`.
    #[cold]
    fn escaped<'b>(&self, branches: Branches<'b>, start: usize, end: usize) -> Option<&'b Edge> {
        let mut name = Vec::new();
        decode(self.text.get(start..end)?, &mut name);
        branches.edge(&name, 0, name.len())
    }

    /// Takes a member that a path leads to into the list, unless its name is there already.
    #[inline(always)]
    fn begin(&mut self, object: u32, stamp: u64, edge: &Edge, member: usize, start: usize) -> bool {
        let home = &mut self.overlay.members[edge.node];
        if home.stamp == stamp {
            // Whoever looks for it is told; nobody reads either value.
            home.twice = true;
            return false;
        }
        let (at, start) = (member as u32, start as u32);
        *home = Member { at, start, end: start, replaced: false, stamp, ..Member::added(edge.name) };
        self.overlay.link(object, edge.node);
        true
    }
}
