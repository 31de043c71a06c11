//! What a program is: tasks made of waits, limits and catch points, and what is done to them when.

use proptest::collection::vec;
use proptest::prelude::*;

/// Times are in milliseconds, and small, so that many things happen at the same time.
pub(crate) type Ms = u64;

#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) tasks: Vec<Body>,
    /// What is done to which task, and when.
    pub(crate) acts: Vec<(Ms, usize, Act)>,
    /// The grace of the loop.
    pub(crate) grace: Ms,
    pub(crate) shutdown_grace: Ms,
    pub(crate) jobs_per_poll: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Cancel,
    CancelWithin(Ms),
    Abort,
    DropHandle,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Sleep(Ms),
    Yield,
    Forever,
    Panic,
    CancelSelf,
    Sequence(Vec<Body>),
    Join(Vec<Body>),
    /// A join whose branches have wakers of their own.
    Unordered(Vec<Body>),
    /// The loser is dropped.
    Select(Box<Body>, Box<Body>),
    /// The first is polled once, and waits unpolled until the second has ended. Then it is awaited or dropped.
    Park {
        parked: Box<Body>,
        meanwhile: Box<Body>,
        is_awaited: bool,
    },
    /// Polled once in a task of its own, then here.
    Move(Box<Body>),
    Timeout(Ms, Box<Body>),
    Scope {
        deadline: Option<Ms>,
        cancel_after: Option<Ms>,
        grace: Ms,
        is_shielded: bool,
        body: Box<Body>,
    },
    Shield(Box<Body>),
    Catch {
        body: Box<Body>,
        clean_up: Box<Body>,
        then: Then,
    },
}

/// What becomes of the guard after the clean-up.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Then {
    Finish,
    Drop,
    Absorb,
}

impl Body {
    /// Whether it can hold up a cancel at all.
    pub(crate) fn has_points(&self) -> bool {
        match self {
            Body::Sleep(_) | Body::Yield | Body::Forever | Body::Panic | Body::CancelSelf => false,
            Body::Sequence(all) | Body::Join(all) | Body::Unordered(all) => all.iter().any(Body::has_points),
            Body::Select(one, other) => one.has_points() || other.has_points(),
            Body::Park { parked, meanwhile, .. } => parked.has_points() || meanwhile.has_points(),
            Body::Move(body) | Body::Timeout(_, body) => body.has_points(),
            Body::Scope { is_shielded, body, .. } => *is_shielded || body.has_points(),
            Body::Shield(_) | Body::Catch { .. } => true,
        }
    }
}

pub(crate) fn programs() -> impl Strategy<Value = Program> {
    let acts = vec((0..12_u64, 0..3_usize, act()), 0..5);
    let settings = (2..40_u64, 0..40_u64, prop_oneof![Just(1_usize), Just(64)]);
    (vec(body(), 1..4), acts, settings).prop_map(|(tasks, acts, (grace, shutdown_grace, jobs_per_poll))| Program {
        tasks,
        acts,
        grace,
        shutdown_grace,
        jobs_per_poll,
    })
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => Just(Act::Cancel),
        2 => (0..30_u64).prop_map(Act::CancelWithin),
        1 => Just(Act::Abort),
        1 => Just(Act::DropHandle),
    ]
}

fn body() -> impl Strategy<Value = Body> {
    let leaf = prop_oneof![
        4 => (0..10_u64).prop_map(Body::Sleep),
        3 => Just(Body::Forever),
        2 => Just(Body::Yield),
        1 => Just(Body::CancelSelf),
    ];
    let leaf = prop_oneof![30 => leaf, 1 => Just(Body::Panic)];
    leaf.prop_recursive(6, 40, 3, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        let then = prop_oneof![3 => Just(Then::Finish), 1 => Just(Then::Drop), 1 => Just(Then::Absorb)];
        prop_oneof![
            6 => (boxed(), boxed(), then).prop_map(|(body, clean_up, then)| Body::Catch { body, clean_up, then }),
            3 => vec(inner.clone(), 1..4).prop_map(Body::Sequence),
            2 => vec(inner.clone(), 1..4).prop_map(Body::Join),
            2 => vec(inner.clone(), 1..4).prop_map(Body::Unordered),
            3 => (0..8_u64, boxed()).prop_map(|(limit, body)| Body::Timeout(limit, body)),
            2 => scope(boxed()),
            2 => boxed().prop_map(Body::Shield),
            1 => (boxed(), boxed()).prop_map(|(one, other)| Body::Select(one, other)),
            1 => (boxed(), boxed(), any::<bool>())
                .prop_map(|(parked, meanwhile, is_awaited)| Body::Park { parked, meanwhile, is_awaited }),
            1 => boxed().prop_map(Body::Move),
        ]
    })
}

fn scope(body: impl Strategy<Value = Box<Body>>) -> impl Strategy<Value = Body> {
    (proptest::option::of(0..8_u64), proptest::option::of(0..8_u64), 0..30_u64, any::<bool>(), body)
        .prop_map(|(deadline, cancel_after, grace, is_shielded, body)| Body::Scope { deadline, cancel_after, grace, is_shielded, body })
}
