//! Who waits for one thing, first come first served.
//!
//! Every `&self` method that waits (a read on a shared stream, a shared promise) puts its task's waker here. The queue must not know what
//! is waited for, and it never clones, wakes or drops a waker: that may run foreign code, so it is left to the owner, before and after its
//! own borrow.
//!
//! A waiter is a waker, or more for owners that hand things over (`sync/line.rs`): one whose turn has come can be *set aside*. It stands in
//! line no more but keeps its node, where it finds what it was given, until it takes that away with its key.
//!
//! Cost: every operation is O(1) except [`WaitQueue::take_all`]; 32 bytes a waker. A queue that never had a waiter owns no allocation, an
//! emptied one keeps at most [`WAIT_NODES_KEPT`] nodes, so a connection that waits again and again does not allocate again and again.
//!
//! Next: `driver/mod.rs`, which has one queue per source and direction.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;

use crate::config::WAIT_NODES_KEPT;

/// A first-in, first-out queue of waiters that can leave from the middle.
pub(crate) struct WaitQueue<W = Waker> {
    nodes: Vec<Node<W>>,
    first: u32,
    last: u32,
    /// Head of the list of unused nodes, linked through `next`.
    free: u32,
    /// How many are in here, in line or set aside.
    len: u32,
    /// Numbers the waiters ever queued, so that the key of one that has left never names its successor in the same node.
    next_ticket: u64,
}

/// The place of one waiter. It goes stale when the waiter is taken or removed; a stale key is harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    index: u32,
    ticket: u64,
}

impl WaitQueue {
    /// Queues the waiter that `key` remembers, at the end. One that still waits keeps its place and only changes its waker (O8).
    ///
    /// `waker` is exchanged for what the caller has to drop after the borrow that guards the queue.
    pub(crate) fn register(&mut self, key: &mut Option<Key>, waker: &mut Waker) {
        if let Some(key) = *key
            && let Some(present) = self.get_mut(key)
        {
            return mem::swap(present, waker);
        }
        *key = Some(self.push(take(waker)));
    }
}

impl<W> WaitQueue<W> {
    pub(crate) const fn new() -> Self {
        Self { nodes: Vec::new(), first: NONE, last: NONE, free: NONE, len: 0, next_ticket: 0 }
    }

    /// How many are in here, in line or set aside.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether nobody stands in line.
    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Those who wait, in no order that anybody may observe.
    pub(crate) fn waiters(&self) -> impl Iterator<Item = &W> {
        self.nodes.iter().filter_map(|node| node.waiter.as_ref())
    }

    /// Puts a waiter at the end of the line.
    pub(crate) fn push(&mut self, waiter: W) -> Key {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let node = Node { waiter: Some(waiter), ticket, previous: self.last, next: NONE };
        let index = match self.free {
            NONE => {
                self.nodes.push(node);
                u32::try_from(self.nodes.len() - 1).expect("fewer than 2^32 waiters")
            }
            index => {
                let slot = &mut self.nodes[index as usize];
                self.free = slot.next;
                *slot = node;
                index
            }
        };
        match self.last {
            NONE => self.first = index,
            last => self.nodes[last as usize].next = index,
        }
        self.last = index;
        self.len += 1;
        Key { index, ticket }
    }

    /// The waiter, in line or set aside; `None` if it has been taken or removed.
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut W> {
        let node = self.nodes.get_mut(key.index as usize)?;
        if node.ticket == key.ticket { node.waiter.as_mut() } else { None }
    }

    /// Whether the waiter is still here, neither taken nor removed.
    pub(crate) fn contains(&self, key: Key) -> bool {
        self.nodes.get(key.index as usize).is_some_and(|node| node.ticket == key.ticket && node.waiter.is_some())
    }

    /// The waiter that came first.
    pub(crate) fn first(&self) -> Option<&W> {
        self.nodes.get(self.first as usize).and_then(|node| node.waiter.as_ref())
    }

