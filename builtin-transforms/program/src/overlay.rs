//! What instructions have done to a document so far, over its text, which nobody changes.
//!
//! A value is a piece of text as long as no instruction goes into it. An object that one goes into is a text plus a list of
//! the members that matter; everything between them stays text. So an edit costs what the path costs, not what the document
//! does, and a copy costs nothing: a text is shared because nobody changes it, an object because it is cloned before it is
//! changed in one of its places (only its list; the objects in it are shared then).

use crate::arena::Arena;
use crate::plan::{Part, Plan};

/// In place of a number that there is not.
pub(crate) const NONE: u32 = u32::MAX;

/// Where a piece of text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// In the document.
    Document,
    /// In the pool of the plan.
    Pool,
}

/// A piece of compact JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    pub(crate) source: Source,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Text {
    pub(crate) const EMPTY: Self = Self { source: Source::Document, start: 0, end: 0 };

    pub(crate) fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

/// The texts that pieces are of.
#[derive(Clone, Copy)]
pub(crate) struct Texts<'a> {
    pub(crate) document: &'a [u8],
    pub(crate) pool: &'a [u8],
}

impl<'a> Texts<'a> {
    #[inline(always)]
    pub(crate) fn of(self, source: Source) -> &'a [u8] {
        match source {
            Source::Document => self.document,
            Source::Pool => self.pool,
        }
    }

    #[inline(always)]
    pub(crate) fn get(self, text: Text) -> &'a [u8] {
        self.of(text.source).get(text.start as usize..text.end as usize).unwrap_or_default()
    }

    /// The first byte, which tells the kind.
    #[inline(always)]
    pub(crate) fn first(self, text: Text) -> u8 {
        crate::scan::byte(self.of(text.source), text.start as usize)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    /// There is none: the member was removed.
    Gone,
    Text(Text),
    Object(u32),
}

/// A member of an object that instructions may go into.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) name: u32,
    /// Where it begins in the object's text; [`NONE`] where an instruction added it.
    pub(crate) at: u32,
    /// Where its first value stands in the object's text.
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) value: Value,
    /// Another value stands in the place of the first one.
    pub(crate) replaced: bool,
    /// The text has the name a second time.
    pub(crate) twice: bool,
    /// The next one in the list.
    pub(crate) next: u32,
    /// The stamp of the object that it belongs to, where it is at home in its place.
    pub(crate) stamp: u64,
    /// The member that was added after this one, which is at home, was removed.
    pub(crate) again: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    pub(crate) text: Text,
    /// The place in the tree of paths whose members are in the list; [`NONE`]: the list has every member whose name is in any
    /// path.
    pub(crate) listed: u32,
    /// The list: members of the text in their order, then those that were added, in theirs.
    pub(crate) first: u32,
    pub(crate) last: u32,
    /// What its members carry that are at home in their places; 0: its list must be searched.
    pub(crate) stamp: u64,
    /// Its text is not what it is any more.
    pub(crate) changed: bool,
    /// It stands in more than one place.
    pub(crate) shared: bool,
}

pub(crate) struct Overlay {
    /// First one for each place in the tree of paths: there, members of the document itself are at home. Then the others.
    pub(crate) members: Arena<Member>,
    pub(crate) objects: Arena<Object>,
    /// No object of an earlier document has a stamp above it: so what is at home need not be taken away.
    stamps: u64,
    /// Every member of this document that is at home can be reached: none of them, nor of the objects around it, was replaced,
    /// removed, shared or is there twice.
    straight: bool,
}

impl Overlay {
    pub(crate) fn new(plan: &Plan) -> Self {
        let home = plan.node_names().map(Member::added).collect();
        let objects = Arena::new(Vec::new(), plan.nodes() + plan.parts);
        Self { members: Arena::new(home, plan.parts), objects, stamps: 0, straight: true }
    }

    /// Forgets the document.
    pub(crate) fn clear(&mut self) {
        self.stamps += self.objects.len() as u64;
        self.members.clear();
        self.objects.clear();
        self.straight = true;
    }

    /// From now on a member is found by going through the objects around it.
    pub(crate) fn bend(&mut self) {
        self.straight = false;
    }

