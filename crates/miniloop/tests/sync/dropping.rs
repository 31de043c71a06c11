//! Every waiting operation, dropped at every moment: nothing is lost, and nothing remains.
//!
//! Three waiters and one giver do everything that they can, in every order, up to a length. A waiter is polled, whether or not it was
//! woken, or dropped, whether or not it was given something; one that is done or dropped begins again with its next poll. Then everybody
//! who was woken is polled until nobody is, and the scene says whether what was given is where it should be. At last all are dropped, and
//! it must be as if they had never been there. Read next: `dropping_values.rs`.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use miniloop::sync::{Condvar, Event, Mutex, OwnedMutexGuard, Semaphore};

use crate::by_hand::{Boxed, Hand, now};

pub(crate) const WAITERS: usize = 3;
pub(crate) const STEPS_MAX: usize = 7;

pub(crate) type Wait<'a> = Boxed<'a, ()>;

/// Something that is waited for, given and kept count of.
pub(crate) trait Scene {
    fn wait(&self, who: usize) -> Wait<'_>;
    /// Gives what one wait needs, if there is room for it.
    fn give(&self);
    /// How many waits have got something, `got`, and how many still wait: does that agree with what was given?
    fn check_settled(&self, got: &[usize; WAITERS], waiting: usize);
    /// Nobody waits.
    fn check_nobody(&self, got: &[usize; WAITERS]);
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Poll(usize),
    Drop(usize),
    Give,
}

/// Every program of at most so many steps, once.
pub(crate) fn check<S: Scene>(scene: impl Fn() -> S) {
    let steps: Vec<Step> = (0..WAITERS).flat_map(|who| [Step::Poll(who), Step::Drop(who)]).chain([Step::Give]).collect();
    let mut program = Vec::new();
    let mut runs = 0;
    extend(&steps, &mut program, &mut |program| {
        runs += 1;
        run(&scene(), program);
    });
    assert!(runs > 10_000, "{runs} programs are too few to prove anything");
}

fn extend(steps: &[Step], program: &mut Vec<Step>, run: &mut impl FnMut(&[Step])) {
    if program.len() == STEPS_MAX {
        return run(program);
    }
    // How many have appeared: they are alike, so the next to appear is always the next by number.
    let known = program.iter().filter_map(|step| if let Step::Poll(who) = step { Some(who + 1) } else { None }).max().unwrap_or(0);
    for &step in steps {
        let is_worth_it = match step {
            Step::Poll(who) => who <= known,
            // Dropping needs somebody who was polled since it was dropped last.
            Step::Drop(who) => {
                program.iter().rev().find(|step| matches!(step, Step::Poll(w) | Step::Drop(w) if *w == who)) == Some(&Step::Poll(who))
            }
            Step::Give => true,
        };
        if is_worth_it {
            program.push(step);
            extend(steps, program, run);
            program.pop();
        }
    }
}

