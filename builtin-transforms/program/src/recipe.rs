//! What the program does to every document of one shape.
//!
//! The instructions do the same to all of them: they depend on a value itself only where they compare it, measure it or take
//! the partition key from it. So what was found out about one document is kept: what was compared, and the pieces that the
//! output is made of. For the next one nothing is edited: its pieces are copied.
//!
//! A recipe only ever keeps a document. One that is to be dropped or refused, or that is not like the others in any way, is
//! worked on as if there were no recipe: nothing depends on it but time.

use crate::compare::{Comparison, equal_string};
use crate::overlay::{Overlay, Source, Text, Texts, Value};
use crate::plan::{Plan, Step};
use crate::run::{Facts, Route, scalar};
use crate::shape::{Anchor, Piece, Shape};
use crate::tree::Tree;
use crate::write::{Edited, Sink, Writer};

const MAX_PIECES: usize = 64;

/// Room is made once: a document that would need more gives no recipe.
pub(crate) struct Recipe {
    /// Values that were compared, each with the step that did it.
    compared: Vec<(u32, Piece)>,
    /// Values that were copied, each once for every copy.
    copied: Vec<Piece>,
    route: Option<Piece>,
    /// What the output is made of.
    pieces: Vec<Piece>,
    /// What a document grows by, at most and without what is copied.
    growth: u64,
}

impl Recipe {
    pub(crate) fn new() -> Self {
        Self {
            compared: Vec::with_capacity(Facts::MOST),
            copied: Vec::with_capacity(Facts::MOST),
            route: None,
            pieces: Vec::with_capacity(MAX_PIECES),
            growth: 0,
        }
    }

    /// Makes it the recipe of a document of the shape, which was read last and became `root`, at most `growth` bytes longer.
    pub(crate) fn learn(&mut self, shape: &Shape, facts: &Facts, edited: Edited<'_>, root: u32, growth: u64) -> Option<()> {
        self.compared.clear();
        for (step, text) in &facts.compared {
            self.compared.push((*step, piece(shape, *text)?));
        }
        self.copied.clear();
        for text in &facts.copied {
            self.copied.push(piece(shape, *text)?);
        }
        self.route = match facts.route {
            Some(text) => Some(piece(shape, text)?),
            None => None,
        };
        self.pieces.clear();
        let mut pieces = Pieces { list: [Text::EMPTY; MAX_PIECES], count: 0 };
        let Ok(()) = edited.write_object(root, &mut pieces);
        for text in pieces.list.get(..pieces.count)? {
            self.pieces.push(piece(shape, *text)?);
        }
        let copied: u64 = facts.copied.iter().map(|text| text.len() as u64).sum();
        self.growth = growth.checked_sub(copied)?;
        Some(())
    }

    /// Whether every comparison in the document that was read last comes out as it must where a document is kept.
    #[inline(always)]
    pub(crate) fn holds(&self, shape: &Shape, plan: &Plan, texts: Texts<'_>, overlay: &Overlay) -> bool {
        self.compared.iter().all(|(step, piece)| {
            let (literal, wanted) = match plan.steps.get(*step as usize) {
                Some(Step::RequireEquals(_, literal)) => (&literal.value, true),
                Some(Step::DropWhenEquals(_, literal)) => (&literal.value, false),
                _ => return false,
            };
            let value = shape.piece(*piece);
            match literal {
                Tree::Text(literal) => equal_string(texts.document, value, literal) == wanted,
                literal => Comparison { plan, texts, overlay }.equal(Value::Text(value), literal) == Ok(wanted),
            }
        })
    }

    /// What the document that was read last grows by, at most.
    #[inline(always)]
    pub(crate) fn growth(&self, shape: &Shape) -> u64 {
        self.copied.iter().fold(self.growth, |growth, piece| growth.saturating_add(shape.piece(*piece).len() as u64))
    }

    /// The partition key of the document that was read last, where the program gives one. The outer none: it must be looked at
    /// more closely.
    #[inline(always)]
    pub(crate) fn route(&self, shape: &Shape, texts: Texts<'_>) -> Option<Option<Route>> {
        match self.route {
            Some(piece) => scalar(texts, shape.piece(piece)).map(Some),
            None => Some(None),
        }
    }

    /// Writes what becomes of the document that was read last.
    #[inline(always)]
    pub(crate) fn write(&self, shape: &Shape, texts: Texts<'_>, out: &mut Writer<'_>) {
        for piece in &self.pieces {
            out.copy(texts, shape.piece(*piece));
        }
    }
}

fn piece(shape: &Shape, text: Text) -> Option<Piece> {
    let Text { source, start, end } = text;
    Some(match source {
        Source::Document => Piece { source, from: shape.anchor(start)?, to: shape.anchor(end)? },
        Source::Pool => Piece { source, from: Anchor::beginning(start), to: Anchor::beginning(end) },
    })
}

/// Takes a document in pieces.
struct Pieces {
    list: [Text; MAX_PIECES],
    /// Goes on where there is no room, so that it is seen.
    count: usize,
}

impl Pieces {
    fn current(&mut self) -> Option<&mut Text> {
        self.list.get_mut(self.count.wrapping_sub(1))
    }
}

impl Sink for Pieces {
    type Full = std::convert::Infallible;

    fn push(&mut self, _: Texts<'_>, piece: Text) {
        match self.current() {
            Some(current) if current.source == piece.source && current.end == piece.start => current.end = piece.end,
            _ if piece.start < piece.end => {
                self.count += 1;
                if let Some(current) = self.current() {
                    *current = piece;
                }
            }
            _ => {}
        }
    }

    fn last(&self, texts: Texts<'_>) -> Option<u8> {
        texts.get(*self.list.get(self.count.wrapping_sub(1))?).last().copied()
    }

    fn pop(&mut self) {
        if let Some(current) = self.current() {
            current.end -= 1;
        }
    }

    fn object(&mut self, edited: Edited<'_>, object: u32) -> Result<(), Self::Full> {
        edited.write_object(object, self)
    }
}
