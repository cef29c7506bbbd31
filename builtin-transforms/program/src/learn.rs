//! From a document to its shape.

use crate::outline::{DOCUMENT, Opened};
use crate::overlay::NONE;
use crate::plan::{Plan, ROOT};
use crate::scan::{self, Around};
use crate::shape::{ANY, Shape, Slot, kind};
use crate::track::find;

/// Makes `shape` that of a document that was worked on. None where it cannot be one.
pub(crate) fn learn(shape: &mut Shape, document: &[u8], plan: &Plan, around: &mut Around) -> Option<()> {
    shape.clear();
    let mut learner = Learner { text: document, plan, shape, around, behind: 0 };
    let end = learner.object(0, ROOT, DOCUMENT, 1)?;
    let tail = document.get(learner.behind..end)?;
    shape.end(tail)
}

/// Goes through a document as the tracker did.
struct Learner<'a> {
    text: &'a [u8],
    plan: &'a Plan,
    shape: &'a mut Shape,
    around: &'a mut Around,
    /// One past the last value.
    behind: usize,
}

impl Learner<'_> {
    fn object(&mut self, at: usize, node: u32, place: u32, depth: u32) -> Option<usize> {
        let (text, plan) = (self.text, self.plan);
        let mut cursor = self.around.outline.enter(place);
        let mut at = at + 1;
        if scan::byte(text, at) == b'}' {
            return Some(at + 1);
        }
        loop {
            let find = |start, end, escapes| find(text, plan.branches(node), start, end, escapes);
            let (opened, read) = scan::name(text, at, &mut self.around.outline, cursor, &mut self.around.foreign, find).ok()?;
            cursor = read;
            let inner = opened.node != NONE && plan.goes_on(opened.node) && scan::byte(text, opened.start) == b'{';
            at = match inner {
                true => self.object(opened.start, opened.node, opened.place, depth + 1)?,
                false => self.value(opened, depth)?,
            };
            match scan::byte(text, at) {
                b',' => at += 1,
                b'}' => return Some(at + 1),
                _ => return None,
            }
        }
    }

    fn value(&mut self, opened: Opened, depth: u32) -> Option<usize> {
        let Opened { start, place, node } = opened;
        let end = scan::value(self.text, start, depth as usize, usize::MAX, self.around, place).ok()?;
        let kind = if node == NONE { ANY } else { kind(scan::byte(self.text, start)) };
        self.shape.add(self.text.get(self.behind..start)?, Slot { chunks: 0, length: 0, depth, place, kind }, end)?;
        self.behind = end;
        Some(end)
    }
}
