//! Watching a loop while it runs: the watchdog, dumps on a signal, the timeline (C179). `looking.rs` has the rest of `diag`.

mod support;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::panic::Location;
use std::pin::pin;
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use miniloop::diag::{self, Watchdog};
use miniloop::signal::Signal;
use miniloop::{Abandoned, EventLoop, LoopHandle, promise, sleep, spawn, task_group, yield_now};
use serde_json::Value;

use support::{jumping, manual, ms, trace_reports};

/// A watchdog, and what it tells. Who blocks the loop waits for that, so nothing here depends on how fast the machine is.
fn watchdog(handle: &LoopHandle) -> (Watchdog, Rc<Receiver<diag::Blocked>>) {
    let (sender, told) = mpsc::channel();
    let watchdog = Watchdog::start_with(handle, ms(4), move |blocked| sender.send(blocked.clone()).unwrap()).unwrap();
    (watchdog, Rc::new(told))
}

#[test]
fn a_watchdog_names_what_blocks_the_loop_while_it_blocks_c179() {
    let (mut event_loop, ..) = manual();
    let handle = event_loop.handle();
    let (watchdog, told) = watchdog(&handle);
    let (first, second) = (told.clone(), told.clone());
    handle.call_soon(move || {
        let blocked = first.recv().unwrap();
        assert_eq!((blocked.place.file(), blocked.subject.as_str()), (file!(), "callback"));
        assert!(blocked.running_for >= ms(4), "{blocked}");
    });
    let line = Location::caller().line() + 1;
    let task = handle.spawn(async move {
        let blocked = second.recv().unwrap();
        assert_eq!((blocked.place.line(), blocked.subject.as_str(), blocked.turn), (line, "task `pump\n`", 1));
        assert!(blocked.to_string().starts_with(&format!("task `pump\\n` (made at {}:{line}:", file!())), "{blocked}");
    });
    let task = task.named("pump\n");
    event_loop.run_until_complete(task).unwrap().unwrap();
    // Its thread has ended, and with it all that it could still tell.
    drop(watchdog);
    assert!(told.recv().is_err());
}

#[test]
fn a_watchdog_sees_the_very_job_that_starts_it_c179() {
    let (mut event_loop, ..) = manual();
    let blocked = event_loop
        .run_until_complete(async {
            let (_watchdog, told) = watchdog(&LoopHandle::current());
            told.recv().unwrap()
        })
        .unwrap();
    assert_eq!((blocked.place.file(), blocked.subject.as_str()), (file!(), "the future given to `run_until_complete`"));
}

#[test]
fn a_watchdog_may_be_dropped_by_its_own_callback_and_on_another_thread() {
    let (mut event_loop, ..) = manual();
    let (give, take) = mpsc::channel::<Watchdog>();
    let (tell, told) = mpsc::channel();
    let watchdog = Watchdog::start_with(&event_loop.handle(), ms(4), move |_| {
        drop(take.recv());
        tell.send(()).unwrap();
    })
    .unwrap();
    give.send(watchdog).unwrap();
    event_loop.handle().call_soon(move || told.recv().unwrap());
    event_loop.run_once().unwrap();
    event_loop.run_ready().unwrap();
}

#[test]
fn dropping_a_watchdog_waits_for_the_callback_that_runs() {
    let (mut event_loop, ..) = manual();
    let ((begin, begun), (go, gone), has_ended) = (mpsc::channel(), mpsc::channel::<()>(), Arc::new(AtomicBool::new(false)));
    let ends = has_ended.clone();
    let watchdog = Watchdog::start_with(&event_loop.handle(), ms(4), move |_| {
        begin.send(()).unwrap();
        gone.recv().unwrap();
        ends.store(true, Ordering::Relaxed);
    })
    .unwrap();
    event_loop.handle().call_soon(move || {
        begun.recv().unwrap();
        let dropping = thread::Builder::new().spawn(move || {
            drop(watchdog);
            has_ended.load(Ordering::Relaxed)
        });
        go.send(()).unwrap();
        assert!(dropping.unwrap().join().unwrap());
    });
    event_loop.handle().on_error(|_| ControlFlow::Break(()));
    event_loop.run_ready().unwrap();
    event_loop.run_ready().unwrap();
}

