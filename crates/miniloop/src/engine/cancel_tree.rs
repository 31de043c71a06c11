//! The tree of requests to stop: who can be asked, who would clean up below, and whose turn it is. Rules C1 to C13 of ARCHITECTURE.md.
//!
//! ```text
//! level (task) ── level (timeout) ── catch point ── level (timeout)         a request is made at a level
//!             │                                 └── catch point  <── and goes to the innermost catch points below it: targets
//!             ├── guard      somebody cleans up here: nothing below the parent is targeted by requests at the parent or above
//!             └── shield     the same, for as long as its body lives
//! ```
//!
//! Without a catch point, guard or shield below it a level has no node, unless it has been asked. What is being polled now stands on the
//! `path`, level by level, `None` for one without a node; whoever registers fills these in, outermost first. So parents are those of the
//! last poll (C13), and a body that is only polled costs a push and a pop.
//!
//! This file decides and calls nobody: wakers to be woken or dropped leave through [`Notes`], which its owner, `cancel.rs`, carries out
//! with nothing borrowed. Delivering costs a walk over what stands below; a poll without a standing request, a push and a pop. A poll of a
//! level that was asked looks for somebody busy below: a hundred levels in each other, all asked, cost 5,000 steps a poll. To count the
//! busy instead would cost every catch point a walk up, also where nobody was asked.

use std::cell::Cell;
use std::marker::PhantomData;
use std::mem;
use std::task::Waker;

use crate::engine::word::Word;
use crate::instant::Instant;
use crate::slots::{Key, Slots};

/// Why somebody is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelReason {
    /// Its task or scope was cancelled.
    Cancelled,
    /// The time limit of an enclosing [`timeout`](crate::timeout) or [`scope`](crate::scope) was reached.
    Deadline,
    /// Its group ends: another member failed, or only services are left.
    GroupEnded,
    /// Another branch of its race was first.
    RaceLost,
    /// The loop is shutting down.
    Shutdown,
}

/// A place at which a request to stop can be made. What its owner does with it: `cancel.rs`.
pub(crate) struct Level {
    /// `STALE` without a node. While the level is being polled, its node stands on the path.
    pub(super) node: Cell<Word>,
    /// Its place on the path while it is being polled.
    pub(super) place: Cell<u32>,
    _not_send: PhantomData<*const ()>,
}

/// The place of a level that is not being polled.
pub(super) const NOWHERE: u32 = u32::MAX;

impl Level {
    pub(crate) const fn new() -> Level {
        Level { node: Cell::new(Word::STALE), place: Cell::new(NOWHERE), _not_send: PhantomData }
    }
}

pub(crate) struct CancelTree {
    nodes: Slots<Node>,
    /// What is being polled, from just above the job's own level to the innermost; that one is kept by the core.
    path: Vec<Option<Key>>,
    /// How many requests stand. Without any, nobody is a target.
    standing_len: usize,
    /// How many targets have been woken and not been polled since.
    unpolled_len: usize,
}

struct Node {
    kind: Kind,
    parent: Option<Key>,
    first_child: Option<Key>,
    last_child: Option<Key>,
    next: Option<Key>,
    previous: Option<Key>,
    /// How many of the children are guards.
    guards_len: u32,
    /// A guard here has kept a request from somebody below.
    has_held_back: bool,
    /// A level's.
    request: Option<Request>,
    /// A catch point that was chosen: it ends its body when that is pending, unless somebody below is not done.
    is_target: bool,
    /// It was chosen and woken, and has not been polled since.
    is_unpolled: bool,
    /// It was not polled any more when its task had nothing left to do: nobody waits for it (C6).
    is_lost: bool,
    /// It is on the path: it decides when its poll ends, and need not be woken.
    is_inside: bool,
    /// Of its last poll (C13). `None` once it has been woken: one wake is enough.
    waker: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Level,
    Catch,
    Shield,
    /// A clean-up that is going on.
    Guard,
}

