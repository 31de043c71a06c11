//! What a dump says of whoever waits, for everything that can be waited for (C182 is in `looking.rs`).

mod support;

use std::future::{Future, pending};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc;

use miniloop::diag::{self, TaskState};
use miniloop::net::{TcpListener, TcpStream, UdpSocket, UnixStream};
use miniloop::process::Command;
use miniloop::signal::{Signal, Signals};
use miniloop::sync::{self, Barrier, Condvar, Event, Mutex, Queue, Semaphore};
use miniloop::thread::Worker;
use miniloop::{
    Abandoned, LoopHandle, Scope, ScopeOptions, as_completed, interval, io, join_all, promise, race, scope, shield, sleep, spawn,
    spawn_blocking, task_group, timeout, wait, yield_now,
};

use support::ms;

type Waiting = Pin<Box<dyn Future<Output = ()>>>;

/// Has the future wait in a task, and compares what a dump says of that: what it waits for, and for whom.
async fn check<T: 'static>(waiting: impl Future<Output = T> + 'static, expected: &str) {
    let task = spawn(waiting).named("waiting");
    // A few turns, for those that only begin to wait when something else has begun.
    for _ in 0..4 {
        yield_now().await;
    }
    let dump = diag::dump();
    let line = dump.task("waiting").unwrap_or_else(|| panic!("it does not wait for {expected}"));
    let said = if line.awaits.is_empty() { line.waits_for.to_owned() } else { line.awaits.join(", ") };
    assert_eq!((line.state, said.as_str()), (TaskState::Waiting, expected), "{dump}");
    task.abort();
    drop(task.await);
}

fn run(scene: impl AsyncFnOnce()) {
    miniloop::run(scene()).unwrap();
}

/// A future that never ends, of a library that tells nothing.
async fn foreign() {
    pending().await
}

#[test]
fn what_tasks_share() {
    run(async || {
        let mutex = Rc::new(Mutex::new(()));
        let guard = mutex.clone().lock_owned().await;
        let other = mutex.clone();
        check(async move { drop(other.lock().await) }, "the lock of a mutex").await;
        drop(guard);
        let semaphore = Semaphore::new(0);
        check(async move { drop(semaphore.acquire().await) }, "a permit of a semaphore").await;
        let event = Event::new();
        check(async move { event.wait().await }, "an event to be set").await;
        let condvar = Condvar::new();
        check(async move { drop(condvar.wait(mutex.lock().await).await) }, "a notification of a condition variable").await;
        let barrier = Barrier::new(2);
        check(async move { barrier.wait().await }, "the others at a barrier").await;
        let (sender, mut receiver) = sync::channel::<()>(1);
        sender.try_send(()).unwrap();
        check(async move { sender.send(()).await }, "room in a channel").await;
        assert!(receiver.recv().await.is_some());
        let (_sender, mut receiver) = sync::channel::<()>(1);
        check(async move { receiver.recv().await }, "a value of a channel").await;
        let queue = Rc::new(Queue::new(1));
        let other = queue.clone();
        check(async move { other.get().await }, "an item of a queue").await;
        queue.try_put(()).unwrap();
        let other = queue.clone();
        check(async move { other.put(()).await }, "a place in a queue").await;
        check(async move { queue.join().await }, "the work of a queue to be done").await;
        let (_sender, mut receiver) = sync::broadcast::<()>(1);
        check(async move { receiver.recv().await }, "a value of a broadcast").await;
        let (_sender, mut receiver) = sync::watch(());
        check(async move { receiver.changed().await }, "a watched value to change").await;
    });
}

#[test]
fn time_and_what_others_promise() {
    run(async || {
        check(sleep(ms(90_000)), "a deadline").await;
        check(
            async {
                let mut ticks = interval(ms(90_000));
                ticks.tick().await;
                ticks.tick().await;
            },
            "a deadline",
        )
        .await;
        check(async { timeout(ms(90_000), Event::new().wait()).await }, "an event to be set").await;
        check(async { scope(ScopeOptions::new(), async |_: &Scope| Event::new().wait().await).await }, "an event to be set").await;
        check(async { shield(Event::new().wait()).await }, "an event to be set").await;
        let (resolver, promised) = promise::<(), Abandoned>();
        check(promised, "a promise").await;
        drop(resolver);
        let (resolver, promised) = promise::<(), Abandoned>();
        check(async move { resolver.cancelled().await }, "the end of a promise").await;
        drop(promised);
        check(foreign(), "").await;
    });
}

