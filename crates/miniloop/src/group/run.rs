//! The future of a task group: it polls the body and the members, and lets nobody outlive it.
//!
//! ```text
//! poll    1. ask those to stop who are to (a failure, `cancel`, only services left): who has nothing to clean up is dropped here
//!         2. poll the members that stood in the ready list, at most 32; the body is one of them. After each of them: step 1
//!         3. nobody left: the result. More in the list: once more, in the next round
//! drop    the body, then the members, newest first, then the group
//! ```

use std::fmt::Debug;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::config::OPS_PER_POLL;
use crate::engine::cancel::CancelReason;
use crate::engine::context;
use crate::engine::job::Job;
use crate::engine::locals;
use crate::engine::member_list::Seat;
use crate::engine::waker;
use crate::engine::watched;
use crate::engine::word::Word;
use crate::group::error::GroupError;
use crate::group::member::State;
use crate::group::output::BodyOutput;
use crate::group::roster::{End, Head, Roster, RunMember};
use crate::group::spawn::Group;
use crate::instant::Instant;
use crate::report::{Report, ReportKind};

/// Runs several futures that may borrow from the enclosing function, and ends when all of them have.
///
/// The body gets a [`Group`] and spawns members into it; they run beside the body and each other, on the task that awaits the group. When
/// the body and all members have ended and been dropped, the group ends: with the body's value, or with all errors if somebody failed. The
/// first failure cancels everybody else.
///
/// ```
/// # async fn fetch(name: &str) -> std::io::Result<()> { Ok(()) }
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # let (config, other) = (String::new(), String::new());
/// let total = miniloop::task_group(async |g| {
///     g.spawn(async { fetch(&config).await }); // borrows from the enclosing function
///     g.spawn(async { fetch(&other).await });
///     Ok(7)
/// })
/// .await?;
/// # assert_eq!(total, 7);
/// # Ok(())
/// # }
/// # miniloop::run(example()).unwrap().unwrap();
/// ```
///
/// Members end with `()` or with a `Result` whose error is the body's. When nobody can fail the body ends with `()`, and so does the group:
///
/// ```
/// # miniloop::run(async {
/// let (mut a, mut b) = (0, 0);
/// miniloop::task_group(async |g| {
///     g.spawn(async { a = 1 });
///     g.spawn(async { b = 2 });
/// })
/// .await;
/// assert_eq!(a + b, 3);
/// # }).unwrap();
/// ```
///
/// Where a `?` leaves the error open (`type annotations needed`), say it at the end of the body: `Ok::<_, std::io::Error>(total)`.
///
/// The future is an `async` block around the body, so it has no name: box it to keep it in a struct, and `fuse` it for a `select!`.
///
/// # Errors
/// [`GroupError`], with the first error and all further ones. Being cancelled is none.
///
/// # Panics
/// When it is polled outside a loop, or under another loop than the first time. When the body or a member has panicked: once everybody has
/// ended, the panic goes on from here. Errors and further panics go to [`on_error`](crate::LoopHandle::on_error) then.
///
/// # Cancellation
/// Dropping it drops the body, then the members, newest first. Failures that it has not given to anybody yet are reported.
#[doc(alias = "TaskGroup")]
#[doc(alias = "open_nursery")]
#[track_caller]
pub fn task_group<'env, B, O, E>(body: B) -> impl Future<Output = O::Joined>
where
    B: for<'scope> AsyncFnOnce(&'scope Group<'scope, 'env, E>) -> O,
    O: BodyOutput<E>,
    E: Debug + 'env,
{
    let place = Location::caller();
    async move {
        // The loop of the first poll, so that `miniloop::run` may be given a group.
        let state = Rc::new(State::new(Roster::new(context::current())));
        let group = Group::new(state.clone());
        // Declared after the group and before the body: dropped after the body and before the group, whatever unwinds.
        let everybody = DropMembers(&state);
        let mut body = pin!(Some(body(&group)));
        let mut run = Run::new(&state, body.as_mut(), place);
        poll_fn(|cx| run.poll(cx)).await;
        let value = run.value.take();
        drop(run);
        let panic = state.roster.take_panic();
        let failures = if panic.is_some() { Vec::new() } else { state.take_failures() };
        drop(everybody);
        match (panic, value) {
            (None, Some(value)) if failures.is_empty() => O::join(Ok(value)),
            (panic, value) => {
                state.roster.core.drop_safely(value, "value of a task group", place);
                panic.map_or_else(|| O::join(Err(GroupError { failures })), |panic| resume_unwind(panic.payload))
            }
        }
    }
}