    /// Takes one waiter out, wherever it stands. `None` if it has left already.
    #[must_use = "drop the waiter after the borrow that guards the queue: its destructor may be foreign code"]
    pub(crate) fn remove(&mut self, key: Key) -> Option<W> {
        self.get_mut(key)?;
        if self.nodes[key.index as usize].previous != ASIDE {
            self.unlink(key.index);
        }
        self.release(key.index)
    }

    /// Takes the waiter that came first.
    #[must_use = "a waiter that is taken and not woken hangs"]
    pub(crate) fn take_first(&mut self) -> Option<W> {
        if self.is_empty() {
            return None;
        }
        let first = self.first;
        self.unlink(first);
        self.release(first)
    }

    /// Takes all waiters, in the order in which they came.
    pub(crate) fn take_all(&mut self, taken: &mut Vec<W>) {
        taken.reserve(self.len());
        while let Some(waiter) = self.take_first() {
            taken.push(waiter);
        }
    }

    /// Takes the waiter that came first out of the line, but not out of its node: it is found there by its key until that is removed.
    pub(crate) fn set_first_aside(&mut self) -> Option<&mut W> {
        if self.is_empty() {
            return None;
        }
        let first = self.first;
        self.unlink(first);
        let node = &mut self.nodes[first as usize];
        node.previous = ASIDE;
        node.waiter.as_mut()
    }

    /// Takes a node out of the line.
    fn unlink(&mut self, index: u32) {
        let Node { previous, next, .. } = self.nodes[index as usize];
        match previous {
            NONE => self.first = next,
            previous => self.nodes[previous as usize].next = next,
        }
        match next {
            NONE => self.last = previous,
            next => self.nodes[next as usize].previous = previous,
        }
    }

    /// Empties a node that stands in no line.
    fn release(&mut self, index: u32) -> Option<W> {
        let node = &mut self.nodes[index as usize];
        let waiter = node.waiter.take();
        node.next = self.free;
        self.free = index;
        self.len -= 1;
        if self.len == 0 {
            self.nodes.clear();
            self.nodes.shrink_to(WAIT_NODES_KEPT);
            self.free = NONE;
        }
        waiter
    }
}

/// Puts a waker into a place for one. It is exchanged for what the caller has to drop, as by [`WaitQueue::register`].
pub(crate) fn exchange(place: &mut Option<Waker>, waker: &mut Waker) {
    match place {
        Some(present) => mem::swap(present, waker),
        None => *place = Some(take(waker)),
    }
}

/// Wakes all, in order; the first panic, of a waker of another executor, goes on when nobody is left to be woken. One that comes while
/// another unwinds, in a destructor, ends here: two at once would end the process.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    let mut first_panic = None;
    for waker in wakers {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            first_panic.get_or_insert(payload);
        }
    }
    if let Some(payload) = first_panic
        && !std::thread::panicking()
    {
        resume_unwind(payload);
    }
}

/// Leaves a waker that is nothing.
fn take(waker: &mut Waker) -> Waker {
    mem::replace(waker, Waker::noop().clone())
}

struct Node<W> {
    /// `Some` while the node is in use.
    waiter: Option<W>,
    ticket: u64,
    /// [`ASIDE`] for one that stands in line no more.
    previous: u32,
    next: u32,
}

/// No node.
const NONE: u32 = u32::MAX;