fn run(scene: &impl Scene, program: &[Step]) {
    let mut waiters: [Option<Hand<'_, ()>>; WAITERS] = Default::default();
    let mut got = [0; WAITERS];
    let poll = |waiters: &mut [Option<Hand<'_, ()>>; WAITERS], got: &mut [usize; WAITERS], who: usize| {
        if waiters[who].as_mut().is_some_and(|waiter| waiter.poll().is_ready()) {
            waiters[who] = None;
            got[who] += 1;
        }
    };
    let named = std::panic::AssertUnwindSafe(|| {
        for &step in program {
            match step {
                Step::Poll(who) => {
                    waiters[who].get_or_insert_with(|| Hand::new(scene.wait(who)));
                    poll(&mut waiters, &mut got, who);
                }
                Step::Drop(who) => waiters[who] = None,
                Step::Give => scene.give(),
            }
        }
        while let Some(who) = waiters.iter().position(|waiter| waiter.as_ref().is_some_and(Hand::is_woken)) {
            poll(&mut waiters, &mut got, who);
        }
        scene.check_settled(&got, waiters.iter().flatten().count());
        waiters.iter_mut().for_each(|waiter| *waiter = None);
        scene.check_nobody(&got);
    });
    if let Err(payload) = std::panic::catch_unwind(named) {
        eprintln!("the program was {program:?}");
        std::panic::resume_unwind(payload);
    }
}

pub(crate) fn sum(got: &[usize; WAITERS]) -> usize {
    got.iter().sum()
}

struct Permits {
    semaphore: Rc<Semaphore>,
    given: Cell<usize>,
    is_owned: bool,
    /// How many permits each waiter asks for.
    wanted: [usize; WAITERS],
}

impl Permits {
    fn left(&self, got: &[usize; WAITERS]) -> usize {
        self.given.get() - got.iter().zip(self.wanted).map(|(got, wanted)| got * wanted).sum::<usize>()
    }
}

impl Scene for Permits {
    fn wait(&self, who: usize) -> Wait<'_> {
        let count = self.wanted[who];
        if self.is_owned {
            let semaphore = self.semaphore.clone();
            Box::pin(async move { semaphore.acquire_many_owned(count).await.forget() })
        } else {
            Box::pin(async move { self.semaphore.acquire_many(count).await.forget() })
        }
    }

    fn give(&self) {
        self.given.set(self.given.get() + 1);
        self.semaphore.add_permits(1);
    }

    fn check_settled(&self, got: &[usize; WAITERS], waiting: usize) {
        let statistics = self.semaphore.statistics();
        assert_eq!((statistics.available, statistics.waiting), (self.left(got), waiting));
        if waiting > 0 {
            assert!(self.left(got) < *self.wanted.iter().max().unwrap(), "there is enough for whoever waits");
        }
    }

    fn check_nobody(&self, got: &[usize; WAITERS]) {
        let mut expected = Semaphore::new(self.left(got)).statistics();
        expected.waiting = 0;
        assert_eq!(self.semaphore.statistics(), expected);
    }
}

#[test]
fn acquiring_a_permit_is_dropped_at_every_moment_c133() {
    for (is_owned, wanted) in [(false, [1, 1, 1]), (true, [1, 1, 1]), (false, [1, 2, 3]), (false, [3, 1, 2]), (false, [2, 1, 0])] {
        check(|| Permits { semaphore: Rc::new(Semaphore::new(0)), given: Cell::new(0), is_owned, wanted });
    }
}

/// Whoever gets the lock releases it at once.
struct Lock {
    mutex: Rc<Mutex<()>>,
    held: RefCell<Option<OwnedMutexGuard<()>>>,
}

impl Scene for Lock {
    fn wait(&self, who: usize) -> Wait<'_> {
        if who == 0 {
            let mutex = self.mutex.clone();
            return Box::pin(async move { drop(mutex.lock_owned().await) });
        }
        Box::pin(async { drop(self.mutex.lock().await) })
    }

    fn give(&self) {
        let held = self.held.take();
        drop(held);
    }

    fn check_settled(&self, got: &[usize; WAITERS], waiting: usize) {
        let is_held = self.held.borrow().is_some();
        assert_eq!((self.mutex.is_locked(), self.mutex.statistics().waiting), (is_held, waiting));
        assert!(if is_held { sum(got) == 0 } else { waiting == 0 });
    }

    fn check_nobody(&self, _: &[usize; WAITERS]) {
        assert_eq!(self.mutex.statistics().waiting, 0);
        assert_eq!(self.mutex.try_lock().is_some(), self.held.borrow().is_none());
    }
}

#[test]
fn taking_a_lock_is_dropped_at_every_moment_c130() {
    check(|| {
        let mutex = Rc::new(Mutex::new(()));
        let held = RefCell::new(mutex.clone().try_lock_owned());
        Lock { mutex, held }
    });
}

/// A notification to nobody is nothing; any other must reach somebody, while anybody waits.
struct Notified {
    mutex: Mutex<()>,
    condvar: Condvar,
    notified: Cell<usize>,
}

