//! The way of a job while somebody looks: what runs is published, timed and recorded.
//!
//! `run_job.rs` and `turn.rs` come here only when a bit of the probes is set. Nothing here may change what the program does: the clock is
//! read without the loop noticing, no owner of user values is kept longer, and what is said is said as a report or a record. A slow error
//! handler is logged instead of reported: it would be told of itself without end.

use std::cell::Cell;
use std::fmt::{self, Display};
use std::panic::Location;
use std::rc::Rc;
use std::time::Duration;

use crate::engine::core::Core;
use crate::engine::job::Cause;
use crate::engine::probes::{DEBUG, PULSE, TIMED, TIMELINE, count};
use crate::engine::pulse::Beat;
use crate::engine::task_head::TaskName;
use crate::engine::timeline::{JobKind, What};
use crate::engine::word::Word;
use crate::instant::Instant;
use crate::report::{Report, ReportKind};

/// A job that is being watched, until this is dropped.
pub(crate) struct Watched<'a> {
    core: &'a Core,
    word: Word,
    subject: Subject,
    place: &'static Location<'static>,
    /// What the pulse showed before: the task whose group this is a member of.
    around: Option<Beat>,
    /// When it began, and what had been reported of the job around it, if anybody asked.
    began: Option<(Instant, Duration)>,
    /// When it began in the timeline.
    slice_began: Option<u64>,
}

/// Who runs, as far as a name needs it. The task or callback itself must not be kept alive.
pub(crate) enum Subject {
    Main,
    Task { number: u64, name: Option<Rc<str>> },
    Member(String),
    Callback,
    Repeat(Cause),
    Report,
}

/// A member of a group that is about to be polled, inside the job that polls the group.
#[inline]
pub(crate) fn member<'a>(core: &'a Core, word: Word, place: &'static Location<'static>) -> Option<Watched<'a>> {
    if core.probes.is_watched() { start_member(core, word, place) } else { None }
}

#[cold]
#[inline(never)]
fn start_member<'a>(core: &'a Core, word: Word, place: &'static Location<'static>) -> Option<Watched<'a>> {
    let name = core.member_named(word)?;
    Some(Watched::start(core, word, Subject::Member(name), place))
}

impl<'a> Watched<'a> {
    pub(crate) fn start(core: &'a Core, word: Word, subject: Subject, place: &'static Location<'static>) -> Watched<'a> {
        let probes = &core.probes;
        let mut watched = Watched { core, word, subject, place, around: None, began: None, slice_began: None };
        if let Some(pulse) = &*probes.pulse.borrow() {
            if matches!(watched.subject, Subject::Member(_)) {
                watched.around = pulse.read();
            }
            pulse.begin(&watched.subject, place, probes.counters.polls.get());
        }
        if !(probes.has(TIMED) || probes.has(TIMELINE) || probes.has(DEBUG)) {
            return watched;
        }
        let now = core.clock.now();
        core.with_record(word, |record| record.since.set(now));
        if probes.has(TIMED) {
            let reported_around = probes.slow_inside.take();
            let is_inside = matches!(watched.subject, Subject::Member(_));
            watched.began = Some((now, if is_inside { reported_around } else { Duration::ZERO }));
        }
        if let Some(timeline) = &mut *probes.timeline.borrow_mut() {
            watched.slice_began = Some(timeline.stamp(now));
            match &watched.subject {
                Subject::Task { number, name } => {
                    timeline.name(word, || TaskName(name.as_deref(), *number).to_string());
                }
                Subject::Member(name) => timeline.name(word, || name.clone()),
                Subject::Main | Subject::Callback | Subject::Repeat(_) | Subject::Report => {}
            }
        }
        watched
    }

    /// Who polls a group is not blamed for the members that have been.
    fn report_if_slow(&self, now: Instant) {
        let Some((began, reported_around)) = self.began else { return };
        let probes = &self.core.probes;
        let reported_inside = probes.slow_inside.replace(reported_around);
        let took = (now - began).saturating_sub(reported_inside);
        let Some(limit) = probes.slow_limit().filter(|limit| took > *limit) else {
            return probes.slow_inside.set(reported_around + reported_inside);
        };
        probes.slow_inside.set(reported_around + reported_inside + took);
        count(&probes.counters.slow_jobs);
        let report = Report::new(ReportKind::Slow, self.subject.to_string(), self.place, format!("for {took:.1?}; the limit is {limit:?}"));
        match self.subject {
            Subject::Report => report.log(),
            _ => self.core.report(report),
        }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        let probes = &self.core.probes;
        if let Some(pulse) = &*probes.pulse.borrow() {
            match &self.around {
                Some(around) => pulse.begin(&around.subject, around.place, around.turn),
                None => pulse.end(),
            }
        }
        if self.began.is_none() && self.slice_began.is_none() {
            return;
        }
        let now = self.core.clock.now();
        if let (Some(timeline), Some(began)) = (&mut *probes.timeline.borrow_mut(), self.slice_began) {
            timeline.slice(What::Job { word: self.word, kind: self.subject.kind(), place: self.place }, began, now);
        }
        self.report_if_slow(now);
    }
}

/// As reports name it.
impl Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Main => f.write_str("the future given to `run_until_complete`"),
            Subject::Task { number, name } => write!(f, "task `{}`", TaskName(name.as_deref(), *number)),
            Subject::Member(name) => f.write_str(name),
            Subject::Callback => f.write_str("callback"),
            Subject::Repeat(cause) => cause.fmt(f),
            Subject::Report => f.write_str("error handler"),
        }
    }
}