pub(crate) struct Request {
    pub(crate) reason: CancelReason,
    /// When the grace ends.
    pub(crate) deadline: Instant,
    /// The timer of the deadline: armed once somebody below takes time to clean up.
    pub(crate) timer: Option<Word>,
    pub(crate) force: Option<Force>,
}

/// Why clean-up is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Force {
    OutOfGrace,
    Aborted,
}

/// What is left to do when the tree is not borrowed any more.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) woken: Vec<Waker>,
    pub(crate) dropped: Option<Waker>,
    pub(crate) timer: Option<Word>,
}

/// What the requests above somebody mean for it.
enum Exposure {
    /// There is none, or a shield is in between.
    Free,
    /// A guard at this node keeps them back.
    HeldBack(Key),
    Reached,
}

impl CancelTree {
    pub(crate) fn starting_at(generation: u32) -> CancelTree {
        CancelTree { nodes: Slots::starting_at(generation), path: Vec::new(), standing_len: 0, unpolled_len: 0 }
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    // The path.

    /// Polling goes down into a level, which may have no node. Returns its place on the path.
    pub(crate) fn push(&mut self, key: Option<Key>) -> usize {
        self.path.push(key);
        self.path.len() - 1
    }

    pub(crate) fn pop(&mut self) -> Option<Key> {
        let key = self.path.pop().flatten();
        self.set_inside(key, false);
        key
    }

    pub(crate) fn on_path(&self, place: usize) -> Option<Key> {
        self.path.get(place).copied().flatten()
    }

    pub(crate) fn set_on_path(&mut self, place: usize, key: Option<Key>) {
        if let Some(present) = self.path.get_mut(place) {
            *present = key;
        }
    }

    pub(crate) fn set_inside(&mut self, key: Option<Key>, is_inside: bool) {
        if let Some(node) = key.and_then(|key| self.nodes.get_mut(key)) {
            node.is_inside = is_inside;
        }
    }

    /// The innermost of what is being polled. Levels on the way to it get nodes now; `bottom` is the job's own.
    pub(crate) fn innermost(&mut self, bottom: &mut Option<Key>) -> Key {
        let known_len = self.path.iter().rposition(Option::is_some).map_or(0, |place| place + 1);
        let mut innermost = match known_len {
            0 => *bottom.get_or_insert_with(|| self.insert_inside(None)),
            _ => self.path[known_len - 1].expect("its position says so"),
        };
        for place in known_len..self.path.len() {
            innermost = self.insert_inside(Some(innermost));
            self.path[place] = Some(innermost);
        }
        innermost
    }

    fn insert_inside(&mut self, parent: Option<Key>) -> Key {
        let key = self.insert(Kind::Level, parent);
        self.set_inside(Some(key), true);
        key
    }

    /// A node is about to be polled below `parent`: it is neither lost nor waited for, and a catch point under a standing request is a
    /// target from its first poll.
    pub(crate) fn begin_poll(&mut self, key: Key, parent: Key, notes: &mut Notes) {
        if self.node(key).parent != Some(parent) {
            self.relink(key, parent, notes);
        }
        self.set_polled(key);
        let node = self.node_mut(key);
        node.is_lost = false;
        node.is_inside = true;
        let node = self.node(key);
        if self.standing_len > 0 && node.kind == Kind::Catch && !node.is_target && !self.is_busy_below(key) {
            match self.exposure(Some(parent)) {
                Exposure::Free => {}
                Exposure::HeldBack(at) => self.node_mut(at).has_held_back = true,
                Exposure::Reached => self.node_mut(key).is_target = true,
            }
        }
    }

    /// Whether a catch point whose body is pending is to end it now (C2), and why: it is a target, its request still stands, and below it
    /// nobody is left who comes first.
    pub(crate) fn fires(&mut self, key: Key) -> Option<CancelReason> {
        if !self.nodes.get(key)?.is_target {
            return None;
        }
        let reason = self.reason_for(key);
        self.node_mut(key).is_target = reason.is_some();
        reason.filter(|_| !self.is_busy_below(key))
    }

    /// A guard at the parent of a catch point that fires.
    pub(crate) fn insert_guard_beside(&mut self, key: Key) -> Key {
        let parent = self.node(key).parent;
        self.insert(Kind::Guard, parent)
    }

    /// The reason of the nearest request above a node, guards or not.
    pub(crate) fn reason_for(&self, key: Key) -> Option<CancelReason> {
        let mut above = self.node(key).parent;
        while let Some(node) = above.and_then(|key| self.nodes.get(key)) {
            match &node.request {
                Some(request) => return Some(request.reason),
                None if node.kind == Kind::Shield => return None,
                None => above = node.parent,
            }
        }
        None
    }

    // Nodes.

    pub(crate) fn insert(&mut self, kind: Kind, parent: Option<Key>) -> Key {
        let key = self.nodes.insert(Node::new(kind));
        if let Some(parent) = parent {
            self.link(key, parent);
        }
        key
    }

    /// Puts in the waker of the last poll; `waker` is exchanged for what the caller has to drop.
    pub(crate) fn exchange_waker(&mut self, key: Key, waker: &mut Waker) {
        if let Some(node) = self.nodes.get_mut(key) {
            crate::wait_queue::exchange(&mut node.waker, waker);
        }
    }

    /// Whether a node is still here. One of a loop that was closed is not in the tree of the loop that has its id now.
    pub(crate) fn contains(&self, key: Key) -> bool {
        self.nodes.get(key).is_some()
    }

    pub(crate) fn will_wake(&self, key: Key, waker: &Waker) -> bool {
        self.nodes.get(key).and_then(|node| node.waker.as_ref()).is_some_and(|present| present.will_wake(waker))
    }

    /// Takes a node out. Its children belong to its parent from now on, where delivery starts again (C5, C11).
    pub(crate) fn remove(&mut self, key: Key, notes: &mut Notes) {
        if self.nodes.get(key).is_none() {
            return;
        }
        self.set_polled(key);
        let parent = self.node(key).parent;
        self.unlink(key);
        while let Some(child) = self.node(key).first_child {
            self.unlink(child);
            if let Some(parent) = parent {
                self.link(child, parent);
            }
        }
        let Some(node) = self.nodes.remove(key) else { return };
        notes.dropped = node.waker;
        if let Some(request) = node.request {
            self.standing_len -= 1;
            notes.timer = request.timer;
        }
        let Some(parent) = parent else { return };
        // Those whom it protected may be alive, in a future that was moved out.
        self.node_mut(parent).has_held_back |= node.has_held_back || node.kind == Kind::Shield;
        self.deliver_again(parent, notes);
    }

    fn relink(&mut self, key: Key, parent: Key, notes: &mut Notes) {
        let old = self.node(key).parent;
        self.unlink(key);
        self.link(key, parent);
        // It was chosen for a request that does not concern it any more.
        self.node_mut(key).is_target = false;
        if let Some(old) = old {
            self.deliver_again(old, notes);
        }
    }

    // Requests.

    /// Makes a request at a level, or shortens the one that stands there (C7). True if it is new.
    pub(crate) fn request(&mut self, key: Key, reason: CancelReason, deadline: Instant, notes: &mut Notes) -> bool {
        let Some(node) = self.nodes.get_mut(key) else { return false };
        if let Some(request) = &mut node.request {
            if deadline < request.deadline {
                request.deadline = deadline;
                // Armed again for the new one when the owner asks for the verdict.
                notes.timer = request.timer.take();
            }
            return false;
        }
        node.request = Some(Request { reason, deadline, timer: None, force: None });
        self.standing_len += 1;
        self.deliver(key, notes);
        true
    }

    pub(crate) fn request_of(&mut self, key: Key) -> Option<&mut Request> {
        self.nodes.get_mut(key)?.request.as_mut()
    }

    /// Ends all clean-up below a level that has been asked; its owner is woken.
    pub(crate) fn force(&mut self, key: Key, force: Force, notes: &mut Notes) {
        if let Some(request) = self.request_of(key) {
            request.force.get_or_insert(force);
            self.wake(key, notes);
        }
    }

    /// Takes back the request of the level at which a guard stands (C5). False when the request came from further up: it goes on.
    pub(crate) fn absorb(&mut self, guard: Key, notes: &mut Notes) -> bool {
        let Some(parent) = self.nodes.get(guard).and_then(|node| node.parent) else { return true };
        if let Some(request) = self.node_mut(parent).request.take_if(|request| request.force.is_none()) {
            self.standing_len -= 1;
            notes.timer = request.timer;
            return true;
        }
        self.reason_for(guard).is_none()
    }

    /// Whether somebody below is not done: a clean-up, a shield or a catch point that can still be polled.
    pub(crate) fn is_busy_below(&self, key: Key) -> bool {
        self.is_busy_beside(key, None)
    }

    /// The same below `key` with the exception of a child that is known not to be.
    fn is_busy_beside(&self, key: Key, idle: Option<Key>) -> bool {
        self.node(key).guards_len > 0 || self.children(key).any(|child| Some(child) != idle && self.is_busy(child))
    }

    fn is_busy(&self, key: Key) -> bool {
        let node = self.node(key);
        !node.is_lost && (node.kind != Kind::Level || self.is_busy_below(key))
    }

    /// The job at the root has been polled and has nothing left to do. Targets below that were woken and not polled never will be: they are
    /// skipped, and those above them are next (C6). True if there were any.
    pub(crate) fn skip_unreachable(&mut self, root: Key, notes: &mut Notes) -> bool {
        let mut parents = Vec::new();
        let mut below = vec![root];
        while let Some(key) = below.pop() {
            if self.unpolled_len == 0 {
                break;
            }
            if self.node(key).is_unpolled {
                self.set_polled(key);
                self.node_mut(key).is_lost = true;
                parents.extend(self.node(key).parent);
            }
            below.extend(self.children(key));
        }
        for parent in &parents {
            self.deliver_again(*parent, notes);
        }
        !parents.is_empty()
    }

    pub(crate) fn has_unpolled(&self) -> bool {
        self.unpolled_len > 0
    }

    // Delivery.

    /// Chooses the innermost catch points below a node. False when there is nobody below who has to be waited for.
    fn deliver(&mut self, key: Key, notes: &mut Notes) -> bool {
        if self.node(key).guards_len > 0 {
            self.node_mut(key).has_held_back = true;
            return true;
        }
        self.node_mut(key).has_held_back = false;
        let mut is_handled = false;
        let mut next = self.node(key).first_child;
        while let Some(child) = next {
            let node = self.node(child);
            next = node.next;
            is_handled |= match node.kind {
                _ if node.is_lost => false,
                Kind::Level => self.deliver(child, notes),
                Kind::Catch => {
                    if !self.deliver(child, notes) {
                        self.choose(child, notes);
                    }
                    true
                }
                Kind::Shield | Kind::Guard => true,
            };
        }
        is_handled
    }

    /// A child of this node has gone: whoever is next for the requests that stand here and above is chosen.
    fn deliver_again(&mut self, key: Key, notes: &mut Notes) {
        let mut place = Some(key);
        // What is known on the way up, so that a deep tree is not walked again at every step: a request from above reaches this place, and
        // below that one nobody is busy.
        let (mut is_reached, mut idle) = (false, None);
        while self.standing_len > 0
            && let Some(key) = place
        {
            match if is_reached { Exposure::Reached } else { self.exposure(place) } {
                Exposure::Free => return,
                // Those below a guard have been chosen or noted already. A catch point in between might be next.
                Exposure::HeldBack(at) if at == key => return,
                Exposure::HeldBack(at) => {
                    self.node_mut(at).has_held_back = true;
                    return;
                }
                Exposure::Reached => {}
            }
            // All that stands below has been chosen already, unless it was held back.
            let is_handled = if self.node(key).has_held_back { self.deliver(key, notes) } else { self.is_busy_beside(key, idle) };
            let node = self.node(key);
            match node.kind {
                _ if is_handled => return,
                Kind::Catch if !node.is_lost => return self.choose(key, notes),
                // Its owner ends the body. Requests further up do not wait for that.
                Kind::Level if node.request.is_some() => self.wake(key, notes),
                _ => {}
            }
            (is_reached, idle) = (self.node(key).request.is_none(), Some(key));
            place = self.node(key).parent;
        }
    }

    fn choose(&mut self, key: Key, notes: &mut Notes) {
        let node = self.node_mut(key);
        node.is_target = true;
        if !node.is_inside && !node.is_unpolled {
            node.is_unpolled = true;
            self.unpolled_len += 1;
        }
        self.wake(key, notes);
    }

    fn wake(&mut self, key: Key, notes: &mut Notes) {
        let node = self.node_mut(key);
        if !node.is_inside {
            notes.woken.extend(node.waker.take());
        }
    }

    /// What the requests at a node and above mean for those below it.
    fn exposure(&self, mut place: Option<Key>) -> Exposure {
        let mut guard = None;
        while let Some(key) = place {
            let node = self.node(key);
            if node.guards_len > 0 {
                guard.get_or_insert(key);
            }
            if node.request.is_some() {
                return guard.map_or(Exposure::Reached, Exposure::HeldBack);
            }
            if node.kind == Kind::Shield {
                break;
            }
            place = node.parent;
        }
        Exposure::Free
    }

    // Links.

    fn node(&self, key: Key) -> &Node {
        self.nodes.get(key).expect("links lead to live nodes")
    }

    fn node_mut(&mut self, key: Key) -> &mut Node {
        self.nodes.get_mut(key).expect("links lead to live nodes")
    }

    fn children(&self, key: Key) -> impl Iterator<Item = Key> + use<'_> {
        std::iter::successors(self.node(key).first_child, |child| self.node(*child).next)
    }