/// What a node that is set aside has for its predecessor.
const ASIDE: u32 = u32::MAX - 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::WakeLog;

    /// Runs a script: `+a` registers `a` with its key, `-a` removes it, `first` and `all` take. Returns whom it took, in order.
    fn run(queue: &mut WaitQueue, script: &'static str) -> String {
        let log = WakeLog::default();
        let mut keys = [None; 26];
        for step in script.split_whitespace() {
            let (verb, name) = step.split_at(1);
            let slot = name.as_bytes()[0].wrapping_sub(b'a') as usize;
            match (verb, step) {
                (_, "first") => queue.take_first().into_iter().for_each(Waker::wake),
                (_, "all") => {
                    let mut woken = Vec::new();
                    queue.take_all(&mut woken);
                    woken.into_iter().for_each(Waker::wake);
                }
                ("+", _) => queue.register(&mut keys[slot], &mut log.waker(name)),
                _ => drop(keys[slot].and_then(|key| queue.remove(key))),
            }
        }
        log.take()
    }

    #[track_caller]
    fn check(script: &'static str, taken: &str, left: usize) {
        let mut queue = WaitQueue::new();
        assert_eq!(run(&mut queue, script), taken, "{script}");
        assert_eq!(queue.len(), left, "{script}");
    }

    #[test]
    fn waiters_leave_in_the_order_in_which_they_came() {
        check("+a +b +c all", "abc", 0);
        check("+a +b +c first first", "ab", 1);
        check("first all", "", 0);
        check("+a +b first +c +d all", "abcd", 0);
    }

    #[test]
    fn a_waiter_that_polls_again_keeps_its_place() {
        check("+a +b +a all", "ab", 0);
        check("+a +b first +a all", "aba", 0); // it had been taken: it comes again, behind the others
    }

    #[test]
    fn removed_waiters_are_gone_and_stale_keys_harm_nobody() {
        check("+a +b +c -b all", "ac", 0);
        check("+a +b +c -a -c all", "b", 0);
        check("+a +b -b +c all", "ac", 0);
        check("+a -a +b -a all", "b", 0); // b reuses a's node
        check("+a +b first +c -a all", "abc", 0);
        check("-a +a -a -a", "", 0);
    }

    #[test]
    fn who_is_set_aside_stands_in_line_no_more_and_is_found_by_its_key_until_it_is_removed() {
        let mut queue = WaitQueue::new();
        let [a, b, c] = ["a", "b", "c"].map(|name| queue.push(name));
        *queue.set_first_aside().unwrap() = "a was given something";
        assert_eq!((queue.len(), queue.first()), (3, Some(&"b")));
        assert_eq!(queue.remove(b), Some("b"));
        assert_eq!(queue.get_mut(a), Some(&mut "a was given something"));
        assert_eq!(queue.take_first(), Some("c"));
        assert!(queue.is_empty() && !queue.contains(c) && queue.contains(a), "the others have left, this one is still found");
        assert_eq!(queue.remove(a), Some("a was given something"));
        assert_eq!((queue.remove(a), queue.nodes.len()), (None, 0));
        let d = queue.push("d");
        assert_eq!(queue.remove(a), None, "its key names nobody else");
        assert!(queue.contains(d));
    }

    #[test]
    fn polling_again_with_another_waker_exchanges_it_for_the_old_one() {
        let mut queue = WaitQueue::new();
        let mut key = None;
        let [first, second] = ["a", "b"].map(|name| WakeLog::default().waker(name));
        let mut waker = first.clone();
        queue.register(&mut key, &mut waker);
        assert!(!waker.will_wake(&first));
        waker = second.clone();
        queue.register(&mut key, &mut waker);
        assert!(waker.will_wake(&first));
        assert!(queue.take_first().is_some_and(|waker| waker.will_wake(&second)));
    }

    #[test]
    fn waiters_that_come_and_go_do_not_pile_up() {
        let mut queue = WaitQueue::new();
        assert_eq!(queue.nodes.capacity(), 0, "an unused queue owns no allocation");
        let mut stays = None;
        queue.register(&mut stays, &mut Waker::noop().clone());
        for _ in 0..1_000 {
            let mut key = None;
            queue.register(&mut key, &mut Waker::noop().clone());
            drop(queue.remove(key.expect("just registered")));
        }
        assert!(queue.nodes.len() <= 2, "{} nodes for one waiter", queue.nodes.len());

        let mut keys = [None; 100];
        keys.iter_mut().for_each(|key| queue.register(key, &mut Waker::noop().clone()));
        queue.take_all(&mut Vec::new());
        assert!(queue.nodes.capacity() <= WAIT_NODES_KEPT, "an emptied queue gives its memory back");
    }
}