#[test]
fn a_watchdog_sees_members_of_groups_and_then_the_task_around_them_again_c179() {
    let (mut event_loop, ..) = manual();
    let handle = event_loop.handle();
    let (_watchdog, told) = watchdog(&handle);
    let member_line = Location::caller().line() + 4;
    let main = async {
        let blamed = Cell::new(None);
        let mut group = pin!(task_group(async |g| {
            g.spawn(async { blamed.set(Some(told.recv().unwrap())) }).named("slow");
        }));
        let around = poll_fn(|cx| group.as_mut().poll(cx).map(|()| told.recv().unwrap())).await;
        [blamed.take().unwrap(), around]
    };
    let main_line = Location::caller().line() + 1;
    let [member, around] = event_loop.run_until_complete(main).unwrap();
    assert_eq!((member.subject.as_str(), member.place.line()), ("member `slow`", member_line));
    assert_eq!((around.subject.as_str(), around.place.line()), ("the future given to `run_until_complete`", main_line));
}

/// Sends on what is logged, on whichever thread.
struct Log(Sender<String>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(String::from_utf8_lossy(bytes).into_owned()).unwrap();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn without_a_callback_a_watchdog_warns() {
    // The subscriber is that of the whole process: the watchdog logs on its own thread.
    support::in_a_process_of_its_own("without_a_callback_a_watchdog_warns", || {
        let (sender, logged) = mpsc::channel();
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || Log(sender.clone())).init();
        let mut event_loop = EventLoop::new().unwrap();
        let _watchdog = Watchdog::start(&event_loop.handle(), ms(4)).unwrap();
        event_loop.handle().call_soon(move || {
            let line = logged.recv().unwrap();
            assert!(line.contains(" WARN ") && line.contains("has been blocking the event loop for "), "{line}");
        });
        event_loop.handle().on_error(|_| ControlFlow::Break(()));
        event_loop.run_ready().unwrap();
        event_loop.run_ready().unwrap();
    });
}

#[test]
fn a_dump_comes_with_a_signal() {
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let reports = trace_reports(&handle);
    event_loop
        .run_until_complete(async {
            let (resolver, dumped) = promise::<_, Abandoned>();
            let mut resolver = Some(resolver);
            let _patient = spawn(std::future::pending::<()>()).named("patient");
            let _listening = diag::dump_on_with(Signal::USER1, move |dump| {
                resolver.take().expect("the first dump").set_result(dump.clone());
                Err::<(), _>("no disk")
            })
            .unwrap();
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::USR1).unwrap();
            let dump = dumped.await.unwrap();
            let names: Vec<_> = dump.tasks.iter().map(|task| task.name.as_str()).collect();
            assert_eq!(names, ["main", "patient", "dump on signal 10"]);
            yield_now().await;
        })
        .unwrap();
    assert_eq!(reports.take(), ["Error task `dump on signal 10`: \"no disk\""]);
}

#[test]
fn a_dump_on_a_signal_goes_to_standard_error() {
    let stderr = support::in_a_process_of_its_own("a_dump_on_a_signal_goes_to_standard_error", || {
        miniloop::run(async {
            let mut heard = miniloop::signal::Signals::new([Signal::USER2]).unwrap();
            diag::dump_on(Signal::USER2).unwrap().detach();
            yield_now().await;
            let pid = rustix::process::getpid().as_raw_nonzero().to_string();
            Command::new("kill").args(["-USR2", &pid]).status().unwrap();
            heard.recv().await.unwrap();
            yield_now().await;
            yield_now().await;
        })
        .unwrap();
    });
    assert!(stderr.contains("event loop 1: ") && stderr.contains("task `dump on signal 12`, spawned at "), "{stderr}");
}

/// A writer that others can read.
#[derive(Clone, Default)]
struct File(Arc<Mutex<Vec<u8>>>);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl File {
    /// The events of the trace that was written.
    fn events(&self) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
    }
}

/// Nanoseconds of a field that has microseconds.
fn nanos(event: &Value, field: &str) -> u64 {
    (event[field].as_f64().unwrap() * 1_000.0).round() as u64
}

struct Slice {
    name: String,
    begin: u64,
    end: u64,
    /// The slices around it, outermost first.
    path: Vec<String>,
}