#[test]
fn tasks_and_members() {
    run(async || {
        let stuck = || spawn(pending::<()>()).named("stuck");
        check(async move { stuck().await }, "stuck").await;
        check(async move { stuck().shared().await }, "stuck").await;
        check(async move { wait(&mut vec![stuck()], |_| true).await }, "some of several tasks").await;
        check(async move { as_completed([pending::<()>()]).next().await }, "the next of several futures").await;
        check(async { join_all([pending::<()>()]).await }, "all futures of a join").await;
        check(async { race([pending::<()>()]).await }, "the first future of a race").await;
        let remote = LoopHandle::current().remote();
        check(async move { remote.spawn(pending::<()>).unwrap().await }, "a task that was spawned through a `Remote`").await;
        let members = async {
            task_group(async |g| {
                let reader = g.spawn(pending::<()>()).named("reader");
                g.spawn(async move { drop(reader.await) }).named("waiting");
            })
            .await;
        };
        let group = spawn(members).named("group");
        yield_now().await;
        yield_now().await;
        let dump = diag::dump();
        assert_eq!(dump.task("group").unwrap().waits_for, "the members of its task group");
        assert_eq!(dump.task("waiting").unwrap().awaits, ["reader"]);
        assert!(dump.to_string().contains(": waits for member `reader`"), "{dump}");
        drop(group);
    });
}

#[test]
fn a_branch_that_tells_nothing_is_not_said_to_wait_for_what_its_neighbour_waits_for() {
    run(async || {
        let branches: Vec<Waiting> = vec![Box::pin(async { Event::new().wait().await }), Box::pin(foreign())];
        let task = spawn(join_all(branches));
        yield_now().await;
        let dump = diag::dump();
        let said: Vec<_> = ["member-0", "member-1"].map(|name| dump.task(name).unwrap().waits_for).into();
        assert_eq!(said, ["an event to be set", ""]);
        drop(task);
    });
}

#[test]
fn threads_and_processes() {
    run(async || {
        let (release, held) = mpsc::channel::<()>();
        let worker = Worker::new("worker", || ()).unwrap();
        let holding = worker.call(move |()| held.recv());
        let worker = Rc::new(worker);
        let other = worker.clone();
        check(async move { other.call(|()| ()).await }, "a worker thread").await;
        let worker = Rc::into_inner(worker).unwrap();
        let closing = spawn(worker.close()).named("closing");
        yield_now().await;
        assert_eq!(diag::dump().task("closing").unwrap().waits_for, "a worker thread to end");
        drop(release);
        drop(holding.await);
        closing.await.unwrap().unwrap();

        let (release, held) = mpsc::channel::<()>();
        let building = spawn(Worker::try_new("worker", move || held.recv().map_err(std::io::Error::other))).named("building");
        yield_now().await;
        assert_eq!(diag::dump().task("building").unwrap().waits_for, "a worker thread to begin");
        drop(release);
        drop(building.await);

        let (release, held) = mpsc::channel::<()>();
        let job = spawn(spawn_blocking(move || held.recv())).named("job");
        yield_now().await;
        assert_eq!(diag::dump().task("job").unwrap().waits_for, "a blocking job");
        drop(release);
        drop(job.await);

        let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        check(async move { child.wait().await }, "a process to exit").await;
        drop(stdin);
        let mut signals = Signals::new([Signal::USER2]).unwrap();
        check(async move { signals.recv().await }, "a signal").await;
    });
}

#[test]
fn descriptors() {
    const READABLE: &str = "a descriptor to become readable";
    run(async || {
        let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let _peer = listener.accept().await.unwrap();
        check(async move { listener.accept().await }, "a connection").await;
        check(async move { stream.read(&mut [0]).await }, READABLE).await;
        let (ours, theirs) = UnixStream::pair().unwrap();
        check(async move { io::BufReader::new(ours).read_line().await }, "a line").await;
        drop(theirs);
        let (mut ours, _theirs) = UnixStream::pair().unwrap();
        check(async move { io::copy(&mut ours, &mut futures_util::io::sink()).await }, "bytes to copy").await;
        let (mut ours, _theirs) = UnixStream::pair().unwrap();
        check(async move { io::write_all(&mut ours, &[0; 4 << 20]).await }, "a descriptor to become writable").await;
        let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        check(async move { socket.recv_from(&mut [0]).await }, "a datagram").await;
    });
}