/// Drops the members that are left, and finds somebody for the failures that are.
struct DropMembers<'a, E: Debug>(&'a Rc<State<E>>);

impl<E: Debug> Drop for DropMembers<'_, E> {
    fn drop(&mut self) {
        let roster = &self.0.roster;
        // Already done, unless the body could not even be made.
        roster.close();
        for member in roster.newest_first() {
            roster.end(member);
        }
        if let Some(panic) = roster.take_panic() {
            roster.report(panic.into_report());
        }
        self.0.report_all();
    }
}

/// The group while it runs.
struct Run<'a, 'b, F, O: BodyOutput<E>, E: Debug> {
    state: &'a Rc<State<E>>,
    /// `None` once it has ended or was dropped.
    body: Pin<&'b mut Option<F>>,
    body_head: Head,
    value: Option<O::Value>,
}

impl<'a, 'b, F: Future<Output = O>, O: BodyOutput<E>, E: Debug> Run<'a, 'b, F, O, E> {
    fn new(state: &'a Rc<State<E>>, body: Pin<&'b mut Option<F>>, place: &'static Location<'static>) -> Self {
        let Roster { core, list, .. } = &state.roster;
        let word = core.insert(Job::Member(list.sit(Seat::BODY, 0, core.record(place))));
        core.enqueue(word);
        Run { state, body, body_head: Head::new(word, Seat::BODY, 0, false, place), value: None }
    }

    fn roster(&self) -> &'a Roster {
        &self.state.roster
    }

    fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        let roster = self.roster();
        let core = &roster.core;
        context::check_home(core.number, "task group");
        roster.list.set_poller(context::current_task_of(core.id), cx.waker());
        let polling = Polling::start(roster);
        self.ask_who_is_to_stop();
        for _ in 0..roster.list.turn_len() {
            if let Some(word) = roster.list.pop() {
                let failed = self.run(word);
                self.ask_who_is_to_stop();
                failed.into_iter().for_each(|member| member.tell_failure());
            }
        }
        self.ask_who_is_to_stop();
        drop(polling);
        if self.body.is_none() && roster.is_empty() {
            return Poll::Ready(());
        }
        roster.list.end_poll();
        context::waits_for(&"the members of its task group");
        Poll::Pending
    }

    /// Runs whoever stands behind a word of the ready list. Returns a member that has failed and whose child is to be told.
    fn run(&mut self, word: Word) -> Option<Pin<Rc<dyn RunMember>>> {
        let roster = self.roster();
        let core = &roster.core;
        let (index, was_woken, (locals, place)) = core.begin_member(word, |origin| (origin.locals.clone(), origin.place))?;
        let entered = locals::enter(locals.clone());
        core.ops_left.set(OPS_PER_POLL);
        context::begin_task(Some(word));
        let _watched = watched::member(core, word, place);
        let failed = if index == Seat::BODY {
            self.run_body(was_woken);
            None
        } else {
            roster.at(index).and_then(|member| run_member(roster, member, was_woken))
        };
        roster.list.record(index, context::note_told);
        drop(entered);
        if locals.is_some() {
            core.drop_safely(locals, "task-local value", place);
        }
        failed
    }

    fn run_body(&mut self, was_woken: bool) {
        let Head { word, ref level, .. } = self.body_head;
        let core = &self.roster().core;
        if level.verdict(core).must_drop(!was_woken) {
            return self.drop_body();
        }
        let waker = waker::of(word);
        let inside = level.enter(core, &waker);
        let body = &mut self.body;
        let poll = || body.as_mut().as_pin_mut().map_or(Poll::Pending, |body| body.poll(&mut Context::from_waker(&waker)));
        let polled = catch_unwind(AssertUnwindSafe(poll));
        drop(inside);
        match polled {
            Ok(Poll::Pending) => {
                if level.verdict(core).must_drop(true) {
                    self.drop_body();
                }
            }
            Ok(Poll::Ready(output)) => {
                self.end_body();
                match output.into_result() {
                    Ok(value) => self.value = Some(value),
                    Err(error) => self.state.fail(&self.body_head, error),
                }
            }
            Err(payload) => {
                self.end_body();
                self.state.fail_with_panic(&self.body_head, payload);
            }
        }
    }

    fn drop_body(&mut self) {
        report_if_out_of_grace(self.roster(), &self.body_head);
        self.end_body();
    }

    /// Passes on what is asked of the group: everybody, or single members, are to stop. Whoever is dropped meanwhile may ask for more.
    fn ask_who_is_to_stop(&mut self) {
        let roster = self.roster();
        loop {
            if self.body.is_none() && roster.has_only_services() {
                roster.ask_all(CancelReason::GroupEnded);
            }
            let (reason, asked) = (roster.take_reason(), roster.take_asked());
            if reason.is_none() && asked.is_empty() {
                return;
            }
            let deadline = roster.core.now() + roster.core.grace.get();
            if let Some(reason) = reason {
                if self.body.is_some() && ask(roster, &self.body_head, reason, deadline) {
                    self.drop_body();
                }
                roster.newest_first().into_iter().for_each(|member| ask_member(roster, member, reason, deadline));
            }
            for word in asked {
                let index = roster.core.with_slot(word, |slot| if let Job::Member(seat) = &slot.job { Some(seat.index) } else { None });
                if let Some(member) = index.flatten().and_then(|index| roster.at(index)) {
                    ask_member(roster, member, CancelReason::Cancelled, deadline);
                }
            }
        }
    }
}

