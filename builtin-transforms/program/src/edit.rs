//! Finding, placing and removing values in a document.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::decode::decode;
use crate::overlay::{Member, NONE, Object, Overlay, Texts, Value};
use crate::plan::{EMPTY_OBJECT, Part, Plan};
use crate::poison::{Outcome, poison};
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
    pub(crate) fn find(&mut self, path: &[Part]) -> Outcome<Option<Value>> {
        let mut object = self.root;
        for part in 0..path.len() {
            let Some(member) = self.member(object, path, part)? else { return Ok(None) };
            let value = self.overlay.members[member].value;
            if part + 1 == path.len() {
                return Ok(Some(value).filter(|value| !self.is_null(*value)));
            }
            let Some(inner) = self.open(member) else { return Ok(None) };
            object = inner;
        }
        Ok(None)
    }

    /// Puts a value at the end of a path. Parents that are missing or null become objects.
    pub(crate) fn place(&mut self, path: &[Part], value: Value) -> Outcome<()> {
        let mut object = self.root;
        for part in 0..path.len() {
            self.overlay.objects[object].changed = true;
            let member = match self.member(object, path, part)? {
                Some(member) => member,
                None => match path.get(part) {
                    Some(part) => self.overlay.add(object, *part),
                    None => return Ok(()),
                },
            };
            if part + 1 == path.len() {
                let member = &mut self.overlay.members[member];
                member.value = value;
                member.replaced = true;
                return Ok(());
            }
            if self.is_null(self.overlay.members[member].value) {
                self.replace_by_object(member, path, part + 1);
            }
            let Some(inner) = self.own(member) else {
                return Err(poison("parent-not-object", format!("{} is no object", self.plan.path(path, part))));
            };
            object = inner;
        }
        Ok(())
    }

    /// Removes the member at the end of a path, if it is there.
    pub(crate) fn remove(&mut self, path: &[Part]) -> Outcome<()> {
        let mut object = self.root;
        for part in 0..path.len() {
            let Some(member) = self.member(object, path, part)? else { return Ok(()) };
            self.overlay.objects[object].changed = true;
            if part + 1 == path.len() {
                self.overlay.members[member].value = Value::Gone;
                return Ok(());
            }
            let Some(inner) = self.own(member) else { return Ok(()) };
            object = inner;
        }
        Ok(())
    }

    pub(crate) fn is_null(&self, value: Value) -> bool {
        match value {
            Value::Gone => true,
            Value::Text(text) => self.texts.first(text) == b'n',
            Value::Object(_) => false,
        }
    }

    /// The member of an object that part of a path names.
    #[inline(always)]
    fn member(&mut self, object: u32, path: &[Part], part: usize) -> Outcome<Option<u32>> {
        let listed = self.overlay.objects[object].listed;
        if listed != NONE && path.get(part).is_some_and(|part| listed != part.above) {
            self.list_all(object);
        }
        self.overlay.find(self.plan, object, path, part)
    }

    fn replace_by_object(&mut self, member: u32, path: &[Part], part: usize) {
        let listed = path.get(part).map_or(NONE, |part| part.above);
        let object = self.overlay.objects.push(Object::new(EMPTY_OBJECT, listed));
        let member = &mut self.overlay.members[member];
        member.value = Value::Object(object);
        member.replaced = true;
    }

    /// The object that a member's value is, made one that can be gone into where it is a text.
    fn open(&mut self, member: u32) -> Option<u32> {
        match self.overlay.members[member].value {
            Value::Object(object) => Some(object),
            Value::Text(text) if self.texts.first(text) == b'{' => {
                let object = self.overlay.objects.push(Object::new(text, NONE));
                self.list_all(object);
                self.overlay.members[member].value = Value::Object(object);
                Some(object)
            }
            Value::Text(_) | Value::Gone => None,
        }
    }

    /// The same, made one that may be changed: no other place has it.
    fn own(&mut self, member: u32) -> Option<u32> {
        let object = self.open(member)?;
        if !self.overlay.objects[object].shared {
            return Some(object);
        }
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
        Some(clone)
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