/// The slices of a trace in order, each checked to lie inside the one around it.
#[track_caller]
fn slices(events: &[Value]) -> Vec<Slice> {
    let mut open: Vec<(String, u64)> = Vec::new();
    let mut slices = Vec::new();
    let mut latest = 0;
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let (begin, end) = (nanos(event, "ts"), nanos(event, "ts") + nanos(event, "dur"));
        assert!(begin > latest && end > begin, "{event}");
        latest = begin;
        while open.last().is_some_and(|(_, end)| *end < begin) {
            open.pop();
        }
        assert!(open.last().is_none_or(|(_, parent_end)| end < *parent_end), "{event} sticks out of {open:?}");
        let name = event["name"].as_str().unwrap().to_owned();
        slices.push(Slice { name: name.clone(), begin, end, path: open.iter().map(|(name, _)| name.clone()).collect() });
        open.push((name, end));
    }
    slices
}

/// The arrows of a trace, as the innermost slices that they lead from and to.
#[track_caller]
fn arrows(events: &[Value]) -> Vec<(String, String)> {
    let slices = slices(events);
    let around = |at: u64| slices.iter().rev().find(|slice| slice.begin <= at && at <= slice.end).expect("an arrow ends in a slice");
    let mut starts = BTreeMap::new();
    let mut arrows = Vec::new();
    for event in events {
        let id = event["id"].as_u64();
        match event["ph"].as_str().unwrap() {
            "s" => assert!(starts.insert(id.unwrap(), nanos(event, "ts")).is_none()),
            "f" => {
                let (from, until) = (starts.remove(&id.unwrap()).expect("a start"), nanos(event, "ts"));
                assert!(from < until && event["bp"] == "e", "{event}");
                assert_eq!(around(until).begin, until, "{event}");
                arrows.push((around(from).name.clone(), around(until).name.clone()));
            }
            _ => {}
        }
    }
    assert!(starts.is_empty());
    arrows
}

#[test]
fn a_trace_nests_turns_rounds_and_jobs_and_leads_from_wakes_to_polls() {
    let (mut event_loop, ..) = jumping();
    let file = File::default();
    let handle = event_loop.handle();
    let trace = handle.trace(file.clone()).unwrap();
    event_loop
        .run_until_complete(async {
            let (resolver, promised) = promise::<u8, Abandoned>();
            let reader = spawn(promised).named("the \"reader\"\n\\");
            let sleeper = spawn(async {
                sleep(ms(5)).await;
                resolver.set_result(1);
            })
            .named("sleeper");
            reader.await.unwrap().unwrap();
            sleeper.await.unwrap();
            LoopHandle::current().remote().call_soon(|| ()).unwrap();
            task_group(async |g| drop(g.spawn(async { sleep(ms(1)).await }).named("member"))).await;
        })
        .unwrap();
    event_loop.run_until_complete(trace.finish()).unwrap().unwrap();
    let events = file.events();
    let slices = slices(&events);
    let named = |name: &str| slices.iter().filter(|slice| slice.name == name).collect::<Vec<_>>();
    for (name, path) in [
        ("main", &["turn", "round"][..]),
        ("sleeper", &["turn", "round"]),
        ("wait", &["turn", "poll"]),
        ("member `member`", &["turn", "round", "main"]),
    ] {
        assert!(!named(name).is_empty() && named(name).iter().all(|slice| slice.path == path), "{name}");
    }
    assert!(named("timers").iter().all(|slice| slice.path == ["turn", "poll"]));
    assert!(named("turn").iter().all(|slice| slice.path.is_empty()));
    assert_eq!((named("sleeper").len(), named("the \"reader\"\n\\").len()), (2, 2));
    let arrows = arrows(&events);
    let arrows: Vec<_> = arrows.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
    let reader = "the \"reader\"\n\\";
    for arrow in
        [("main", reader), ("main", "sleeper"), ("timers", "sleeper"), ("sleeper", reader), (reader, "main"), ("timers", "member `member`")]
    {
        assert!(arrows.contains(&arrow), "{arrow:?} is not in {arrows:#?}");
    }
    assert!(arrows.iter().any(|(from, to)| *from == "messages" && to.starts_with("callback watching.rs:")), "{arrows:?}");
    // What has no place of its own is told where it was made.
    let job = events.iter().find(|event| event["name"] == "sleeper").unwrap();
    assert!(job["args"]["place"].as_str().unwrap().starts_with(&format!("{}:", file!())), "{job}");
}

