//! Makes a [`Dump`] of a loop: reads the table of jobs, and sorts tasks below the ones that spawned them.
//!
//! It changes nothing, not even what the loop knows of the time, so a program runs the same whether somebody looks or not. It costs a pass
//! over the table and an allocation or two per task. Who awaits whom is found from the other side: a task knows the wakers of its readers,
//! and a waker is a number.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::dump::{self, BlockingDump, CallbackDump, Dump, TaskDump, TaskKind, TaskState};
use crate::engine::context;
use crate::engine::core::Core;
use crate::engine::job::{Job, Slot};
use crate::engine::member_list::{self, MemberList, Seat};
use crate::engine::waker;
use crate::engine::word::Word;

/// What the loop holds now. For its own thread, at any time: nothing is borrowed while user code runs.
pub(crate) fn dump(core: &Core) -> Dump {
    let now = core.clock.now();
    let mut repeating = core.survey(|word, slot| match &slot.job {
        Job::Repeat(repeat) => Some((word.as_u64(), CallbackDump { cause: repeat.cause.to_string(), place: repeat.origin.place })),
        _ => None,
    });
    repeating.sort_by(|(word, a), (other, b)| (&a.cause, a.place, word).cmp(&(&b.cause, b.place, other)));
    let blocking = core.pool.started_jobs().map_or_else(Vec::new, |jobs| jobs.survey());
    let is_once = |_, slot: &Slot| matches!(slot.job, Job::Once(_)).then_some(());
    Dump {
        loop_number: core.number,
        now,
        tasks: tree(tasks(core)),
        repeating: repeating.into_iter().map(|(_, callback)| callback).collect(),
        blocking: blocking.into_iter().map(|(place, is_running)| BlockingDump { place, is_running }).collect(),
        callbacks_len: core.survey(is_once).len(),
        timers_len: core.timers_len(),
        next_timer: core.next_deadline().map(|deadline| deadline - now),
        descriptors_len: core.driver().map_or(0, |driver| driver.len()),
        ready_len: core.ready.borrow().len(),
        messages_len: core.inbox.len(),
    }
}

/// A task that has yet to find its place in the tree.
struct Found {
    word: Word,
    order: Order,
    parent: Option<Word>,
    /// The member of a group that it waits for.
    awaits: Word,
    line: TaskDump,
}

/// The order of siblings. Tasks and members of a group have numbers; groups are told apart by their lists, and put in order by the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    Main,
    Task(u64),
    Member { group: usize, number: u64 },
}

fn tasks(core: &Core) -> Vec<Found> {
    let awaits = awaited_by(core);
    let running = running(core);
    // On a system clock zero is no reading: the machine has been up for longer.
    let is_reading = core.clock.as_virtual().is_some() || core.latest_reading.get().as_nanos() > 0;
    let groups = RefCell::new(BTreeMap::new());
    let group_of = |list: &Rc<MemberList>| {
        let mut groups = groups.borrow_mut();
        let next = groups.len();
        *groups.entry(Rc::as_ptr(list)).or_insert(next)
    };
    let mut found = core.survey(|word, slot| {
        let (kind, name, order, parent) = match &slot.job {
            Job::Main(_) => (TaskKind::Main, "main".to_owned(), Order::Main, None),
            Job::Task(task) => (TaskKind::Task, task.head.name(), Order::Task(task.head.number), task.head.parent()),
            Job::Member(seat) => {
                let (kind, name, number) = if seat.index == Seat::BODY {
                    (TaskKind::Body, "body".to_owned(), 0)
                } else {
                    let name = member_list::name_of(seat.given_name(word).as_deref(), seat.number);
                    (TaskKind::Member, name, u64::from(seat.number) + 1)
                };
                (kind, name, Order::Member { group: group_of(&seat.list), number }, seat.list.poller())
            }
            _ => return None,
        };
        let state = match () {
            () if running.contains(&word) => TaskState::Running,
            () if slot.is_queued => TaskState::Ready,
            () => TaskState::Waiting,
        };
        let seen = slot
            .job
            .record(|record| (record.origin.place, record.since.get(), record.polls.get(), *record.waits_for.get(), record.awaits.get()));
        let (place, since, polls, told, member) = seen?;
        // Who is being polled has yet to say it.
        let waits_for = if state == TaskState::Running { "" } else { told };
        let waits_for_tasks = waits_for == dump::TASK || waits_for == dump::SHARED_RESULT;
        let line = TaskDump {
            kind,
            name,
            place,
            parent: None,
            depth: 0,
            state,
            waits_for,
            awaits: awaits.get(&word.as_u64()).filter(|_| waits_for_tasks).cloned().unwrap_or_default(),
            since: is_reading.then_some(since),
            polls,
        };
        Some(Found { word, order, parent, awaits: if waits_for == dump::MEMBER { member } else { Word::STALE }, line })
    });
    let is_member = |found: &&Found| matches!(found.line.kind, TaskKind::Member);
    let members = found.iter().filter(is_member).map(|found| (found.word.as_u64(), found.line.name.clone()));
    let members: BTreeMap<_, _> = members.collect();
    for found in &mut found {
        found.line.awaits.extend(members.get(&found.awaits.as_u64()).cloned());
    }
    found.sort_by_key(|found| found.order);
    found
}

/// Who is being polled: a task, or a member and those whose groups it is in.
fn running(core: &Core) -> Vec<Word> {
    let poller = |word: &Word| core.with_slot(*word, |slot| if let Job::Member(seat) = &slot.job { seat.list.poller() } else { None })?;
    std::iter::successors(context::current_task_of(core.id), poller).collect()
}

/// The names of the tasks whose results a word waits for.
fn awaited_by(core: &Core) -> BTreeMap<u64, Vec<String>> {
    let mut awaited = core.survey(|_, slot| match &slot.job {
        Job::Task(task) => {
            let mut readers = Vec::new();
            task.body.readers(&mut |waker| readers.extend(waker::try_word_of(waker)));
            (!readers.is_empty()).then(|| (task.head.number, task.head.name(), readers))
        }
        _ => None,
    });
    awaited.sort_by_key(|(number, ..)| *number);
    let mut awaits: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (_, name, readers) in awaited {
        readers.iter().for_each(|reader| awaits.entry(reader.as_u64()).or_default().push(name.clone()));
    }
    awaits
}

/// Puts each task behind its parent, siblings in order. A list of its own stands for the call stack: trees may be as deep as there are
/// tasks.
fn tree(found: Vec<Found>) -> Vec<TaskDump> {
    let indexes: BTreeMap<u64, usize> = found.iter().enumerate().map(|(index, found)| (found.word.as_u64(), index)).collect();
    let mut children: Vec<Vec<usize>> = found.iter().map(|_| Vec::new()).collect();
    let mut open = Vec::new();
    for (index, found) in found.iter().enumerate() {
        match found.parent.and_then(|parent| indexes.get(&parent.as_u64())) {
            Some(parent) => children[*parent].push(index),
            None => open.push((index, None, 0)),
        }
    }
    open.reverse();
    let mut lines: Vec<Option<TaskDump>> = found.into_iter().map(|found| Some(found.line)).collect();
    let mut tree = Vec::with_capacity(lines.len());
    while let Some((index, parent, depth)) = open.pop() {
        let Some(line) = lines[index].take() else { continue };
        open.extend(children[index].iter().rev().map(|child| (*child, Some(tree.len()), depth + 1)));
        tree.push(TaskDump { parent, depth, ..line });
    }
    tree
}