impl Scene for Notified {
    fn wait(&self, _: usize) -> Wait<'_> {
        let wait: Wait<'_> = Box::pin(async { drop(self.condvar.wait(self.mutex.lock().await).await) });
        Box::pin(Noticed { scene: self, wait: Some(wait) })
    }

    fn give(&self) {
        self.notified.set(self.notified.get() + usize::from(self.condvar.statistics().waiting > 0));
        self.condvar.notify_one();
    }

    fn check_settled(&self, got: &[usize; WAITERS], waiting: usize) {
        assert_eq!((self.condvar.statistics().waiting, self.mutex.is_locked()), (waiting, false));
        assert!(sum(got) <= self.notified.get());
        if waiting > 0 {
            assert_eq!(sum(got), self.notified.get(), "a notification was lost");
        }
    }

    fn check_nobody(&self, _: &[usize; WAITERS]) {
        assert_eq!(self.condvar.statistics(), Condvar::new().statistics());
        assert!(self.mutex.try_lock().is_some());
    }
}

/// Notices when a wait is dropped that has a notification and can pass it on to nobody: that one is rightly gone.
struct Noticed<'a> {
    scene: &'a Notified,
    wait: Option<Wait<'a>>,
}

impl Future for Noticed<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let polled = self.wait.as_mut().expect("it was not over").as_mut().poll(cx);
        if polled.is_ready() {
            self.wait = None;
        }
        polled
    }
}

impl Drop for Noticed<'_> {
    fn drop(&mut self) {
        // The lock is free between polls, so who still waits stands in line or has been notified.
        let is_nobody_in_line = self.scene.condvar.statistics().waiting == 0;
        if self.wait.take().is_some() && is_nobody_in_line {
            self.scene.notified.set(self.scene.notified.get() - 1);
        }
    }
}

#[test]
fn waiting_for_a_notification_is_dropped_at_every_moment_c136() {
    check(|| Notified { mutex: Mutex::new(()), condvar: Condvar::new(), notified: Cell::new(0) });
}

/// Set and cleared at once: whoever waits then goes, whoever comes later waits.
struct Flag(Event);

impl Scene for Flag {
    fn wait(&self, _: usize) -> Wait<'_> {
        Box::pin(self.0.wait())
    }

    fn give(&self) {
        self.0.set();
        self.0.clear();
        assert_eq!(self.0.statistics().waiting, 0);
    }

    fn check_settled(&self, _: &[usize; WAITERS], waiting: usize) {
        assert_eq!(self.0.statistics().waiting, waiting);
    }

    fn check_nobody(&self, _: &[usize; WAITERS]) {
        assert_eq!(self.0.statistics(), Event::new().statistics());
    }
}

#[test]
fn waiting_for_an_event_is_dropped_at_every_moment_c134() {
    check(|| Flag(Event::new()));
}

#[test]
fn a_scene_that_loses_something_is_noticed() {
    struct Broken(Permits);
    impl Scene for Broken {
        fn wait(&self, who: usize) -> Wait<'_> {
            self.0.wait(who)
        }
        fn give(&self) {
            self.0.give();
            // One permit goes astray as soon as somebody has been given one and has not run.
            if self.0.semaphore.available_permits() == 0 && self.0.given.get() == 2 {
                self.0.semaphore.add_permits(1);
                now(self.0.semaphore.acquire_many(0)).forget();
            }
        }
        fn check_settled(&self, got: &[usize; WAITERS], waiting: usize) {
            self.0.check_settled(got, waiting);
        }
        fn check_nobody(&self, got: &[usize; WAITERS]) {
            self.0.check_nobody(got);
        }
    }
    let scene = || Broken(Permits { semaphore: Rc::new(Semaphore::new(0)), given: Cell::new(0), is_owned: false, wanted: [1; WAITERS] });
    assert!(std::panic::catch_unwind(|| check(scene)).is_err());
}
