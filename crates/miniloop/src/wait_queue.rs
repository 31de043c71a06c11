//! Who waits for one thing, first come first served.
//!
//! Every `&self` method that waits (a read on a shared stream, a shared promise) puts its task's waker here. The queue must not know what
//! is waited for, and it never clones, wakes or drops a waker: that may run foreign code, so it is left to the owner, before and after its
//! own borrow.
//!
//! Cost: every operation is O(1) except [`WaitQueue::take_all`]; 32 bytes a waiter. A queue that never had a waiter owns no allocation, an
//! emptied one keeps at most [`NODES_KEPT`] nodes, so a connection that waits again and again does not allocate again and again.
//!
//! Next: `driver/mod.rs`, which has one queue per source and direction.

use std::mem;
use std::task::Waker;

/// A first-in, first-out queue of wakers whose entries can leave from the middle.
pub(crate) struct WaitQueue {
    nodes: Vec<Node>,
    first: u32,
    last: u32,
    /// Head of the list of unused nodes, linked through `next`.
    free: u32,
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
    pub(crate) const fn new() -> Self {
        Self { nodes: Vec::new(), first: NONE, last: NONE, free: NONE, len: 0, next_ticket: 0 }
    }

    /// How many wait now.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Queues the waiter that `key` remembers, at the end. One that still waits keeps its place and only changes its waker (O8).
    ///
    /// `waker` is exchanged for what the caller has to drop after the borrow that guards the queue.
    pub(crate) fn register(&mut self, key: &mut Option<Key>, waker: &mut Waker) {
        if let Some(key) = *key
            && let Some(present) = self.waiting(key)
        {
            return mem::swap(present, waker);
        }
        *key = Some(self.push(take(waker)));
    }

    /// Takes one waiter out, wherever it stands. `None` if it has left already.
    #[must_use = "drop the waker after the borrow that guards the queue: its destructor may be foreign code"]
    pub(crate) fn remove(&mut self, key: Key) -> Option<Waker> {
        self.waiting(key)?;
        self.unlink(key.index)
    }

    /// Takes the waiter that came first.
    #[must_use = "a waiter that is taken and not woken hangs"]
    pub(crate) fn take_first(&mut self) -> Option<Waker> {
        if self.is_empty() { None } else { self.unlink(self.first) }
    }

    /// Takes all waiters, in the order in which they came.
    pub(crate) fn take_all(&mut self, woken: &mut Vec<Waker>) {
        woken.reserve(self.len());
        while let Some(waker) = self.take_first() {
            woken.push(waker);
        }
    }

    /// Whether the waiter is still here, neither taken nor removed.
    pub(crate) fn contains(&self, key: Key) -> bool {
        self.nodes.get(key.index as usize).is_some_and(|node| node.ticket == key.ticket && node.waker.is_some())
    }

    fn waiting(&mut self, key: Key) -> Option<&mut Waker> {
        let node = self.nodes.get_mut(key.index as usize)?;
        if node.ticket == key.ticket { node.waker.as_mut() } else { None }
    }

    fn push(&mut self, waker: Waker) -> Key {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let node = Node { waker: Some(waker), ticket, previous: self.last, next: NONE };
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

    fn unlink(&mut self, index: u32) -> Option<Waker> {
        let node = &mut self.nodes[index as usize];
        let (waker, previous, next) = (node.waker.take(), node.previous, node.next);
        node.next = self.free;
        self.free = index;
        match previous {
            NONE => self.first = next,
            previous => self.nodes[previous as usize].next = next,
        }
        match next {
            NONE => self.last = previous,
            next => self.nodes[next as usize].previous = previous,
        }
        self.len -= 1;
        if self.is_empty() {
            self.nodes.clear();
            self.nodes.shrink_to(NODES_KEPT);
            self.free = NONE;
        }
        waker
    }
}

/// Puts a waker into a place for one. It is exchanged for what the caller has to drop, as by [`WaitQueue::register`].
pub(crate) fn exchange(place: &mut Option<Waker>, waker: &mut Waker) {
    match place {
        Some(present) => mem::swap(present, waker),
        None => *place = Some(take(waker)),
    }
}

/// Leaves a waker that is nothing.
fn take(waker: &mut Waker) -> Waker {
    mem::replace(waker, Waker::noop().clone())
}

struct Node {
    /// `Some` while the node is in the queue.
    waker: Option<Waker>,
    ticket: u64,
    previous: u32,
    next: u32,
}

/// No node.
const NONE: u32 = u32::MAX;

/// What an emptied queue keeps allocated: the least that a `Vec` allocates, so that the usual single waiter comes and goes for free.
const NODES_KEPT: usize = 4;

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
        assert!(queue.nodes.capacity() <= NODES_KEPT, "an emptied queue gives its memory back");
    }
}