#[test]
fn a_trace_is_bounded_and_says_how_much_it_has_left_out() {
    let (mut event_loop, ..) = jumping();
    let file = File::default();
    let handle = event_loop.handle();
    let summary = event_loop
        .run_until_complete(async {
            let trace = handle.trace(file.clone()).unwrap().events_max(10);
            for _ in 0..100 {
                yield_now().await;
            }
            trace.finish().await
        })
        .unwrap()
        .unwrap();
    assert_eq!(summary.recorded, 10);
    assert!(summary.dropped > 100, "{summary:?}");
    let events = file.events();
    assert!(events.iter().filter(|event| event["ph"] == "X").count() <= 10);
    arrows(&events);
    let told = events.iter().find(|event| event["name"] == "dropped_events").unwrap();
    assert_eq!(told["args"]["dropped"], summary.dropped);
}

/// A disk that answers when it is told to, and how.
struct SlowDisk(Receiver<io::Result<()>>);

impl SlowDisk {
    fn new() -> (Sender<io::Result<()>>, SlowDisk) {
        let (sender, receiver) = mpsc::channel();
        (sender, SlowDisk(receiver))
    }
}

impl Write for SlowDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.recv().expect("the disk is told what to answer").map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_slow_disk_does_not_hold_the_loop_and_its_errors_are_returned() {
    for (answer, expected) in [(Ok(()), None), (Err(io::ErrorKind::StorageFull.into()), Some(io::ErrorKind::StorageFull))] {
        let (mut event_loop, ..) = jumping();
        let (disk, slow) = SlowDisk::new();
        let handle = event_loop.handle();
        let written = event_loop
            .run_until_complete(async {
                let trace = handle.trace(slow).unwrap();
                let written = trace.finish();
                // Only a loop that goes on meanwhile comes here.
                spawn(async move {
                    yield_now().await;
                    disk.send(answer).unwrap();
                })
                .detach();
                written.await
            })
            .unwrap();
        assert_eq!(written.map(drop).map_err(|error| error.kind()).err(), expected);
    }
}

#[test]
fn a_writer_that_panics_is_an_error() {
    let (mut event_loop, ..) = jumping();
    let (disk, slow) = SlowDisk::new();
    drop(disk);
    let trace = event_loop.handle().trace(slow).unwrap();
    let error = event_loop.run_until_complete(trace.finish()).unwrap().unwrap_err();
    assert!(error.to_string().starts_with("the writer panicked: the disk is told what to answer"), "{error}");
}

#[test]
fn a_trace_that_is_dropped_is_written_and_one_loop_has_one_at_a_time() {
    let (mut event_loop, ..) = jumping();
    let handle = event_loop.handle();
    let file = File::default();
    event_loop
        .run_until_complete(async {
            let _trace = handle.trace(file.clone()).unwrap();
            assert_eq!(handle.trace(File::default()).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            sleep(Duration::from_secs(1)).await;
        })
        .unwrap();
    assert!(slices(&file.events()).len() > 3);
    drop(handle.trace(File::default()).unwrap());
}

#[test]
fn a_trace_of_a_loop_that_stands_still_has_no_turn_whoever_begins_it() {
    let ((mut event_loop, ..), (other, ..)) = (jumping(), jumping());
    let (handle, file) = (other.handle(), File::default());
    let to = file.clone();
    event_loop.run_until_complete(async move { drop(handle.trace(to).unwrap()) }).unwrap();
    assert_eq!(slices(&file.events()).len(), 0);
}

#[test]
fn a_trace_outlives_its_loop() {
    let (mut event_loop, ..) = jumping();
    let file = File::default();
    let trace = event_loop.handle().trace(file.clone()).unwrap();
    event_loop.handle().call_soon(|| ());
    event_loop.run_ready().unwrap();
    drop(event_loop);
    drop(trace);
    assert!(slices(&file.events()).iter().any(|slice| slice.name.starts_with("callback ")));
}

#[test]
fn a_trace_that_is_refused_leaves_the_file_as_it_was() {
    let path = std::env::temp_dir().join(format!("miniloop-refused-trace-{}", std::process::id()));
    std::fs::write(&path, "an earlier trace").unwrap();
    let (mut event_loop, ..) = jumping();
    let handle = event_loop.handle();
    event_loop
        .run_until_complete(async {
            let _trace = handle.trace(File::default()).unwrap();
            assert_eq!(diag::trace(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        })
        .unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "an earlier trace");
    std::fs::remove_file(path).unwrap();
}