    /// The member at home in a place of this document, where that alone says that the path to it leads to it.
    #[inline(always)]
    pub(crate) fn straight(&self, node: u32) -> Option<&Member> {
        let member = &self.members[node];
        let there = member.stamp > self.stamps && member.again == NONE && !matches!(member.value, Value::Gone);
        (self.straight && there).then_some(member)
    }

    /// An object whose text begins at `start`, and whose members will be at home.
    #[inline(always)]
    pub(crate) fn push_object(&mut self, start: usize, node: u32) -> (u32, u64) {
        let stamp = self.stamps + self.objects.len() as u64 + 1;
        let text = Text { source: Source::Document, start: start as u32, end: start as u32 };
        (self.objects.push(Object { stamp, ..Object::new(text, node) }), stamp)
    }

    /// Appends a member to the list of an object.
    #[inline(always)]
    pub(crate) fn link(&mut self, object: u32, member: u32) {
        let object = &mut self.objects[object];
        let last = std::mem::replace(&mut object.last, member);
        if last == NONE {
            object.first = member;
        } else {
            self.members[last].next = member;
        }
    }

    /// Adds a member that has no value yet to an object.
    pub(crate) fn add(&mut self, object: u32, part: Part) -> u32 {
        let stamp = self.objects[object].stamp;
        let member = Member { stamp, ..Member::added(part.name) };
        let number = if stamp == 0 {
            self.members.push(member)
        } else if self.members[part.node].stamp != stamp {
            self.members[part.node] = member;
            part.node
        } else {
            // One that was removed is still in the list.
            let number = self.members.push(member);
            self.members[part.node].again = number;
            number
        };
        self.link(object, number);
        number
    }

    /// The members in the list of an object.
    pub(crate) fn list(&self, object: u32) -> impl Iterator<Item = (u32, &Member)> {
        let mut next = self.objects[object].first;
        std::iter::from_fn(move || {
            if next == NONE {
                return None;
            }
            let (number, member) = (next, &self.members[next]);
            next = member.next;
            Some((number, member))
        })
    }

    /// The member that a part of a path names, in an object that lists it.
    #[inline(always)]
    pub(crate) fn find(&self, object: u32, part: &Part) -> Result<Option<u32>, Twice> {
        let stamp = self.objects[object].stamp;
        let found = if stamp > 0 { self.at_home(part.node, stamp) } else { self.find_in_list(object, part.name) };
        let Some(number) = found else { return Ok(None) };
        let member = &self.members[number];
        match member.value {
            _ if member.twice => Err(Twice),
            Value::Gone => Ok(None),
            Value::Text(_) | Value::Object(_) => Ok(found),
        }
    }

    /// The member at home in a place, if it belongs to the object of this stamp.
    #[inline(always)]
    fn at_home(&self, node: u32, stamp: u64) -> Option<u32> {
        let member = &self.members[node];
        if member.stamp != stamp {
            return None;
        }
        Some(if member.again == NONE { node } else { member.again })
    }

    fn find_in_list(&self, object: u32, name: u32) -> Option<u32> {
        let mut list = self.list(object);
        list.find(|(_, member)| member.name == name && !matches!(member.value, Value::Gone)).map(|(number, _)| number)
    }
}

/// The name that was looked for is there twice.
pub(crate) struct Twice;

impl Object {
    pub(crate) fn new(text: Text, listed: u32) -> Self {
        Self { text, listed, first: NONE, last: NONE, stamp: 0, changed: false, shared: false }
    }
}

impl Member {
    /// Makes the member at home one of the text, where it begins at `at` and its value at `start`. The value is not set yet.
    #[inline(always)]
    pub(crate) fn read(&mut self, at: u32, start: u32, stamp: u64) {
        self.at = at;
        self.start = start;
        self.replaced = false;
        self.twice = false;
        self.next = NONE;
        self.stamp = stamp;
        self.again = NONE;
    }

    /// A member that is not in the text and has no value yet.
    pub(crate) fn added(name: u32) -> Self {
        Self { name, at: NONE, start: NONE, end: NONE, value: Value::Gone, replaced: true, twice: false, next: NONE, stamp: 0, again: NONE }
    }
}
