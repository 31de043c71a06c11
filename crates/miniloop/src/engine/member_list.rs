//! A task group as the loop sees it: who of it is ready, and who is to be told.
//!
//! The members of a group are polled by the group's own future, since they borrow from its surroundings. The loop must not reach them. Each
//! has a slot, so that it has a word and a waker like everybody, and the slot leads to this list, which holds words and names and no
//! future. So a group that is forgotten leaves nothing behind that could be polled or dropped.
//!
//! ```text
//! wake of a member ---> its slot ---> its word joins the ready list ---> whoever polled the group last is woken, once
//! poll of the group: takes as many words as stood in the list, and polls their members
//! ```
//!
//! Next: `core.rs`, whose `make_ready` leads here; `group/run.rs` and `branches.rs` poll.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::task::Waker;

use crate::config::MEMBERS_PER_POLL;
use crate::engine::record::Record;
use crate::engine::word::Word;

#[derive(Default)]
pub(crate) struct MemberList {
    ready: RefCell<VecDeque<Word>>,
    /// With what the group was polled last. It is taken to be woken: until the group is polled again, everybody else is only listed.
    waker: Cell<Option<Waker>>,
    /// The job in which the group was polled last.
    poller: Cell<Option<Word>>,
    /// Of those in the group, by their seats.
    records: RefCell<Vec<Option<Record>>>,
    /// The names of those that were given one, by their words.
    names: RefCell<BTreeMap<u64, Rc<str>>>,
}

impl MemberList {
    /// Lists a member that is ready. What is returned has to be woken, with nothing borrowed: it may be foreign code.
    #[must_use = "a group that is not woken hangs"]
    pub(crate) fn push(&self, word: Word) -> Option<Waker> {
        self.ready.borrow_mut().push_back(word);
        self.take_waker()
    }

    /// Whoever polled the group last, unless it has been woken since.
    pub(crate) fn take_waker(&self) -> Option<Waker> {
        self.waker.take()
    }

    pub(crate) fn pop(&self) -> Option<Word> {
        self.ready.borrow_mut().pop_front()
    }

    /// How many members one poll of the group may run: those that are ready when it begins, up to a bound.
    pub(crate) fn turn_len(&self) -> usize {
        self.ready.borrow().len().min(MEMBERS_PER_POLL)
    }

    /// A poll of the group ends: who is left over is for the next one, which is asked for.
    pub(crate) fn end_poll(&self) {
        if !self.ready.borrow().is_empty() {
            self.take_waker().into_iter().for_each(Waker::wake);
        }
    }

    /// The group is polled by the job `poller`, with `waker`.
    pub(crate) fn set_poller(&self, poller: Option<Word>, waker: &Waker) {
        self.poller.set(poller);
        let present = self.waker.take().filter(|present| present.will_wake(waker));
        self.waker.set(Some(present.unwrap_or_else(|| waker.clone())));
    }

    pub(crate) fn poller(&self) -> Option<Word> {
        self.poller.get()
    }

    pub(crate) fn set_name(&self, word: Word, name: Rc<str>) {
        self.names.borrow_mut().insert(word.as_u64(), name);
    }

    /// Somebody takes a seat.
    pub(crate) fn sit(self: &Rc<Self>, index: u32, number: u32, record: Record) -> Seat {
        let mut records = self.records.borrow_mut();
        let place = place_of(index);
        if place >= records.len() {
            records.resize_with(place + 1, || None);
        }
        records[place] = Some(record);
        Seat { list: self.clone(), index, number }
    }

    /// What is remembered of who sits there. `look` must not call user code.
    pub(crate) fn record<R>(&self, index: u32, look: impl FnOnce(&Record) -> R) -> Option<R> {
        self.records.borrow().get(place_of(index))?.as_ref().map(look)
    }

    /// Forgets a member that has gone. What is returned belongs to users: it is dropped with care.
    pub(crate) fn rise(&self, index: u32, word: Word) -> Option<Record> {
        let mut names = self.names.borrow_mut();
        if !names.is_empty() {
            names.remove(&word.as_u64());
        }
        self.records.borrow_mut().get_mut(place_of(index))?.take()
    }
}

/// The body of a group comes first.
fn place_of(index: u32) -> usize {
    index.wrapping_add(1) as usize
}

/// What the slot of a member holds.
pub(crate) struct Seat {
    pub(crate) list: Rc<MemberList>,
    /// Where the group keeps the member; [`Seat::BODY`] for its body.
    pub(crate) index: u32,
    /// How many members the group had before it, for its name.
    pub(crate) number: u32,
}

impl Seat {
    pub(crate) const BODY: u32 = u32::MAX;

    /// What is remembered of who sits here. `look` must not call user code.
    pub(crate) fn record<R>(&self, look: impl FnOnce(&Record) -> R) -> Option<R> {
        self.list.record(self.index, look)
    }

    /// The name that was given to it.
    pub(crate) fn given_name(&self, word: Word) -> Option<Rc<str>> {
        self.list.names.borrow().get(&word.as_u64()).cloned()
    }

    /// What the member is called in reports and dumps: ``member `reader` ``, or `body of a task group`.
    pub(crate) fn describe(&self, word: Word) -> String {
        describe(self.index, self.given_name(word).as_deref(), self.number)
    }
}

/// The same of who may have gone.
pub(crate) fn describe(index: u32, given_name: Option<&str>, number: u32) -> String {
    if index == Seat::BODY { "body of a task group".to_owned() } else { format!("member `{}`", name_of(given_name, number)) }
}

/// A member by the name that it was given, or by its number in its group.
pub(crate) fn name_of(given_name: Option<&str>, number: u32) -> String {
    given_name.map_or_else(|| format!("member-{number}"), str::to_owned)
}
