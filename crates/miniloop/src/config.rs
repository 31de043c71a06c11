//! Every bound of the runtime that somebody chose, in one place, with its unit in its name. What a system sets, or the width of a word,
//! stands where it is used.

use std::time::Duration;

/// After so many jobs since the last poll, the next round begins with one. A poll costs 100 ns and more, a job ten: 64 makes the poll's
/// share small and keeps I/O and timers at most 64 jobs and one round away. 1 is asyncio's behaviour.
pub(crate) const JOBS_PER_POLL: usize = 64;

/// So many I/O or channel operations does a task get in one poll, whether they succeed or fail; the next one makes it yield. So no flooding
/// peer can keep a task, and with it the loop, busy for ever, nor can who tries again and again what fails.
pub(crate) const OPS_PER_POLL: u32 = 64;

/// After so many system calls for I/O the next round begins with a poll, however few jobs have made them: one of 64 KiB takes as long as a
/// hundred jobs, and timers wait meanwhile.
pub(crate) const CALLS_PER_POLL: u32 = 64;

/// How many members of a task group are polled in one poll of the group; the rest has to wait for the next round, behind what is ready
/// meanwhile.
pub(crate) const MEMBERS_PER_POLL: usize = 32;

/// How long who is cancelled may clean up, and how long [`run`](crate::run) waits at the end for cancelled tasks.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// So many turns of a shutdown may bring new tasks: only clean-up and destructors that spawn without end need more than a few, and on a
/// virtual clock nothing else would end those.
pub(crate) const SHUTDOWN_TURNS: usize = 1_000;

/// How many parents a report names. With all of them, the reports of deeply nested tasks would cost the square of the depth.
pub(crate) const PARENTS_PER_REPORT: usize = 16;

/// Below this size a timer queue is never searched for cancelled entries: there is nothing to gain.
pub(crate) const TIMERS_PURGED_FROM_LEN: usize = 64;

/// The shortest period of an interval: a grid needs distance between its beats.
pub(crate) const INTERVAL_PERIOD_MIN: Duration = Duration::from_nanos(1);

/// How many waiters an emptied queue of them keeps room for: the least that a `Vec` allocates, so that the usual single waiter comes and
/// goes for free.
pub(crate) const WAIT_NODES_KEPT: usize = 4;

/// How many messages of other threads join the queue at a time. The rest keeps its order in the inbox until the next poll or round, so
/// threads that send faster than the loop runs keep timers and I/O waiting for so many jobs and no longer.
pub(crate) const MESSAGES_PER_ROUND: usize = 1_024;

/// How many jobs may wait for one worker thread before `Worker::try_call` refuses another.
pub(crate) const WORKER_QUEUE_LEN: usize = 1_024;

/// How many threads a loop has for blocking jobs at most. They wait more than they compute, so the number of processors says nothing: it is
/// how many slow disks and name servers one loop can wait for at a time.
pub(crate) const BLOCKING_THREADS: usize = 32;

/// How many jobs may wait for those threads before `try_spawn_blocking` refuses another.
pub(crate) const BLOCKING_QUEUE_LEN: usize = 1_024;

/// How long such a thread stays without a job: long enough to serve the next burst, short enough to be gone when nobody needs it.
pub(crate) const BLOCKING_IDLE: Duration = Duration::from_secs(10);

/// How long closing a loop waits for jobs that run or wait. A thread cannot be stopped, so this only says when to go on without it.
pub(crate) const BLOCKING_GRACE: Duration = Duration::from_secs(10);

/// How many bytes one job reads from a file, or writes to it, at most: so large that a thread's share in the cost does not count, so small
/// that a thousand files fit into memory.
pub(crate) const FILE_BUFFER_LEN: usize = 256 * 1_024;

/// How many entries of a folder one job reads at most.
pub(crate) const DIR_BATCH_LEN: usize = 64;

/// How long an attempt to connect may go on before the next address is tried beside it: the recommendation of RFC 8305.
pub(crate) const CONNECT_ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// How many addresses of a host are tried at a time. A name may have hundreds, and each attempt is a descriptor.
pub(crate) const CONNECT_ATTEMPTS: usize = 8;

/// How many descriptors one wait can report; a wait that fills this is repeated at once.
#[cfg(target_os = "linux")]
pub(crate) const EVENTS_PER_WAIT: usize = 256;

