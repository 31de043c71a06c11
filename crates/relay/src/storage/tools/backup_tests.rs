//! A copy made beside a server that goes on is what was there when it began; and a target that cannot be one is refused first.

use super::*;
use crate::storage::{
    Retention,
    memory_disk::{MemoryDisk, Random},
    open,
    tools::test_world::{World, fill, kept},
};

/// A copy in memory, with a call of `meanwhile` before each step of it; and how often a room was forgotten.
fn copied(source: &Source, end: LogPosition, meanwhile: &mut dyn FnMut()) -> (MemoryDisk, u32) {
    let mut forgotten = 0;
    let meanwhile = std::cell::RefCell::new(meanwhile);
    let new = fill(|target| {
        let mut take = |copied| {
            (meanwhile.borrow_mut())();
            match copied {
                Copied::Messages(segment) => target.add(segment),
                Copied::Forget(room) => {
                    forgotten += 1;
                    target.forget(&room)
                }
            }
        };
        copy_up_to(source, end, &mut take, &mut |_| (meanwhile.borrow_mut())()).expect("it is right");
        end
    });
    (new, forgotten)
}

#[test]
fn a_copy_made_while_the_server_goes_on_is_what_was_committed_when_it_began() {
    let mut went_on = 0;
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut world = World::new();
        let step = |world: &mut World, random: &mut Random| match random.below(7) {
            0 => world.commit(["lounge", "kitchen"], 3, 200),
            1 => world.commit(["lounge"], 1 + random.below(5) as u32, 3000),
            2 => world.commit(["yard"], 1, 30_000),
            3 => world.fold(),
            _ => (0..random.below(4)).for_each(|_| _ = world.step()),
        };
        (0..random.below(40)).for_each(|_| step(&mut world, &mut random));
        let source = world.source();
        let end = end_of_log(&source).expect("it is right");
        let said = world.said.clone();
        assert_eq!(end.sequence, world.committed);
        let (new, _) = copied(&source, end, &mut || (0..random.below(4)).for_each(|_| step(&mut world, &mut random)));
        went_on += world.committed - end.sequence;
        assert_eq!(kept(&new, &said), said, "seed {seed}");
    }
    assert!(went_on > 100, "{went_on}");
}

#[test]
fn a_copy_beside_retention_has_no_gaps_and_all_that_is_kept() {
    let mut forgotten = 0;
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut world = World::keeping(Retention { keep_messages: Some(12), ..Retention::default() });
        for _ in 0..12 {
            world.commit(["lounge", "kitchen"], 4, 4000);
        }
        let source = world.source();
        let end = end_of_log(&source).expect("it is right");
        let said = world.said.clone();
        let (new, forgotten_count) = copied(&source, end, &mut || (0..random.below(8)).for_each(|_| _ = world.step()));
        forgotten += forgotten_count;
        for (room, messages) in kept(&new, &said) {
            assert!(said[&room].ends_with(&messages), "seed {seed}: {} from {:?}", messages.len(), messages.first().map(|first| first.0));
            assert!(messages.len() >= 12, "seed {seed}: {}", messages.len());
        }
    }
    assert!(forgotten > 0, "retention deleted something behind what was copied");
}

/// A data folder without a message.
fn data_folder(parent: &Path) -> PathBuf {
    let data_dir = parent.join("data");
    drop(open(&data_dir, Retention::default(), &mut |_, _| {}).expect("a new folder opens"));
    data_dir
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is a folder");
    let mut names: Vec<String> = entries.map(|entry| entry.expect("it is read").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_target_may_be_written_as_a_folder() {
    let parent = tempfile::tempdir().expect("a folder");
    let data_dir = data_folder(parent.path());
    let report = back_up(&data_dir, &parent.path().join("copy/"), &mut |_| {}).expect("it is copied");
    assert_eq!(report.data, parent.path().join("copy").display().to_string());
    assert_eq!(names(parent.path()), ["copy", "data"]);
}

#[test]
fn a_target_that_is_there_or_within_the_data_is_refused_and_nothing_is_made() {
    let parent = tempfile::tempdir().expect("a folder");
    let data_dir = data_folder(parent.path());
    fs::create_dir(parent.path().join("empty")).expect("it is new");
    std::os::unix::fs::symlink(&data_dir, parent.path().join("link")).expect("it is new");
    let before = names(&data_dir);
    let refused = |target: &str| back_up(&data_dir, &parent.path().join(target), &mut |_| {}).expect_err("it is refused").to_string();
    let there = "is there already";
    for (target, expected) in [("empty", there), ("link", there), ("data/copy", "within"), ("link/copy", "within")] {
        let error = refused(target);
        assert!(error.contains(expected), "{target}: {error}");
    }
    assert_eq!(names(parent.path()), ["data", "empty", "link"]);
    assert_eq!(names(&data_dir), before);
}

#[test]
fn a_backup_leaves_another_one_under_way_alone() {
    let parent = tempfile::tempdir().expect("a folder");
    let data_dir = data_folder(parent.path());
    let mut is_first = true;
    let target = parent.path().join("copy");
    let mut second = None;
    // The watch is called while the first is being checked.
    let first = back_up(&data_dir, &target, &mut |_| {
        if std::mem::take(&mut is_first) {
            second = Some(back_up(&data_dir, &target, &mut |_| {}));
        }
    });
    second.expect("it was tried").expect("it was the first to be ready");
    first.expect_err("there is a backup of that name");
    assert_eq!(names(parent.path()), ["copy", "data"]);
    assert!(crate::storage::verify_folder(&target, &mut |_| {}).expect("it is there").is_right());
}