    fn set_polled(&mut self, key: Key) {
        if mem::take(&mut self.node_mut(key).is_unpolled) {
            self.unpolled_len -= 1;
        }
    }

    /// Puts a node that has no parent behind the children of one.
    fn link(&mut self, key: Key, parent: Key) {
        let is_guard = self.node(key).kind == Kind::Guard;
        let above = self.node_mut(parent);
        above.guards_len += u32::from(is_guard);
        let last = above.last_child.replace(key);
        match last {
            Some(last) => self.node_mut(last).next = Some(key),
            None => self.node_mut(parent).first_child = Some(key),
        }
        let node = self.node_mut(key);
        (node.parent, node.previous, node.next) = (Some(parent), last, None);
    }

    fn unlink(&mut self, key: Key) {
        let node = self.node_mut(key);
        let Some(parent) = node.parent.take() else { return };
        let (previous, next, is_guard) = (node.previous.take(), node.next.take(), node.kind == Kind::Guard);
        self.node_mut(parent).guards_len -= u32::from(is_guard);
        match previous {
            Some(previous) => self.node_mut(previous).next = next,
            None => self.node_mut(parent).first_child = next,
        }
        match next {
            Some(next) => self.node_mut(next).previous = previous,
            None => self.node_mut(parent).last_child = previous,
        }
    }
}

impl Node {
    fn new(kind: Kind) -> Node {
        Node {
            kind,
            parent: None,
            first_child: None,
            last_child: None,
            next: None,
            previous: None,
            guards_len: 0,
            has_held_back: false,
            request: None,
            is_target: false,
            is_unpolled: false,
            is_lost: false,
            is_inside: false,
            waker: None,
        }
    }
}
