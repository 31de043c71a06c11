//! Every bound of the protocol and of the hub, each with its reason. What an operator may change is in [`Settings`](crate::Settings)
//! instead.
//!
//! When a bound bites, a client is told, paused or cut, and [`Counters`](crate::Counters) says how often. Next: `settings.rs`.

use core::time::Duration;

/// The longest line, its end not counted. It bounds what an unfinished line may keep, and is room for a long paragraph.
pub const LINE_LEN_MAX_BYTES: usize = 4096;

/// Other lines that a client may send before its `JOIN`. Enough for a person who mistypes; a scanner or a wrong protocol is gone soon.
pub const LINES_BEFORE_JOIN_MAX_BYTES: usize = 4096;

/// The longest name of a member.
pub const NAME_LEN_MAX_CHARS: usize = 32;

/// The longest name of a room.
pub const ROOM_NAME_LEN_MAX_CHARS: usize = 64;

/// The messages of a room that `HISTORY` answers with.
pub const HISTORY_LEN_MAX_MESSAGES: usize = 50;

/// Answers of one connection that wait behind its uncommitted messages. Beyond it the connection is not parsed further.
pub const WAITING_ANSWERS_MAX: usize = 64;

/// What may be queued for a client beyond what the kernel took. A client beyond it does not read, and is cut.
pub const OUTBOX_MAX_BYTES: usize = 256 * 1024;

/// With more than this queued for it, a client's requests wait: their answers would only make the queue longer.
///
/// The answers to messages that the storage refused count here, and not toward [`OUTBOX_MAX_BYTES`] and [`BEHIND_MAX_BYTES`]: they are as
/// many as were accepted before, keep no memory, and cut nobody.
pub const OUTBOX_PAUSE_BYTES: usize = OUTBOX_MAX_BYTES / 2;

/// How much of one buffer is released to a member at a time. Only this much of it counts toward [`OUTBOX_MAX_BYTES`], the rest is shared
/// with the other members, so a commit that is larger than that limit cuts nobody who reads. It also bounds one write to one member.
pub const RELEASE_BYTES: usize = 64 * 1024;

/// The commits that a member may lie behind, released or not. It bounds the buffers that one slow member can keep alive.
pub const BEHIND_MAX_BYTES: usize = 16 * 1024 * 1024;

/// The messages of one commit, each counted as its line and what it costs beside it ([`SECTION_OVERHEAD_BYTES`], [`RUN_OVERHEAD_BYTES`]).
/// Larger commits make nothing faster, and everybody waits for them.
pub const BATCH_MAX_BYTES: usize = 4 * 1024 * 1024;

/// What the first message of a room in a commit is counted beside its line and the room's name: the section with its two allocations, and
/// the head of the shared buffer that it becomes. A flood of short messages, each to another room, is mostly this.
pub const SECTION_OVERHEAD_BYTES: usize = 256;

/// What a message is counted beside its line if the message before it in the commit has another sender: the note of who sent it.
pub const RUN_OVERHEAD_BYTES: usize = 16;

/// The rooms of one commit, which follows from the other bounds. A record on disk names each of them.
pub const BATCH_LEN_MAX_ROOMS: usize = BATCH_MAX_BYTES / SECTION_OVERHEAD_BYTES;

/// The messages that wait for their commit, those on their way to disk included, counted as for [`BATCH_MAX_BYTES`]. At this much nobody is
/// read from any more.
///
/// Buffers that grow have up to twice the place that is used, so the worst case in memory is twice this, 32 MiB, and one message more.
pub const UNCOMMITTED_MAX_BYTES: usize = 16 * 1024 * 1024;

/// The rooms that are forgotten at a time when the archive has come further. They take 0.7 ms; a single fold may free a hundred thousand.
pub const FORGOTTEN_AT_ONCE_MAX_ROOMS: usize = 1_000;

/// How long a connection may stay without a `JOIN`.
pub const JOIN_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the server waits for a client that it says goodbye to, to take what is queued.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

/// A queue that has grown beyond this many entries gives its memory back when it is empty: an idle connection owns no buffers.
pub(crate) const IDLE_QUEUE_CAPACITY_MAX: usize = 4;
