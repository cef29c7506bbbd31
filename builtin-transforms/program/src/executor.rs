//! Running a program on one change after the other.

use crate::change::{Input, InputKind, Spent, Verdict};
use crate::edit::Editor;
use crate::limits::Limits;
use crate::measure::{Extent, TooDeep, measure};
use crate::overlay::{Overlay, Texts, Value};
use crate::plan::Plan;
use crate::poison::{Outcome, Poison, poison};
use crate::program::Program;
use crate::run::Run;
use crate::scan::{self, Around, Fault};
use crate::shapes::{Known, Shapes};
use crate::strip::strip;
use crate::track::track;
use crate::write::{Edited, Writer};

/// Runs one program on one change after the other. It keeps nothing of a change but what was spent: the same change gives the
/// same verdict and the same bytes, whatever came before.
pub struct Executor {
    plan: Plan,
    limits: Limits,
    routes: bool,
    require_partitioned_deletes: bool,
    spent: Spent,
    overlay: Overlay,
    around: Around,
    shapes: Shapes,
}

impl Executor {
    /// An executor of `program`, with nothing spent.
    #[must_use]
    pub fn new(program: Program) -> Self {
        let plan = Plan::new(&program);
        Self {
            overlay: Overlay::new(&plan),
            around: Around::new(),
            shapes: Shapes::new(),
            plan,
            limits: *program.limits(),
            routes: program.routes(),
            require_partitioned_deletes: program.require_partitioned_deletes(),
            spent: Spent::default(),
        }
    }

    /// Starts a batch, or its next part: `spent` is what its earlier parts have used.
    pub fn begin(&mut self, spent: Spent) {
        self.spent = spent;
        self.around.outline.forget();
        self.shapes.forget();
    }

