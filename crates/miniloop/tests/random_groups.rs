//! Random trees of groups: members of every kind that wait, spawn, fail, panic, clean up and cancel, cancelled or dropped from outside at
//! any moment. Whatever they do, the rules of groups must hold:
//!
//! - every future is dropped once, and before what it borrows (G1, G7): each has a `Life` that borrows from the `Frame` around its group;
//! - a group ends when nobody of it is left (G1), and everything ends: the clock is virtual, so what hangs is a deadlock;
//! - each failure is told to one owner, once (G3, G5, G8).
//!
//! `PROPTEST_CASES=20000 cargo test -p miniloop --test random_groups` runs more of them.

mod support;

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::panic::{panic_any, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use miniloop::{Child, Group, ReportKind, catch, sleep, spawn, task_group, yield_now};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use support::{jumping, ms};

/// What a body or a member does.
#[derive(Clone, Debug)]
struct Node {
    steps: Vec<Step>,
    end: End,
    /// It has a catch point, takes so many milliseconds to clean up, and ends like this then.
    tidy: Option<(u64, End)>,
}

#[derive(Clone, Debug)]
enum Step {
    Yield,
    Sleep(u64),
    Spawn(Kind, Node),
    Group(Node),
    CancelGroup,
    CancelChild(usize),
    AwaitChild(usize),
    DropChild(usize),
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Plain,
    Caught,
    Service,
    Isolated,
    Task,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Well,
    Error,
    Panic,
    /// Only a service may.
    Never,
}

/// What happens to the outermost group.
#[derive(Clone, Copy, Debug)]
enum Outside {
    Await,
    CancelAt(u64),
    AbortAt(u64),
    DropAtPoll(usize),
}

/// A failure, with a number of its own.
#[derive(Debug, PartialEq)]
struct Fail(usize);

#[derive(Default)]
struct World {
    raised: Cell<usize>,
    told: RefCell<Vec<usize>>,
    alive: Cell<usize>,
    /// Somebody failed or was cancelled, so members may be dropped before they have finished.
    is_disturbed: Cell<bool>,
    unfinished: Cell<usize>,
    problems: RefCell<Vec<String>>,
}

impl World {
    fn raise(&self) -> Fail {
        self.is_disturbed.set(true);
        self.raised.set(self.raised.get() + 1);
        Fail(self.raised.get() - 1)
    }

    fn tell(&self, Fail(number): Fail) {
        self.told.borrow_mut().push(number);
    }

    fn expect(&self, is_so: bool, what: &str) {
        if !is_so {
            self.problems.borrow_mut().push(what.to_owned());
        }
    }
}

/// What the members of a group borrow.
struct Frame {
    world: Rc<World>,
    /// Below a service, which is not waited for. What that spawns late is refused, so it need not finish either.
    is_service: bool,
    members: Cell<usize>,
    is_gone: Cell<bool>,
}

impl Drop for Frame {
    fn drop(&mut self) {
        self.world.expect(self.members.get() == 0, "a member outlives what it borrows");
        self.is_gone.set(true);
    }
}

/// A future that exists.
struct Life<'a> {
    frame: &'a Frame,
    is_finished: bool,
}

impl<'a> Life<'a> {
    fn new(frame: &'a Frame, is_service: bool) -> Life<'a> {
        frame.members.set(frame.members.get() + 1);
        frame.world.alive.set(frame.world.alive.get() + 1);
        Life { frame, is_finished: is_service || frame.is_service }
    }
}

impl Drop for Life<'_> {
    fn drop(&mut self) {
        let Life { frame, is_finished } = self;
        frame.world.unfinished.set(frame.world.unfinished.get() + usize::from(!*is_finished));
        frame.world.expect(!frame.is_gone.get(), "a member is dropped after what it borrows");
        frame.members.set(frame.members.get() - 1);
        frame.world.alive.set(frame.world.alive.get() - 1);
    }
}

type Ends<'a> = Pin<Box<dyn Future<Output = Result<(), Fail>> + 'a>>;

/// Runs a group with `node` as its body, and tells its failures.
fn run_group(world: Rc<World>, is_service: bool, node: Node) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async move {
        let frame = Frame { world: world.clone(), is_service, members: Cell::new(0), is_gone: Cell::new(false) };
        let result = task_group(async |g| follow(g, &frame, is_service, node).await).await;
        world.expect(frame.members.get() == 0, "a group ends before its members");
        for failure in result.err().into_iter().flatten() {
            world.tell(failure.into_error());
        }
    })
}

/// A body or a member.
fn follow<'scope, 'env>(g: &'scope Group<'scope, 'env, Fail>, frame: &'scope Frame, is_service: bool, node: Node) -> Ends<'scope> {
    let life = Life::new(frame, is_service);
    Box::pin(async move {
        let mut life = life;
        let Node { steps, end, tidy } = node;
        let work = async {
            take_steps(g, frame, is_service, steps).await;
            finish(&frame.world, end).await
        };
        let result = match tidy {
            None => work.await,
            Some((needs, then)) => match catch(work).await {
                Ok(result) => result,
                Err(cleanup) => {
                    sleep(ms(needs)).await;
                    cleanup.finish();
                    let then = if matches!(then, End::Never) { End::Well } else { then };
                    finish(&frame.world, then).await
                }
            },
        };
        life.is_finished = true;
        result
    })
}

