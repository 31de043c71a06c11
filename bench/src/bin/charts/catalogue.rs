//! What is drawn where: the one table that connects names in the results with charts.
//!
//! It knows no figures. A case that was not measured is left out and named by `main.rs`; what was measured and stands in no chart is
//! still in the table of all results. Next: `picture.rs`.

/// One file of results and the charts that are drawn from it.
pub(crate) struct Run {
    /// In the folder of results.
    pub(crate) file: &'static str,
    /// The contender that is ours: emphasised, and what ratios are taken to.
    pub(crate) ours: &'static str,
    pub(crate) charts: &'static [Chart],
}

/// One picture of one or several panels.
pub(crate) struct Chart {
    /// Without its `.svg`.
    pub(crate) file: &'static str,
    /// What is compared, in which unit. What is better is added to it.
    pub(crate) title: &'static str,
    /// What one must know to compare fairly; may be empty.
    pub(crate) note: &'static str,
    pub(crate) panels: Panels,
}

pub(crate) enum Panels {
    /// One bar for each contender, each panel on a scale of its own that begins at zero.
    Bars(&'static [Bars]),
    /// One line for each contender against a size, both axes logarithmic.
    Lines(&'static [Lines]),
}

impl Panels {
    /// Everything that is drawn: the program, the case, the figure.
    pub(crate) fn cases(&self) -> Vec<[&'static str; 3]> {
        match self {
            Panels::Bars(panels) => panels.iter().map(|panel| [panel.program, panel.case, panel.figure]).collect(),
            Panels::Lines(panels) => {
                let cases = |panel: &'static Lines| panel.cases.iter().map(|(_, case)| [panel.program, *case, panel.figure]);
                panels.iter().flat_map(cases).collect()
            }
        }
    }
}

pub(crate) struct Bars {
    pub(crate) title: &'static str,
    pub(crate) program: &'static str,
    pub(crate) case: &'static str,
    pub(crate) figure: &'static str,
}

pub(crate) struct Lines {
    pub(crate) title: &'static str,
    pub(crate) program: &'static str,
    /// Sizes and the cases that have them, from the smallest.
    pub(crate) cases: &'static [(f64, &'static str)],
    /// What the sizes count.
    pub(crate) counted: &'static str,
    pub(crate) figure: &'static str,
}

/// Who takes part, in the order in which everybody sees them, with colours on a light and on a dark ground.
pub(crate) const CONTENDERS: [(&str, &str, &str); 13] = [
    ("miniloop", "#e8590c", "#ff8a3d"),
    ("tokio", "#5b84ab", "#7ba6d0"),
    ("smol", "#8d74ad", "#a990cb"),
    ("async-executor", "#4c9a9a", "#6cbaba"),
    ("monoio", "#5f9a6d", "#7dba8b"),
    ("compio", "#a38c4f", "#c4ac6c"),
    ("floor", "#7f8a96", "#6e7884"),
    // Servers.
    ("relay", "#e8590c", "#ff8a3d"),
    ("NATS", "#5b84ab", "#7ba6d0"),
    ("NATS JetStream", "#4c9a9a", "#6cbaba"),
    ("Redis", "#b0728c", "#cf92ab"),
    ("Redis appendfsync always", "#8d74ad", "#a990cb"),
    ("durable floor", "#7f8a96", "#6e7884"),
];

const fn bars(title: &'static str, program: &'static str, case: &'static str, figure: &'static str) -> Bars {
    Bars { title, program, case, figure }
}

const fn lines(
    title: &'static str,
    program: &'static str,
    cases: &'static [(f64, &'static str)],
    counted: &'static str,
    figure: &'static str,
) -> Lines {
    Lines { title, program, cases, counted, figure }
}

const YIELDING: &[(f64, &str)] = &[(1.0, "1 task"), (10.0, "10 tasks"), (1_000.0, "1,000 tasks"), (100_000.0, "100,000 tasks")];
const SPAWNED: &[(f64, &str)] = &[(1.0, "one by one"), (10.0, "batch of 10"), (1_000.0, "batch of 1,000"), (100_000.0, "batch of 100,000")];
const ARMED: &[(f64, &str)] = &[(10.0, "10 others armed"), (1_000.0, "1,000 others armed"), (100_000.0, "100,000 others armed")];
const FIRED: &[(f64, &str)] = &[(10.0, "10 timers"), (1_000.0, "1,000 timers"), (100_000.0, "100,000 timers")];
const ECHOING: &[(f64, &str)] = &[
    (1.0, "1 connection, 64 B, 1 deep"),
    (10.0, "10 connections, 64 B, 1 deep"),
    (100.0, "100 connections, 64 B, 1 deep"),
    (1_000.0, "1,000 connections, 64 B, 1 deep"),
    (15_000.0, "15,000 connections, 64 B, 1 deep"),
];
const ROOMS: &[(f64, &str)] =
    &[(1.0, "1 room"), (10.0, "10 rooms"), (100.0, "100 rooms"), (1_000.0, "1,000 rooms"), (10_000.0, "10,000 rooms")];

