//! Who is in a task group, and how far the group is. It must not know what the members make or fail with.
//!
//! ```text
//! Open ---- a failure, `cancel`, only services left ----> Ending ---- nobody left, or dropped ----> Over
//!           from here on a new member is refused (G6)             from here on failures are reported
//! ```
//!
//! Members come and go while others' code runs, so nothing is borrowed meanwhile: a member is taken out of its seat first.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::engine::cancel::{CancelReason, Level};
use crate::engine::context;
use crate::engine::core::{Core, Phase};
use crate::engine::job::Job;
use crate::engine::member_list::{self, MemberList};
use crate::engine::word::Word;
use crate::report::{Report, ReportKind};

/// A member as its group sees it.
pub(super) trait RunMember {
    fn head(&self) -> &Head;

    /// Polls the future once. When it ends, its future has been dropped and its result given to who owns that.
    fn poll(self: Pin<&Self>, waker: &Waker) -> Poll<End>;

    /// Tells the child of a member that has failed. That comes after the others were asked to stop: who awaits the child is one of them,
    /// and is cancelled before it can trip over the failure.
    fn tell_failure(&self);

    /// Drops the future where it is, which ends the member as a cancelled one.
    fn drop_future(&self);
}

/// How a member has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Told,
    /// With a failure that is not the child's.
    Failed,
}

/// What is known of a member or of the body, whatever it makes.
pub(super) struct Head {
    pub(super) word: Word,
    pub(super) index: u32,
    pub(super) number: u64,
    pub(super) place: &'static Location<'static>,
    pub(super) is_service: bool,
    /// Its failures end nobody else (G8).
    pub(super) is_isolated: Cell<bool>,
    /// Nobody will ask for its value.
    pub(super) is_child_gone: Cell<bool>,
    pub(super) name: RefCell<Option<Rc<str>>>,
    /// The task that it stands for, in `spawn_task`.
    pub(super) task: Cell<Word>,
    pub(super) level: Level,
}

impl Head {
    pub(super) fn new(word: Word, index: u32, number: u64, is_service: bool, place: &'static Location<'static>) -> Head {
        Head {
            word,
            index,
            number,
            place,
            is_service,
            is_isolated: Cell::new(false),
            is_child_gone: Cell::new(false),
            name: RefCell::new(None),
            task: Cell::new(Word::STALE),
            level: Level::new(),
        }
    }

    pub(super) fn describe(&self) -> String {
        member_list::describe(self.index, self.name.borrow().as_deref(), self.number as u32)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Open,
    Ending,
    Over,
}

pub(super) struct Roster {
    pub(super) core: Rc<Core>,
    pub(super) list: Rc<MemberList>,
    seats: RefCell<Seats>,
    /// Members ever spawned.
    spawned: Cell<u64>,
    alive: Cell<usize>,
    services: Cell<usize>,
    stage: Cell<Stage>,
    /// Why everybody is to be asked to stop, by the next poll of the group.
    reason: Cell<Option<CancelReason>>,
    /// Members that are to be asked one by one.
    asked: RefCell<Vec<Word>>,
    /// The group is being polled, and will see by itself what is asked of it.
    pub(super) is_polling: Cell<bool>,
    /// The first panic, which the group resumes.
    panic: RefCell<Option<Panic>>,
}

/// A panic of a member, with who it was.
pub(super) struct Panic {
    pub(super) payload: Box<dyn Any + Send>,
    pub(super) subject: String,
    pub(super) place: &'static Location<'static>,
}

impl Panic {
    pub(super) fn into_report(self) -> Report {
        Report::of_panic(ReportKind::Panic, self.payload, self.subject, self.place)
    }
}

#[derive(Default)]
struct Seats {
    places: Vec<Option<Pin<Rc<dyn RunMember>>>>,
    free: Vec<u32>,
}

impl Roster {
    pub(super) fn new(core: Rc<Core>) -> Roster {
        Roster {
            core,
            list: Rc::default(),
            seats: RefCell::default(),
            spawned: Cell::new(0),
            alive: Cell::new(0),
            services: Cell::new(0),
            stage: Cell::new(Stage::Open),
            reason: Cell::new(None),
            asked: RefCell::default(),
            is_polling: Cell::new(false),
            panic: RefCell::default(),
        }
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage.get()
    }

    /// Whether a member may come in.
    pub(super) fn accepts(&self) -> bool {
        self.stage.get() == Stage::Open && self.core.phase.get() == Phase::Open
    }

