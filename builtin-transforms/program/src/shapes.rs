//! The shapes of the documents of one call.

use crate::learn::learn;
use crate::recipe::Recipe;
use crate::run::Facts;
use crate::scan::Around;
use crate::shape::Shape;
use crate::write::Edited;

/// So many shapes are tried: one for each table of most transactions.
const SHAPES: usize = 4;

/// So many documents in a row may be unlike a shape before it is given up.
const CREDIT: u32 = 8;

/// So many shapes are learned in a call: where rows do not look alike, it is of no use.
const MOST_LEARNED: u32 = 16;

/// Shapes that documents of this call had. They are forgotten with it: what a call costs does not depend on earlier ones.
pub(crate) struct Shapes {
    known: [Known; SHAPES],
    /// Which of them fitted last.
    last: usize,
    /// Documents that fitted none.
    strangers: u32,
    learned: u32,
    pub(crate) facts: Facts,
}

pub(crate) struct Known {
    pub(crate) shape: Shape,
    pub(crate) recipe: Recipe,
    /// 0: there is none, or none any more.
    credit: u32,
}

impl Shapes {
    /// With room for everything, so that no call leaves more behind than the next one expects.
    pub(crate) fn new() -> Self {
        let known = [(); SHAPES].map(|()| Known { shape: Shape::new(), recipe: Recipe::new(), credit: 0 });
        Self { known, last: 0, strangers: 0, learned: 0, facts: Facts::new() }
    }

    pub(crate) fn forget(&mut self) {
        self.known.iter_mut().for_each(|known| known.credit = 0);
        (self.last, self.strangers, self.learned) = (0, 0, 0);
    }

    /// Reads a document that has a known shape.
    #[inline(always)]
    pub(crate) fn read(&mut self, document: &[u8], limit: usize, around: &mut Around) -> Option<&Known> {
        let mut tried = self.last;
        loop {
            let known = self.known.get_mut(tried)?;
            if known.credit > 0 {
                if known.shape.read(document, limit, around).is_some() {
                    known.credit = CREDIT;
                    self.last = tried;
                    return self.known.get(tried);
                }
                known.credit -= 1;
            }
            tried = (tried + 1) % SHAPES;
            if tried == self.last {
                return None;
            }
        }
    }

    /// Counts a document that is of no known shape. True: its own is worth learning.
    pub(crate) fn meet_stranger(&mut self) -> bool {
        self.strangers = self.strangers.saturating_add(1);
        // The shape of the only document of a call is of no use.
        self.strangers > 1 && self.learned < MOST_LEARNED && self.known.iter().any(|known| known.credit == 0)
    }

    /// Learns the shape of a document that became `root`, at most `growth` bytes longer.
    #[inline(never)]
    pub(crate) fn learn(&mut self, edited: Edited<'_>, root: u32, growth: u64, around: &mut Around) {
        let Some(known) = self.known.iter_mut().find(|known| known.credit == 0) else { return };
        self.learned += 1;
        if self.facts.fit
            && learn(&mut known.shape, edited.texts.document, edited.plan, around).is_some()
            && known.recipe.learn(&known.shape, &self.facts, edited, root, growth).is_some()
        {
            known.credit = CREDIT;
        }
    }
}