const EPOLL: &str = "The floor is the same on bare epoll, without a runtime.";
const PASSED_ON: &str = "relay and the floor have everything on disk before anybody is shown it. NATS and Redis keep nothing.";
/// The work that is put off is named where work is compared.
const PUT_OFF: &str =
    "relay and the floor commit before they show. relay's later move into its history: `settled` in the table of all results.";
const STORED: &str = "Everybody has everything on disk before it is acknowledged.";

pub(crate) const RUNS: [Run; 2] = [
    Run {
        file: "runtime.json",
        ours: "miniloop",
        charts: &[
            Chart {
                file: "tasks",
                title: "Tasks: nanoseconds per operation",
                note: "",
                panels: Panels::Bars(&[
                    bars("A task yields", "yield", "1 task", "ns"),
                    bars("Two tasks wake each other in turn", "ping-pong", "", "ns"),
                    bars("Spawn and await, one by one", "spawn", "one by one", "ns"),
                    bars("Spawn, run and join 100,000 tasks", "spawn", "batch of 100,000", "ns"),
                ]),
            },
            Chart {
                file: "timers",
                title: "Timers: ns of CPU per timer",
                note: "",
                panels: Panels::Bars(&[
                    bars("Arm and cancel one", "timer-cancelled", "0 others armed", "cpu ns"),
                    bars("100,000 fire", "timers-fired", "100,000 timers", "cpu ns"),
                ]),
            },
            Chart {
                file: "echo",
                title: "TCP echo: ns of the server's CPU per message",
                note: EPOLL,
                panels: Panels::Bars(&[
                    bars("100 connections, 64 B", "echo", "100 connections, 64 B, 1 deep", "cpu ns"),
                    bars("1,000 connections, 64 B", "echo", "1,000 connections, 64 B, 1 deep", "cpu ns"),
                    bars("100 connections, 64 B, 16 at once", "echo", "100 connections, 64 B, 16 deep", "cpu ns"),
                    bars("100 connections, 16 KiB", "echo", "100 connections, 16 KiB, 1 deep", "cpu ns"),
                ]),
            },
            Chart {
                file: "between-tasks",
                title: "Between tasks and threads: nanoseconds per operation",
                note: "",
                panels: Panels::Bars(&[
                    bars("A value through a channel", "channel", "", "ns"),
                    bars("A lock that ten tasks want", "mutex", "10 tasks", "ns"),
                    bars("A member of a group of 10,000", "group", "10,000 members", "ns"),
                    bars("A task is woken by another thread", "cross-thread-wake", "1 loop", "ns"),
                ]),
            },
            Chart {
                file: "flood",
                title: "A timer of 1 ms while a peer floods: late by microseconds",
                note: "",
                panels: Panels::Bars(&[
                    bars("Half of all times", "timer-under-flood", "", "p50 us"),
                    bars("99 of 100 times", "timer-under-flood", "", "p99 us"),
                ]),
            },
            Chart {
                file: "memory",
                title: "Memory of what waits: bytes",
                note: "",
                panels: Panels::Bars(&[
                    bars("An idle task, without its future", "memory", "idle task, without its future", "bytes"),
                    bars("A sleeping task, with its future", "memory", "sleeping task, with its future", "bytes"),
                    bars("An idle connection, with its task", "memory", "idle connection, with its task", "bytes"),
                ]),
            },
            Chart {
                file: "runtime-sizes",
                title: "What size costs: ns of CPU per operation",
                note: "",
                panels: Panels::Lines(&[
                    lines("Tasks yield in turn", "yield", YIELDING, "tasks", "cpu ns"),
                    lines("Spawn, run and join a batch", "spawn", SPAWNED, "tasks of a batch", "cpu ns"),
                    lines("Arm and cancel a timer", "timer-cancelled", ARMED, "other timers", "cpu ns"),
                    lines("Timers fire", "timers-fired", FIRED, "timers", "cpu ns"),
                ]),
            },
            Chart {
                file: "echo-sizes",
                title: "TCP echo: ns of the server's CPU per message of 64 B",
                note: EPOLL,
                panels: Panels::Lines(&[lines("One message at a time", "echo", ECHOING, "connections", "cpu ns")]),
            },
        ],
    },
    Run {
        file: "relay.json",
        ours: "relay",
        charts: &[
            Chart {
                file: "publishes",
                title: "Chat: publishes per second",
                note: PASSED_ON,
                panels: Panels::Bars(&[
                    bars("10 rooms of one, 2,048 under way in each", "fan-out", "10 x 1, 1, 2,048", "publishes/s"),
                    bars("10 rooms of one, 256 under way in each", "fan-out", "10 x 1, 1, 256", "publishes/s"),
                ]),
            },
            Chart {
                file: "deliveries",
                title: "Chat: deliveries per second",
                note: PASSED_ON,
                panels: Panels::Bars(&[
                    bars("1 room of 1,000, one talks", "fan-out", "1 x 1,000, 1, 16", "deliveries/s"),
                    bars("100 rooms of 10, all talk", "fan-out", "100 x 10, 10, 16", "deliveries/s"),
                    bars("10 rooms of 10, one talks", "fan-out", "10 x 10, 1, 16", "deliveries/s"),
                    bars("1,000 rooms of 2, one talks", "fan-out", "1,000 x 2, 1, 8", "deliveries/s"),
                ]),
            },
            Chart {
                file: "delivery-cpu",
                title: "Chat: ns of the server's CPU per delivery",
                note: PUT_OFF,
                panels: Panels::Bars(&[
                    bars("10 rooms of one, 2,048 under way in each", "fan-out", "10 x 1, 1, 2,048", "cpu ns"),
                    bars("10 rooms of one, 256 under way in each", "fan-out", "10 x 1, 1, 256", "cpu ns"),
                    bars("1 room of 1,000, one talks", "fan-out", "1 x 1,000, 1, 16", "cpu ns"),
                    bars("100 rooms of 10, all talk", "fan-out", "100 x 10, 10, 16", "cpu ns"),
                    bars("10 rooms of 10, one talks", "fan-out", "10 x 10, 1, 16", "cpu ns"),
                    bars("1,000 rooms of 2, one talks", "fan-out", "1,000 x 2, 1, 8", "cpu ns"),
                ]),
            },
            Chart {
                file: "latency",
                title: "Chat: microseconds until a message is shown",
                note: PASSED_ON,
                panels: Panels::Bars(&[
                    bars("Half of all messages, one at a time", "fan-out", "1 x 2, 1, 1", "p50 us"),
                    bars("99 of 100 messages, one at a time", "fan-out", "1 x 2, 1, 1", "p99 us"),
                ]),
            },
            Chart {
                file: "durable",
                title: "On disk before the answer: publishes per second",
                note: STORED,
                panels: Panels::Bars(&[
                    bars("10 clients, 256 under way each", "durable", "10 x 1, 1, 256", "publishes/s"),
                    bars("50 clients, one at a time each", "durable", "50 x 1, 1, 1", "publishes/s"),
                ]),
            },
            Chart {
                file: "durable-latency",
                title: "On disk before the answer: microseconds until it comes",
                note: "Everybody is sent half of what Redis can do. Everything is on disk before it is acknowledged.",
                panels: Panels::Bars(&[
                    bars("Half of all messages", "durable", "10 x 1, half of Redis' rate", "p50 us"),
                    bars("99 of 100 messages", "durable", "10 x 1, half of Redis' rate", "p99 us"),
                ]),
            },
            Chart {
                file: "slow-reader",
                title: "A member reads nothing: microseconds for the others",
                note: "",
                panels: Panels::Bars(&[
                    bars("99 of 100 messages, all read", "slow reader", "all read", "p99 us"),
                    bars("99 of 100 messages, one more reads nothing", "slow reader", "one more reads nothing", "p99 us"),
                ]),
            },
            Chart {
                file: "idle",
                title: "An idle connection: bytes of the server's memory",
                note: "",
                panels: Panels::Bars(&[
                    bars("1,000 connections", "idle", "1,000 connections", "anonymous bytes"),
                    bars("15,000 connections", "idle", "15,000 connections", "anonymous bytes"),
                ]),
            },
            Chart {
                file: "relay-sizes",
                title: "What rooms cost: ns of the server's CPU per delivery",
                note: PASSED_ON,
                panels: Panels::Lines(&[lines("10,000 messages under way, in ever more rooms", "rooms", ROOMS, "rooms", "cpu ns")]),
            },
        ],
    },
];