/// How many connections may wait in the kernel for a listener to accept them. The kernel lowers it to `net.core.somaxconn`.
pub(crate) const LISTEN_BACKLOG_LEN: i32 = 4_096;

/// How long a listener rests when the process is out of descriptors or memory.
pub(crate) const ACCEPT_BACK_OFF: Duration = Duration::from_secs(1);

/// How long a connection to a Unix socket waits before it tries again, while the listener's queue is full: the kernel does not say when
/// there is room.
pub(crate) const UNIX_CONNECT_RETRY: Duration = Duration::from_millis(10);

/// How many bytes a [`BufReader`](crate::io::BufReader) asks its stream for at a time, and how many it keeps allocated while it waits for
/// more with nothing in hand.
pub(crate) const READ_LEN: usize = 8 * 1_024;

/// How long a line, or a record up to its separator, may be for a [`BufReader`](crate::io::BufReader) that was not told otherwise. This is
/// asyncio's default.
pub(crate) const RECORD_LEN_MAX: usize = 64 * 1_024;

/// Above so many queued bytes a [`BufWriter`](crate::io::BufWriter) makes its user wait, until a quarter of them is left. This is
/// asyncio's default.
pub(crate) const WRITE_HIGH_WATER_LEN: usize = 64 * 1_024;

/// So many bytes does a [`BufWriter`](crate::io::BufWriter) queue for a user who does not wait, before it refuses more.
pub(crate) const WRITE_QUEUE_LEN_MAX: usize = 1_024 * 1_024;

/// Up to this length a chunk is copied behind the others, because that is cheaper than an entry of its own in the queue and in the call.
pub(crate) const WRITE_COPIED_LEN_MAX: usize = 1_024;

/// Small chunks are gathered in blocks of this length.
pub(crate) const WRITE_BLOCK_LEN: usize = 8 * 1_024;

/// How many queued chunks go into one system call.
pub(crate) const SLICES_PER_WRITE: usize = 64;

/// How many bytes a copy holds for each direction.
pub(crate) const COPY_BUFFER_LEN: usize = 16 * 1_024;

/// How many tasks, and how many callbacks, a dump prints; its fields have all of them.
pub(crate) const DUMP_LINES_MAX: usize = 1_000;

/// How deep a printed dump indents. Tasks deeper down stand below each other: a chain of tasks would be a triangle.
pub(crate) const DUMP_INDENT_MAX: usize = 32;

/// How many of the tasks that a task waits for a dump prints.
pub(crate) const DUMP_AWAITS_MAX: usize = 8;

/// How many characters of a name are printed, in dumps and reports.
pub(crate) const NAME_PRINTED_CHARS_MAX: usize = 200;

/// How long a callback or a poll may take in debug mode before it is reported; asyncio's limit.
pub(crate) const SLOW_CALLBACK_IN_DEBUG: Duration = Duration::from_millis(100);

/// How many bytes of a child process's standard output, and of its standard error, are collected unless the command says otherwise.
#[cfg(target_os = "linux")]
pub(crate) const PROCESS_OUTPUT_LEN_MAX: usize = 16 * 1_024 * 1_024;

/// How often a watchdog looks within its limit: it tells at most two looks late.
pub(crate) const WATCHDOG_LOOKS_PER_LIMIT: u32 = 4;

/// How many words of eight bytes a loop has for the name of what runs, which its watchdog reads.
pub(crate) const WATCHDOG_NAME_WORDS: usize = 16;

/// However short its limit, a watchdog does not look more often than this.
pub(crate) const WATCHDOG_INTERVAL_MIN: Duration = Duration::from_millis(1);

/// How many slices and wakes a trace records unless told otherwise: some 10 MB, and three times that in the file. What comes then is only
/// counted.
pub(crate) const TRACE_EVENTS_MAX: usize = 200_000;

/// How long dropping a trace waits for its file to be written. A disk that takes longer goes on in the background.
pub(crate) const TRACE_WRITE_GRACE: Duration = Duration::from_secs(5);

/// How many bytes one read for hyper brings at most.
#[cfg(feature = "hyper")]
pub(crate) const HYPER_READ_LEN: usize = 16 * 1_024;