async fn finish(world: &World, end: End) -> Result<(), Fail> {
    match end {
        End::Well => Ok(()),
        End::Error => Err(world.raise()),
        End::Panic => panic_any(world.raise()),
        End::Never => pending().await,
    }
}

enum Handle {
    Plain(Child<()>),
    Caught(Child<Result<(), Fail>>),
    /// Never awaited: it may stay for ever.
    Service(Child<()>),
}

async fn take_steps<'scope>(g: &'scope Group<'scope, '_, Fail>, frame: &'scope Frame, is_service: bool, steps: Vec<Step>) {
    let world = &frame.world;
    let mut children = Vec::new();
    for step in steps {
        let chosen = |wanted: usize, len: usize| if len == 0 { None } else { Some(wanted % len) };
        if matches!(step, Step::CancelGroup | Step::CancelChild(_)) {
            world.is_disturbed.set(true);
        }
        match step {
            Step::Yield => yield_now().await,
            Step::Sleep(for_ms) => sleep(ms(for_ms)).await,
            Step::Spawn(kind, node) => children.push(spawn_into(g, frame, is_service, kind, node)),
            Step::Group(node) => run_group(world.clone(), is_service || frame.is_service, node).await,
            Step::CancelGroup => g.cancel(),
            Step::CancelChild(wanted) => match chosen(wanted, children.len()).map(|index| &children[index]) {
                Some(Handle::Plain(child) | Handle::Service(child)) => child.cancel(),
                Some(Handle::Caught(child)) => child.cancel(),
                None => {}
            },
            Step::DropChild(wanted) => drop(chosen(wanted, children.len()).map(|index| children.swap_remove(index))),
            Step::AwaitChild(wanted) => match chosen(wanted, children.len()).map(|index| children.swap_remove(index)) {
                Some(Handle::Plain(child)) => {
                    let told = child.await;
                    world.expect(told.map_or_else(|error| !error.is_panic(), |()| true), "a child has the panic of its group");
                }
                Some(Handle::Caught(child)) => match child.await {
                    Ok(result) => result.err().into_iter().for_each(|failure| world.tell(failure)),
                    Err(error) => error.into_panic().into_iter().for_each(|payload| world.tell(*payload.downcast().unwrap())),
                },
                Some(Handle::Service(_)) | None => {}
            },
        }
    }
}

fn spawn_into<'scope>(g: &'scope Group<'scope, '_, Fail>, frame: &'scope Frame, is_service: bool, kind: Kind, mut node: Node) -> Handle {
    if !matches!(kind, Kind::Service) && matches!(node.end, End::Never) {
        node.end = End::Well;
    }
    match kind {
        Kind::Plain => Handle::Plain(g.spawn(follow(g, frame, is_service, node))),
        Kind::Caught => Handle::Caught(g.spawn_caught(follow(g, frame, is_service, node))),
        Kind::Isolated => Handle::Plain(g.spawn(follow(g, frame, is_service, node)).isolate()),
        Kind::Service => Handle::Service(g.spawn_service(follow(g, frame, true, node))),
        Kind::Task => {
            let (world, is_service) = (frame.world.clone(), is_service || frame.is_service);
            let end = node.end;
            Handle::Plain(g.spawn_task(async move {
                // A group of its own, and then a failure of its own.
                run_group(world.clone(), is_service, Node { end: End::Well, ..node }).await;
                finish(&world, end).await
            }))
        }
    }
}

fn check(root: Node, outside: Outside) {
    let (mut event_loop, ..) = jumping();
    let world = Rc::new(World::default());
    let heard = world.clone();
    event_loop.handle().on_error(move |report| match report.kind() {
        ReportKind::Panic => heard.tell(*report.take_panic_payload().unwrap().downcast().unwrap()),
        ReportKind::Error => {
            let number = report.message().strip_prefix("Fail(").and_then(|rest| rest.strip_suffix(')'));
            heard.tell(Fail(number.unwrap().parse().unwrap()));
        }
        ReportKind::GraceExceeded => {}
        kind => heard.expect(false, &format!("a report of kind {kind:?}")),
    });
    world.is_disturbed.set(!matches!(outside, Outside::Await));
    let root = run_group(world.clone(), false, root);
    let inner = world.clone();
    let main = async move {
        match outside {
            Outside::DropAtPoll(k) => drop_at_poll(root, k).await,
            Outside::Await => tell_panic(&inner, spawn(root).await),
            Outside::CancelAt(at) | Outside::AbortAt(at) => {
                let task = spawn(root);
                sleep(ms(at)).await;
                if matches!(outside, Outside::CancelAt(_)) {
                    task.cancel()
                } else {
                    task.abort()
                }
                tell_panic(&inner, task.await);
            }
        }
        // Tasks of groups that were dropped end by themselves.
        sleep(ms(60_000)).await;
    };
    event_loop.run_until_complete(main).unwrap();
    assert_eq!(*world.problems.borrow(), Vec::<String>::new());
    assert_eq!(world.alive.get(), 0, "a future was never dropped");
    assert!(world.is_disturbed.get() || world.unfinished.get() == 0, "a member was dropped, though nobody asked for that");
    let mut told = world.told.take();
    told.sort_unstable();
    let expected: Vec<usize> = (0..world.raised.get()).collect();
    assert_eq!(told, expected, "each failure is told once");
}