impl Subject {
    fn kind(&self) -> JobKind {
        match self {
            Subject::Main => JobKind::Main,
            Subject::Task { .. } => JobKind::Task,
            Subject::Member(_) => JobKind::Member,
            Subject::Callback => JobKind::Callback,
            Subject::Repeat(_) => JobKind::Repeat,
            Subject::Report => JobKind::Report,
        }
    }
}

/// A copy of the cause that keeps nothing alive.
pub(crate) fn copy_of(cause: &Cause) -> Cause {
    match cause {
        Cause::Period { period, next } => Cause::Period { period: *period, next: Cell::new(next.get()) },
        Cause::Readiness { fd, direction } => Cause::Readiness { fd: *fd, direction: *direction },
    }
}

/// Puts a stretch of the turn into the timeline, from now until the guard is dropped.
#[inline]
pub(crate) fn slice(core: &Core, what: What) -> Option<SliceGuard<'_>> {
    if core.probes.has(TIMELINE) { begin_slice(core, what) } else { None }
}

#[cold]
#[inline(never)]
fn begin_slice(core: &Core, what: What) -> Option<SliceGuard<'_>> {
    let began = core.probes.timeline.borrow_mut().as_mut()?.stamp(core.clock.now());
    Some(SliceGuard { core, what, began })
}

pub(crate) struct SliceGuard<'a> {
    core: &'a Core,
    what: What,
    began: u64,
}

impl Drop for SliceGuard<'_> {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        if let Some(timeline) = &mut *self.core.probes.timeline.borrow_mut() {
            timeline.slice(self.what, self.began, self.core.clock.now());
        }
    }
}

/// A turn ends, and another one begins if the loop goes on. Nothing runs at this moment.
#[inline]
pub(crate) fn turn(core: &Core, goes_on: bool) {
    if core.probes.is_watched() {
        end_turn(core, goes_on);
    }
}

#[cold]
#[inline(never)]
fn end_turn(core: &Core, goes_on: bool) {
    let probes = &core.probes;
    if let Some(timeline) = &mut *probes.timeline.borrow_mut() {
        timeline.turn(goes_on, core.clock.now());
    }
    if probes.has(PULSE) {
        probes.rest_pulse();
    }
}