    /// What the batch has used up to now.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Runs the program on one change. The document that comes of an upsert is appended to `out`; in every other case `out`
    /// stays as it is.
    pub fn run<'a>(&mut self, input: &Input<'a>, out: &mut Vec<u8>) -> Verdict<'a> {
        let before = out.len();
        let verdict = match input.kind {
            InputKind::Upsert => self.upsert(input, out),
            InputKind::Delete => self.delete(input),
            InputKind::DeleteCollection => self.delete_collection(),
        };
        // Here and not at the next change: what this one needed beyond the usual is given back.
        self.overlay.clear();
        verdict.unwrap_or_else(|poison| {
            out.truncate(before);
            Verdict::Poison { kind: poison.kind, reason: poison.reason }
        })
    }

    fn delete(&self, input: &Input<'_>) -> Outcome<Verdict<'static>> {
        let key = input.partition_key.unwrap_or_default();
        if self.routes && self.require_partitioned_deletes && key.chars().all(char::is_whitespace) {
            return Err(poison("delete-without-partition", "a delete has no partition key, and the program routes".to_owned()));
        }
        Ok(Verdict::Keep { partition_key: None })
    }

    fn delete_collection(&self) -> Outcome<Verdict<'static>> {
        if self.routes {
            let reason = "a collection is deleted without regard to partitions, and the program routes";
            return Err(poison("collection-delete-with-route", reason.to_owned()));
        }
        Ok(Verdict::Keep { partition_key: None })
    }

    fn upsert<'a>(&mut self, input: &Input<'a>, out: &mut Vec<u8>) -> Outcome<Verdict<'a>> {
        let bytes = input.document.len() as u64;
        // Places in a document are numbers of 32 bits.
        if bytes > self.limits.document_bytes || bytes >= u64::from(u32::MAX) {
            let reason = format!("the document has {bytes} bytes, and document_bytes is {}", self.limits.document_bytes);
            return Err(poison("limit-document-bytes", reason));
        }
        if !input.content_type.is_none_or(is_json) {
            return Err(poison("content-type", "the content type does not begin with application/json".to_owned()));
        }
        self.count(bytes)?;
        let document = trim(input.document);
        if let Some(kept) = self.known(document, out) {
            return kept;
        }
        let learn = self.shapes.meet_stranger();
        let read = self.read(document);
        if (read.is_err() || self.around.foreign)
            && let Err(error) = std::str::from_utf8(document)
        {
            return Err(self.not_utf8(document, error.valid_up_to()));
        }
        match read {
            Ok(root) => self.instructions(document, root, learn, out),
            Err(Fault::Syntax(at)) if is_blank(scan::byte(document, at)) => self.spaced(document, out),
            Err(fault) => Err(self.fault(fault)),
        }
    }

    fn count(&mut self, bytes: u64) -> Outcome<()> {
        self.spent.batch_bytes = self.spent.batch_bytes.saturating_add(bytes);
        if self.spent.batch_bytes > self.limits.batch_bytes {
            let reason = format!("the batch has {} bytes, and batch_bytes is {}", self.spent.batch_bytes, self.limits.batch_bytes);
            return Err(poison("limit-batch-bytes", reason));
        }
        Ok(())
    }

    /// Keeps a document of a known shape. None: its way is the usual one.
    #[inline(always)]
    fn known<'a>(&mut self, document: &'a [u8], out: &mut Vec<u8>) -> Option<Outcome<Verdict<'a>>> {
        let Known { shape, recipe, .. } = self.shapes.read(document, self.limits.depth as usize, &mut self.around)?;
        if self.around.foreign && std::str::from_utf8(document).is_err() {
            return None;
        }
        let texts = Texts { document, pool: &self.plan.pool };
        let most_bytes = recipe.growth(shape).saturating_add(document.len() as u64);
        let operations = self.spent.operations.saturating_add(self.plan.steps.len() as u64);
        if most_bytes > self.limits.document_bytes
            || operations > self.limits.operations
            || !recipe.holds(shape, &self.plan, texts, &self.overlay)
        {
            return None;
        }
        let route = recipe.route(shape, texts)?;
        let before = out.len();
        let mut writer = Writer::new(out, usize::try_from(most_bytes).unwrap_or(0));
        recipe.write(shape, texts, &mut writer);
        writer.finish(texts);
        self.spent.operations = operations;
        let counted = self.count((out.len() - before) as u64);
        Some(counted.map(|()| Verdict::Keep { partition_key: route.map(|route| route.key(document)) }))
    }

    fn read(&mut self, document: &[u8]) -> Result<Option<u32>, Fault> {
        self.around.foreign = false;
        track(document, &self.plan, self.limits.depth as usize, &mut self.overlay, &mut self.around)
    }

    /// A document with insignificant white space: it is taken out first.
    fn spaced(&mut self, document: &[u8], out: &mut Vec<u8>) -> Outcome<Verdict<'static>> {
        let mut compact = Vec::with_capacity(document.len());
        strip(document, &mut compact, usize::MAX);
        self.overlay.clear();
        let original = |at| strip(document, &mut Vec::new(), at);
        match self.read(&compact) {
            Ok(root) => self.instructions(&compact, root, false, out).map(Verdict::into_owned),
            Err(Fault::Syntax(at)) => Err(self.fault(Fault::Syntax(original(at)))),
            Err(Fault::Depth(at)) => Err(self.fault(Fault::Depth(original(at)))),
        }
    }

    /// What comes first is told: it may be too deep before it stops being UTF-8.
    fn not_utf8(&mut self, document: &[u8], valid: usize) -> Box<Poison> {
        self.overlay.clear();
        let mut compact = Vec::new();
        strip(document.get(..valid).unwrap_or_default(), &mut compact, usize::MAX);
        match self.read(&compact) {
            Err(Fault::Depth(at)) => self.fault(Fault::Depth(strip(document, &mut Vec::new(), at))),
            _ => self.fault(Fault::Syntax(valid)),
        }
    }

    fn fault(&self, fault: Fault) -> Box<Poison> {
        match fault {
            Fault::Syntax(at) => poison("invalid-json", format!("the document is not JSON from byte {at} on")),
            Fault::Depth(at) => {
                let limit = self.limits.depth;
                poison("limit-depth", format!("the container at byte {at} is open inside of {limit} others, and depth is {limit}"))
            }
        }
    }

    fn instructions<'a>(&mut self, document: &'a [u8], root: Option<u32>, learn: bool, out: &mut Vec<u8>) -> Outcome<Verdict<'a>> {
        let Some(root) = root else {
            return Err(poison("not-an-object", "the document is no JSON object".to_owned()));
        };
        let texts = Texts { document, pool: &self.plan.pool };
        self.shapes.facts.clear();
        let mut run = Run {
            editor: Editor { plan: &self.plan, texts, overlay: &mut self.overlay, root },
            depth: self.limits.depth as usize,
            most_bytes: document.len() as u64,
            measure: false,
            route: None,
            facts: learn.then_some(&mut self.shapes.facts),
        };
        for (number, step) in self.plan.steps.iter().enumerate() {
            if self.spent.operations >= self.limits.operations {
                let reason = format!("instruction {number} is one more than operations, which is {}", self.limits.operations);
                return Err(poison("limit-operations", reason));
            }
            self.spent.operations += 1;
            if run.step(number, step)? {
                return Ok(Verdict::Drop);
            }
        }
        let Run { most_bytes, measure, route, .. } = run;
        let before = out.len();
        let edited = Edited { plan: &self.plan, texts, overlay: &self.overlay };
        let bytes = if measure || most_bytes > self.limits.document_bytes { self.measure(edited, root)? } else { most_bytes };
        let mut writer = Writer::new(out, usize::try_from(bytes).unwrap_or(0));
        let Ok(()) = edited.write(Value::Object(root), &mut writer);
        writer.finish(texts);
        if learn && !measure {
            let growth = most_bytes - document.len() as u64;
            self.shapes.learn(edited, root, growth, &mut self.around);
        }
        self.count((out.len() - before) as u64)?;
        Ok(Verdict::Keep { partition_key: route.map(|route| route.key(document)) })
    }

    /// Gives the bytes that the document has when it is written.
    fn measure(&self, edited: Edited<'_>, root: u32) -> Outcome<u64> {
        let Limits { depth, document_bytes, .. } = self.limits;
        match measure(edited, root, depth as usize) {
            Err(TooDeep) => Err(poison("limit-depth", format!("more than {depth} containers are open at once in the output"))),
            Ok(Extent { bytes, .. }) if bytes > document_bytes => {
                let reason = format!("the output has {bytes} bytes, and document_bytes is {document_bytes}");
                Err(poison("limit-document-bytes", reason))
            }
            Ok(Extent { bytes, .. }) => Ok(bytes),
        }
    }
}

fn is_json(content_type: &str) -> bool {
    const JSON: &[u8] = b"application/json";
    content_type.as_bytes().get(..JSON.len()).is_some_and(|start| start.eq_ignore_ascii_case(JSON))
}

/// Without the white space at the end, which alone is no reason to make a copy.
fn trim(document: &[u8]) -> &[u8] {
    let blanks = document.iter().rev().take_while(|byte| is_blank(**byte)).count();
    document.get(..document.len() - blanks).unwrap_or_default()
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
