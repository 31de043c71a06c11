//! Reads a program back from the text that `Program` prints: a failure of the random test can be pasted into a test by hand.
//!
//! It panics on anything that `Display` would not write; it is for tests only. Read next: `self_test.rs`.

use std::str::{FromStr, SplitWhitespace};

use super::program::{Act, Body, ClockKind, End, Ending, Nth, Program, Step, TaskBody, TaskStep, Wait};

impl Program {
    /// The program that prints as `text`.
    ///
    /// # Panics
    ///
    /// On text that no program prints.
    pub(crate) fn parse(text: &str) -> Self {
        let text = text.replace([',', ';'], " ");
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
        let mut header = Words::of(lines.next().expect("a first line"));
        header.expect("clock");
        let clock = match header.word() {
            "Manual" => ClockKind::Manual,
            "Jumping" => ClockKind::Jumping,
            other => panic!("no clock is called {other}"),
        };
        header.expect("jobs_per_poll");
        let jobs_per_poll = header.number();
        let mut steps = Vec::new();
        loop {
            match lines.next().expect("Close or Shutdown as the last line") {
                "Close" => return Self { clock, jobs_per_poll, steps, end: End::Close },
                "Shutdown" => return Self { clock, jobs_per_poll, steps, end: End::Shutdown },
                line => steps.push(Words::of(line).step()),
            }
        }
    }
}

impl Step {
    /// The step that prints as `line`.
    pub(crate) fn parse(line: &str) -> Self {
        Words::of(&line.replace(';', " ")).step()
    }
}

struct Words<'a>(std::iter::Peekable<SplitWhitespace<'a>>);

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Self {
        Self(line.split_whitespace().peekable())
    }

    fn word(&mut self) -> &'a str {
        self.0.next().expect("one more word")
    }

    fn expect(&mut self, expected: &str) {
        assert_eq!(self.word(), expected);
    }

    fn number<T: FromStr>(&mut self) -> T {
        let word = self.word();
        word.trim_start_matches('x').parse().unwrap_or_else(|_| panic!("{word} is not a number"))
    }

    /// The `-2` of `task[-2]`, if the next word is a reference to that kind of thing.
    fn nth(&mut self, kind: &str) -> Option<Nth> {
        let distance = self.0.peek()?.strip_prefix(kind)?.strip_prefix("[-")?.strip_suffix(']')?;
        let nth = distance.parse::<Nth>().expect("a distance") - 1;
        self.0.next();
        Some(nth)
    }

    fn step(mut self) -> Step {
        match *self.0.peek().expect("a step") {
            "run_once" => Step::RunOnce,
            "run_ready" => Step::RunReady,
            "run_forever" => Step::RunForever,
            "next_timeout" => Step::NextTimeout,
            "run_until_complete" => {
                self.word();
                Step::RunUntilComplete(self.task_body())
            }
            _ => Step::Do(self.act()),
        }
    }

    fn act(&mut self) -> Act {
        match self.word() {
            "call_soon" => Act::Soon(self.body()),
            "call_later" => Act::Later(self.number(), self.body()),
            "call_at" => Act::At(self.number(), self.body()),
            "call_every" => Act::Every(self.number(), self.number(), self.body()),
            "chain" => Act::Chain(self.number(), self.body()),
            "spawn" => Act::Spawn(self.task_body()),
            "detach" => Act::Detach(self.nth("task").expect("a task")),
            "wake" => Act::Wake(self.nth("task").expect("a task")),
            "wake_from_thread" => Act::WakeFromThread(self.nth("task").expect("a task")),
            "promise" => Act::NewPromise,
            "advance" => Act::Advance(self.number()),
            "stop" => Act::Stop,
            "add_reader" => Act::AddReader,
            "remove_reader" => Act::RemoveReader,
            "write" => {
                self.expect("pipe");
                Act::WritePipe
            }
            "remote" => {
                self.expect("call_soon");
                Act::Remote(self.body())
            }
            "resolve" => {
                let nth = self.nth("promise").expect("a promise");
                let word = self.word();
                let number = word[word.find('(').expect("Ok(n) or Err(n)") + 1..word.len() - 1].parse().expect("a number");
                Act::Resolve(nth, if word.starts_with("Ok") { Ok(number) } else { Err(number) })
            }
            "cancel" => match self.nth("handle") {
                Some(nth) => Act::CancelHandle(nth),
                None => Act::CancelTask(self.nth("task").expect("a handle or a task")),
            },
            "share" => match self.nth("task") {
                Some(nth) => Act::ShareTask(nth),
                None => Act::SharePromise(self.nth("promise").expect("a task or a promise")),
            },
            "drop" => match (self.nth("task"), self.nth("promise")) {
                (Some(nth), _) => Act::DropTask(nth),
                (None, Some(nth)) => Act::DropPromise(nth),
                (None, None) => Act::DropResolver(self.nth("resolver").expect("a task, a promise or a resolver")),
            },
            "on_done" => match self.nth("task") {
                Some(nth) => Act::OnTaskDone(nth, self.body()),
                None => Act::OnPromiseDone(self.nth("promise").expect("a task or a promise"), self.body()),
            },
            other => panic!("no act is called {other}"),
        }
    }

    fn wait(&mut self) -> Wait {
        if let Some(nth) = self.nth("promise") {
            return Wait::Promise(nth);
        }
        if let Some(nth) = self.nth("task") {
            return Wait::Task(nth);
        }
        match self.word() {
            "yield" => Wait::Yield,
            "sleep" => Wait::Sleep(self.number()),
            "receive" => Wait::Receive(self.number()),
            other => panic!("nothing to wait for is called {other}"),
        }
    }

    fn task_step(&mut self) -> TaskStep {
        match *self.0.peek().expect("a step of a task") {
            "await" => {
                self.word();
                TaskStep::Await(self.wait())
            }
            "timeout" => {
                self.word();
                TaskStep::Timeout(self.number(), self.wait())
            }
            _ => TaskStep::Do(self.act()),
        }
    }

    fn body(&mut self) -> Body {
        let (acts, ending) = self.list(Self::act);
        Body { acts, ending, on_drop: self.on_drop() }
    }

    fn task_body(&mut self) -> TaskBody {
        let (steps, ending) = self.list(Self::task_step);
        TaskBody { steps, ending, on_drop: self.on_drop() }
    }

    fn on_drop(&mut self) -> Vec<Act> {
        match self.0.next_if_eq(&"dropped") {
            Some(_) => self.list(Self::act).0,
            None => Vec::new(),
        }
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> T) -> (Vec<T>, Ending) {
        self.expect("{");
        let (mut items, mut ending) = (Vec::new(), Ending::Return);
        loop {
            match *self.0.peek().expect("a closing brace") {
                "}" => {
                    self.word();
                    return (items, ending);
                }
                "fail" => {
                    self.word();
                    ending = Ending::Fail;
                }
                "panic" => {
                    self.word();
                    ending = Ending::Panic;
                }
                _ => items.push(item(self)),
            }
        }
    }
}