impl<F, O: BodyOutput<E>, E: Debug> Run<'_, '_, F, O, E> {
    /// Drops the body where it is, whether it is done or not.
    fn end_body(&mut self) {
        let head = &self.body_head;
        head.level.remove();
        let drop_it = || self.body.set(None);
        if let Err(payload) = self.state.roster.act_as(head, || catch_unwind(AssertUnwindSafe(drop_it))) {
            self.state.roster.report(Report::of_panic(ReportKind::DropPanic, payload, head.describe(), head.place));
        }
        self.state.roster.let_go_of(&self.body_head);
    }
}

impl<F, O: BodyOutput<E>, E: Debug> Drop for Run<'_, '_, F, O, E> {
    /// From here on no member comes in.
    fn drop(&mut self) {
        self.state.roster.close();
        self.end_body();
    }
}

fn run_member(roster: &Roster, member: Pin<Rc<dyn RunMember>>, was_woken: bool) -> Option<Pin<Rc<dyn RunMember>>> {
    let head = member.head();
    let core = &roster.core;
    if head.level.verdict(core).must_drop(!was_woken) {
        end_member(roster, member);
        return None;
    }
    let waker = waker::of(head.word);
    let inside = head.level.enter(core, &waker);
    let polled = member.as_ref().poll(&waker);
    drop(inside);
    match polled {
        Poll::Ready(end) => {
            roster.remove(&*member);
            (end == End::Failed).then_some(member)
        }
        Poll::Pending => {
            if head.level.verdict(core).must_drop(true) {
                end_member(roster, member);
            }
            None
        }
    }
}

fn end_member(roster: &Roster, member: Pin<Rc<dyn RunMember>>) {
    report_if_out_of_grace(roster, member.head());
    roster.end(member);
}

fn report_if_out_of_grace(roster: &Roster, head: &Head) {
    let report = head.level.out_of_grace(&roster.core, || head.describe(), head.place);
    report.into_iter().for_each(|report| roster.report(report));
}

/// Asks a member to stop. Whether it is to be dropped: nothing in it wants to clean up, and it was not woken since its last poll.
fn ask(roster: &Roster, head: &Head, reason: CancelReason, deadline: Instant) -> bool {
    let core = &roster.core;
    head.level.request(core, reason, deadline);
    let is_woken = core.with_slot(head.word, |slot| slot.is_woken).unwrap_or(false);
    head.level.verdict(core).must_drop(!is_woken)
}

fn ask_member(roster: &Roster, member: Pin<Rc<dyn RunMember>>, reason: CancelReason, deadline: Instant) {
    // It may have ended while those before it were dropped.
    let is_here = roster.core.with_slot(member.head().word, |_| ()).is_some();
    if is_here && ask(roster, member.head(), reason, deadline) {
        end_member(roster, member);
    }
}

/// The group is being polled: those who ask something of it need not wake it, and afterwards the task that polls it is the current one
/// again, with what it had left of its operations.
struct Polling<'a> {
    roster: &'a Roster,
    poller: Option<Word>,
    ops_left: u32,
}

impl<'a> Polling<'a> {
    fn start(roster: &'a Roster) -> Polling<'a> {
        roster.is_polling.set(true);
        Polling { roster, poller: context::current_task(), ops_left: roster.core.ops_left.get() }
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        self.roster.is_polling.set(false);
        self.roster.core.ops_left.set(self.ops_left);
        context::begin_task(self.poller);
    }
}
