//! Finding, placing and removing values in a document.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::decode::decode;
use crate::overlay::{Member, NONE, Object, Overlay, Text, Texts, Twice, Value};
use crate::plan::{EMPTY_OBJECT, Part, Plan, Whole};
use crate::poison::{Outcome, Poison, poison};
use crate::walk::Walk;

/// One document under the instructions of a program.
pub(crate) struct Editor<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) texts: Texts<'a>,
    pub(crate) overlay: &'a mut Overlay,
    pub(crate) root: u32,
}

impl Editor<'_> {
    /// The value at the end of a path; none where it is missing or null, or the path leads through anything but objects.
    #[inline(always)]
    pub(crate) fn find(&mut self, path: &[Part]) -> Outcome<Option<Value>> {
        match path.last().and_then(|last| self.overlay.straight(last.node)) {
            Some(Member { value, .. }) => Ok(if self.is_null(*value) { None } else { Some(*value) }),
            None => self.go(path),
        }
    }

    /// The same from object to object.
    #[inline(never)]
    fn go(&mut self, path: &[Part]) -> Outcome<Option<Value>> {
        let Some((last, parents)) = path.split_last() else { return Ok(None) };
        let mut object = self.root;
        for part in parents {
            let Some(member) = self.member(object, part, path)? else { return Ok(None) };
            let Some(inner) = self.open(member) else { return Ok(None) };
            object = inner;
        }
        let Some(member) = self.member(object, last, path)? else { return Ok(None) };
        let value = self.overlay.members[member].value;
        Ok(if self.is_null(value) { None } else { Some(value) })
    }

    /// Puts a value at the end of a path. Parents that are missing or null become objects, or `whole` in its place.
    #[inline(always)]
    pub(crate) fn place(&mut self, path: &[Part], value: Value, whole: Option<Whole>) -> Outcome<()> {
        match path.split_last() {
            Some((last, parents)) if self.overlay.straight(last.node).is_some() => {
                self.change_around(parents);
                self.put(last.node, value);
                Ok(())
            }
            _ => self.go_and_place(path, value, whole),
        }
    }

    #[inline(never)]
    fn go_and_place(&mut self, path: &[Part], value: Value, whole: Option<Whole>) -> Outcome<()> {
        let Some((last, parents)) = path.split_last() else { return Ok(()) };
        let mut object = self.root;
        for (number, part) in parents.iter().enumerate() {
            let member = self.member_or_new(object, part, path)?;
            if self.is_null(self.overlay.members[member].value) {
                if let Some(whole) = whole.filter(|whole| whole.part == number) {
                    self.put(member, Value::Text(whole.value));
                    return Ok(());
                }
                self.replace_by_object(member, part.node);
            }
            let Some(inner) = self.own(member) else { return Err(self.no_object(part, path)) };
            object = inner;
        }
        let member = self.member_or_new(object, last, path)?;
        self.put(member, value);
        Ok(())
    }

    /// Removes the member at the end of a path, if it is there.
    #[inline(always)]
    pub(crate) fn remove(&mut self, path: &[Part]) -> Outcome<()> {
        match path.split_last() {
            Some((last, parents)) if self.overlay.straight(last.node).is_some() => {
                self.change_around(parents);
                self.put(last.node, Value::Gone);
                Ok(())
            }
            _ => self.go_and_remove(path),
        }
    }

    #[inline(never)]
    fn go_and_remove(&mut self, path: &[Part]) -> Outcome<()> {
        let Some((last, parents)) = path.split_last() else { return Ok(()) };
        let mut object = self.root;
        for part in parents {
            let Some(member) = self.member(object, part, path)? else { return Ok(()) };
            self.overlay.objects[object].changed = true;
            let Some(inner) = self.own(member) else { return Ok(()) };
            object = inner;
        }
        if let Some(member) = self.member(object, last, path)? {
            self.overlay.objects[object].changed = true;
            self.put(member, Value::Gone);
        }
        Ok(())
    }

    /// Notes in the objects around a member that can be reached straight that they change.
    #[inline(always)]
    fn change_around(&mut self, parents: &[Part]) {
        self.overlay.objects[self.root].changed = true;
        for part in parents {
            if let Value::Object(object) = self.overlay.members[part.node].value {
                self.overlay.objects[object].changed = true;
            }
        }
    }

    #[inline(always)]
    fn put(&mut self, member: u32, value: Value) {
        let member = &mut self.overlay.members[member];
        let before = std::mem::replace(&mut member.value, value);
        member.replaced = true;
        if matches!(before, Value::Object(_)) {
            self.overlay.bend();
        }
    }

    #[inline(always)]
    pub(crate) fn is_null(&self, value: Value) -> bool {
        match value {
            Value::Gone => true,
            Value::Text(text) => self.texts.first(text) == b'n',
            Value::Object(_) => false,
        }
    }

    /// The member of an object that a part of a path names.
    #[inline(always)]
    fn member(&mut self, object: u32, part: &Part, path: &[Part]) -> Outcome<Option<u32>> {
        let listed = self.overlay.objects[object].listed;
        if listed != part.above && listed != NONE {
            self.list_all(object);
        }
        self.overlay.find(object, part).map_err(|Twice| self.twice(part, path))
    }

    /// The same in an object that changes; made where it is missing, without a value then.
    #[inline(always)]
    fn member_or_new(&mut self, object: u32, part: &Part, path: &[Part]) -> Outcome<u32> {
        self.overlay.objects[object].changed = true;
        Ok(match self.member(object, part, path)? {
            Some(member) => member,
            None => self.overlay.add(object, *part),
        })
    }

    #[cold]
    fn twice(&self, part: &Part, path: &[Part]) -> Box<Poison> {
        poison("duplicate-name", format!("{} is there twice", self.plan.path(path, part)))
    }

    #[cold]
    fn no_object(&self, part: &Part, path: &[Part]) -> Box<Poison> {
        poison("parent-not-object", format!("{} is no object", self.plan.path(path, part)))
    }

    fn replace_by_object(&mut self, member: u32, place: u32) {
        let object = self.overlay.objects.push(Object::new(EMPTY_OBJECT, place));
        let member = &mut self.overlay.members[member];
        member.value = Value::Object(object);
        member.replaced = true;
    }

    /// The object that a member's value is, made one that can be gone into where it is a text.
    #[inline(always)]
    fn open(&mut self, member: u32) -> Option<u32> {
        match self.overlay.members[member].value {
            Value::Object(object) => Some(object),
            Value::Text(text) => self.open_text(member, text),
            Value::Gone => None,
        }
    }

    fn open_text(&mut self, member: u32, text: Text) -> Option<u32> {
        if self.texts.first(text) != b'{' {
            return None;
        }
        let object = self.overlay.objects.push(Object::new(text, NONE));
        self.list_all(object);
        self.overlay.members[member].value = Value::Object(object);
        Some(object)
    }

    /// The same, made one that may be changed: no other place has it.
    #[inline(always)]
    fn own(&mut self, member: u32) -> Option<u32> {
        let object = self.open(member)?;
        Some(if self.overlay.objects[object].shared { self.clone(member, object) } else { object })
    }

    /// An object of its own for a member whose object is shared.
    #[cold]
    fn clone(&mut self, member: u32, object: u32) -> u32 {
        let original = self.overlay.objects[object];
        let clone = Object { first: NONE, last: NONE, stamp: 0, shared: false, ..original };
        let clone = self.overlay.objects.push(clone);
        let mut next = original.first;
        while next != NONE {
            let member = self.overlay.members[next];
            next = member.next;
            if let Value::Object(inner) = member.value {
                self.overlay.objects[inner].shared = true;
            }
            let member = self.overlay.members.push(Member { next: NONE, stamp: 0, again: NONE, ..member });
            self.overlay.link(clone, member);
        }
        self.overlay.members[member].value = Value::Object(clone);
        clone
    }

    /// Lists every member of an object's text whose name is in any path, and keeps what was listed before.
    #[cold]
    fn list_all(&mut self, object: u32) {
        let before = self.overlay.objects[object];
        let mut walk = Walk::object(self.texts, &before);
        let mut seen: BTreeMap<u32, u32> = BTreeMap::new();
        let mut list = Vec::new();
        while let Some(met) = walk.next(self.overlay, self.plan) {
            if let Some(member) = met.listed {
                if met.at != NONE {
                    seen.insert(self.overlay.members[member].name, member);
                }
                list.push(member);
                continue;
            }
            let Some(name) = self.plan.number(&said(met.name)) else { continue };
            if let Some(member) = seen.get(&name) {
                self.overlay.members[*member].twice = true;
                continue;
            }
            let (at, start, end, value) = (met.at, met.start, met.end, met.value);
            let member = Member { at, start, end, value, replaced: false, ..Member::added(name) };
            let member = self.overlay.members.push(member);
            seen.insert(name, member);
            list.push(member);
        }
        for (index, member) in list.iter().enumerate() {
            self.overlay.members[*member].next = list.get(index + 1).copied().unwrap_or(NONE);
        }
        let object = &mut self.overlay.objects[object];
        object.listed = NONE;
        object.stamp = 0;
        object.first = list.first().copied().unwrap_or(NONE);
        object.last = list.last().copied().unwrap_or(NONE);
    }
}

/// What a string says, given its inside.
pub(crate) fn said(inside: &[u8]) -> Cow<'_, [u8]> {
    if !inside.contains(&b'\\') {
        return Cow::Borrowed(inside);
    }
    let mut out = Vec::new();
    decode(inside, &mut out);
    Cow::Owned(out)
}