    /// Takes a member in. `make` must not call user code.
    pub(super) fn admit(&self, is_service: bool, place: &'static Location<'static>, make: impl FnOnce(Head) -> Pin<Rc<dyn RunMember>>) {
        let number = self.spawned.get();
        self.spawned.set(number + 1);
        self.alive.set(self.alive.get() + 1);
        self.services.set(self.services.get() + usize::from(is_service));
        let mut seats = self.seats.borrow_mut();
        let index = seats.free.pop().unwrap_or_else(|| {
            seats.places.push(None);
            u32::try_from(seats.places.len() - 1).expect("fewer members than slots")
        });
        let word = self.core.insert(Job::Member(self.list.sit(index, number as u32, self.core.record(place))));
        seats.places[index as usize] = Some(make(Head::new(word, index, number, is_service, place)));
        drop(seats);
        self.core.enqueue(word);
    }

    pub(super) fn at(&self, index: u32) -> Option<Pin<Rc<dyn RunMember>>> {
        self.seats.borrow().places.get(index as usize)?.clone()
    }

    pub(super) fn newest_first(&self) -> Vec<Pin<Rc<dyn RunMember>>> {
        let mut members: Vec<_> = self.seats.borrow().places.iter().flatten().cloned().collect();
        members.sort_by_key(|member| Reverse(member.head().number));
        members
    }

    /// Ends a member that has not ended.
    pub(super) fn end(&self, member: Pin<Rc<dyn RunMember>>) {
        let head = member.head();
        head.level.remove();
        self.act_as(head, || member.drop_future());
        self.remove(&*member);
    }

    /// Has what runs see what somebody in the group sees, who has not been let go of. `act` must not panic.
    pub(super) fn act_as<R>(&self, head: &Head, act: impl FnOnce() -> R) -> R {
        let outer = context::current_task();
        context::set_current_task(Some(head.word));
        let locals = self.core.enter_locals(head.word);
        let acted = act();
        drop(locals);
        context::set_current_task(outer);
        acted
    }

    /// Lets go of a member that has ended.
    pub(super) fn remove(&self, member: &dyn RunMember) {
        let head = member.head();
        self.let_go_of(head);
        let mut seats = self.seats.borrow_mut();
        let seated = seats.places[head.index as usize].take();
        seats.free.push(head.index);
        drop(seats);
        self.alive.set(self.alive.get() - 1);
        self.services.set(self.services.get() - usize::from(head.is_service));
        drop(seated);
    }

    /// Takes the place of somebody who has ended out of the loop.
    pub(super) fn let_go_of(&self, head: &Head) {
        head.level.remove();
        let slot = self.core.remove(head.word);
        self.core.drop_safely((slot, self.list.rise(head.index, head.word)), "task-local value", head.place);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.alive.get() == 0
    }

    /// Whether there are services and nobody else.
    pub(super) fn has_only_services(&self) -> bool {
        self.alive.get() > 0 && self.alive.get() == self.services.get()
    }

    /// From now on the group ends: the next poll asks everybody to stop.
    pub(super) fn ask_all(&self, reason: CancelReason) {
        if self.stage.get() == Stage::Open {
            self.stage.set(Stage::Ending);
            self.reason.set(Some(reason));
            self.call_poller();
        }
    }

    pub(super) fn take_reason(&self) -> Option<CancelReason> {
        self.reason.take()
    }

    /// The next poll of the group asks this member to stop.
    pub(super) fn ask(&self, word: Word) {
        self.asked.borrow_mut().push(word);
        self.call_poller();
    }

    pub(super) fn take_asked(&self) -> Vec<Word> {
        self.asked.take()
    }

    fn call_poller(&self) {
        if !self.is_polling.get()
            && let Some(waker) = self.list.take_waker()
        {
            self.core.wake_safely(waker);
        }
    }

    pub(super) fn close(&self) {
        self.stage.set(Stage::Over);
    }

    pub(super) fn take_panic(&self) -> Option<Panic> {
        self.panic.take()
    }

    /// Keeps the first panic; gives back another one.
    pub(super) fn keep_panic(&self, panic: Panic) -> Option<Panic> {
        let mut first = self.panic.borrow_mut();
        if first.is_some() {
            return Some(panic);
        }
        *first = Some(panic);
        None
    }

    /// Reports a failure of somebody in the group, who may have gone already.
    pub(super) fn report(&self, report: Report) {
        self.core.report(report.with_parents(self.core.lineage(self.list.poller())));
    }
}