fn tell_panic(world: &World, ended: Result<(), miniloop::TaskError>) {
    if let Some(payload) = ended.err().and_then(miniloop::TaskError::into_panic) {
        match payload.downcast() {
            Ok(failure) => world.tell(*failure),
            Err(other) => resume_unwind(other),
        }
    }
}

/// Polls the group inside the main future, and drops it in the round after its poll number `k`, if it has not ended.
async fn drop_at_poll(mut root: Pin<Box<dyn Future<Output = ()>>>, k: usize) {
    let mut polls = 0;
    let caught = std::panic::AssertUnwindSafe(poll_fn(|cx| {
        polls += 1;
        if polls > k { Poll::Ready(()) } else { root.as_mut().poll(cx) }
    }));
    let ended = futures_util::FutureExt::catch_unwind(caught).await;
    drop(root);
    if let Err(payload) = ended {
        // The panic of the group is nobody's but ours.
        spawn(async move { resume_unwind(payload) }).detach();
    }
}

fn ends() -> impl Strategy<Value = End> {
    prop_oneof![6 => Just(End::Well), 2 => Just(End::Error), 1 => Just(End::Panic), 1 => Just(End::Never)]
}

fn nodes() -> impl Strategy<Value = Node> {
    let node = |steps: BoxedStrategy<Vec<Step>>| {
        let tidy = proptest::option::weighted(0.3, (prop_oneof![4 => 0..9u64, 1 => Just(9_000)], ends()));
        (steps, ends(), tidy).prop_map(|(steps, end, tidy)| Node { steps, end, tidy })
    };
    let plain = || prop_oneof![Just(Step::Yield), (0..6u64).prop_map(Step::Sleep)];
    node(vec(plain(), 0..3).boxed()).prop_recursive(6, 400, 12, move |inner| {
        let kind = prop_oneof![
            4 => Just(Kind::Plain), 2 => Just(Kind::Caught), 2 => Just(Kind::Service), 1 => Just(Kind::Isolated), 2 => Just(Kind::Task)
        ];
        let step = prop_oneof![
            4 => plain(),
            9 => (kind, inner.clone()).prop_map(|(kind, node)| Step::Spawn(kind, node)),
            3 => inner.prop_map(Step::Group),
            1 => Just(Step::CancelGroup),
            1 => any::<usize>().prop_map(Step::CancelChild),
            1 => any::<usize>().prop_map(Step::DropChild),
            3 => any::<usize>().prop_map(Step::AwaitChild),
        ];
        node(vec(step, 2..12).boxed())
    })
}

/// A body that never ends keeps its group for ever.
fn without_endless_bodies(mut node: Node) -> Node {
    if matches!(node.end, End::Never) {
        node.end = End::Well;
    }
    node.steps = node.steps.into_iter().map(step_without_endless_bodies).collect();
    node
}

fn step_without_endless_bodies(step: Step) -> Step {
    match step {
        Step::Group(node) => Step::Group(without_endless_bodies(node)),
        Step::Spawn(Kind::Service, mut node) => {
            node.steps = node.steps.into_iter().map(step_without_endless_bodies).collect();
            Step::Spawn(Kind::Service, node)
        }
        Step::Spawn(kind, node) => Step::Spawn(kind, without_endless_bodies(node)),
        step => step,
    }
}

fn outsides() -> impl Strategy<Value = Outside> {
    prop_oneof![
        2 => Just(Outside::Await),
        1 => (0..12u64).prop_map(Outside::CancelAt),
        1 => (0..12u64).prop_map(Outside::AbortAt),
        2 => (0..20usize).prop_map(Outside::DropAtPoll),
    ]
}

#[test]
fn random_groups_keep_their_rules_g1_g3_g5_g7_g8() {
    // Nobody wants to read thousands of panics that are part of the programs.
    std::panic::set_hook(Box::new(|info| {
        if info.payload().downcast_ref::<Fail>().is_none() {
            eprintln!("{info}");
        }
    }));
    let config = ProptestConfig { failure_persistence: None, max_shrink_iters: 2_000, ..ProptestConfig::default() };
    // The same programs every time; more cases are further ones.
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    runner
        .run(&(nodes(), outsides()), |(root, outside)| {
            check(without_endless_bodies(root), outside);
            Ok(())
        })
        .unwrap();
}
