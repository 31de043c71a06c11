//! Properties of the pacing, over all sequences of commits and folds.

use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;
const BOUND: u64 = 1024 * MIB;

/// A backlog with so much unfolded, whose archive folds a byte in ten nanoseconds, right behind a commit of one MiB at time 0.
fn at(unfolded_bytes: u64) -> Backlog {
    let mut backlog = Backlog::new(BOUND);
    backlog.committed(unfolded_bytes + 9 * MIB);
    backlog.folded(10 * MIB, Duration::from_nanos(10 * MIB * 10));
    backlog.submitted(Nanos(0));
    backlog.committed(MIB);
    assert_eq!(backlog.unfolded_bytes(), unfolded_bytes);
    backlog
}

fn distance_ns(backlog: &Backlog) -> u64 {
    match backlog.verdict(Nanos(0)) {
        Verdict::Go => 0,
        Verdict::NotBefore(at) => at.0,
        other => panic!("{other:?} at {}", backlog.unfolded_bytes()),
    }
}

#[test]
fn the_distance_between_commits_grows_with_every_byte_and_without_a_step() {
    let archive_ns = MIB * 10;
    let mut before_ns = 0;
    for unfolded_bytes in (BOUND / 2..BOUND).step_by(MIB as usize) {
        let ns = distance_ns(&at(unfolded_bytes));
        // From nothing to twice the archive's time, over 512 steps.
        assert!(ns >= before_ns && ns - before_ns <= archive_ns * 2 / 512 + 1, "{before_ns} to {ns} at {unfolded_bytes}");
        before_ns = ns;
    }
    assert!(before_ns > archive_ns * 2 - archive_ns / 100, "{before_ns} at the bound");
    assert_eq!(distance_ns(&at(BOUND / 4 * 3)), archive_ns, "as fast as it is folded");
}

#[test]
fn commits_that_bring_less_than_the_archive_folds_are_not_delayed() {
    // Just below the bound, a commit every 3 ms of one that the archive folds in 1 ms.
    let mut backlog = at(BOUND - MIB);
    backlog.submitted(Nanos(0));
    backlog.committed(100_000);
    assert_eq!(backlog.verdict(Nanos(3_000_000)), Verdict::Go);
    assert_eq!(backlog.verdict(Nanos(1_000_000)), Verdict::NotBefore(Nanos(distance_ns(&backlog))));
}

#[test]
fn at_the_bound_a_commit_waits_for_the_archive_and_is_refused_while_the_disk_is_full() {
    let mut backlog = at(BOUND);
    let later = Nanos(u64::MAX);
    assert_eq!(backlog.verdict(later), Verdict::WhenFolded);
    backlog.archive_is_full();
    assert_eq!(backlog.verdict(later), Verdict::Full);
    backlog.folded(0, Duration::ZERO);
    assert_eq!(backlog.verdict(later), Verdict::WhenFolded, "there is room again");
    backlog.folded(1, Duration::ZERO);
    assert_eq!(backlog.verdict(later), Verdict::Go);
    backlog.committed(1);
    backlog.archive_has_failed();
    assert_eq!(backlog.verdict(Nanos(0)), Verdict::Go, "what was accepted is stored before the end");
}

#[test]
fn a_full_disk_refuses_nothing_below_the_bound() {
    let mut backlog = at(BOUND - 1);
    backlog.archive_is_full();
    assert_eq!(backlog.verdict(Nanos(u64::MAX)), Verdict::Go);
}

#[test]
fn an_episode_of_slow_commits_is_told_once_and_ends_far_below_where_it_began() {
    let mut backlog = at(BOUND / 2 + MIB);
    assert_eq!([backlog.begin_slowing(), backlog.begin_slowing()], [true, false]);
    assert!(!backlog.folded(2 * MIB, Duration::ZERO), "it may begin again at once");
    assert!(backlog.folded(BOUND / 4, Duration::ZERO));
    assert!(!backlog.folded(MIB, Duration::ZERO));
    assert!(backlog.begin_slowing());
}

#[test]
fn the_pace_follows_the_archive() {
    let mut backlog = Backlog::new(BOUND);
    backlog.committed(BOUND);
    let mut fold = |ms, pieces| {
        for _ in 0..pieces {
            backlog.committed(MIB);
            backlog.folded(MIB, Duration::from_millis(ms));
        }
        backlog.pace_bytes_per_second() / MIB
    };
    assert_eq!(fold(10, 500), 100);
    assert!((51..=99).contains(&fold(20, 30)), "what it did before counts still");
    assert_eq!(fold(20, 500), 50);
}

#[test]
fn hours_of_deleting_while_little_is_unfolded_do_not_slow_commits_later() {
    let mut backlog = at(BOUND / 2 + MIB);
    let before_ns = distance_ns(&backlog);
    backlog.folded(BOUND / 2, Duration::from_nanos(BOUND / 2 * 10));
    for _ in 0..100_000 {
        backlog.folded(0, Duration::from_millis(50));
    }
    backlog.committed(BOUND / 2 - MIB);
    backlog.committed(MIB);
    assert_eq!(distance_ns(&backlog), before_ns);
}

#[test]
fn what_the_archive_counts_wrong_does_not_stay() {
    for counted_bytes in [0, 3 * MIB, 9 * MIB] {
        let mut backlog = Backlog::new(BOUND);
        backlog.committed(5 * MIB);
        backlog.work_begins();
        backlog.folded(counted_bytes, Duration::ZERO);
        backlog.work_begins();
        backlog.committed(MIB);
        backlog.folded_all(Duration::ZERO);
        assert_eq!(backlog.unfolded_bytes(), MIB, "only what came since is left");
    }
}

/// Whoever writes without a pause, twice as fast as it is folded: a commit of one MiB takes 5 ms, folding it 10 ms.
#[test]
fn a_writer_who_is_faster_than_the_archive_is_slowed_to_its_pace_below_the_bound() {
    const COMMIT_NS: u64 = 5_000_000;
    const FOLD_NS: u64 = 10_000_000;
    let mut backlog = Backlog::new(BOUND);
    let (mut now_ns, mut folded_at_ns, mut longest_wait_ns) = (0, FOLD_NS, 0);
    // Twice as many as it takes from nothing to the bound.
    for _ in 0..4 * BOUND / MIB {
        let wanted_ns = now_ns;
        while backlog.verdict(Nanos(now_ns)) != Verdict::Go {
            let Verdict::NotBefore(at) = backlog.verdict(Nanos(now_ns)) else { panic!("the bound was reached") };
            now_ns = at.0.min(folded_at_ns);
            fold_until(&mut backlog, now_ns, &mut folded_at_ns, FOLD_NS);
        }
        longest_wait_ns = longest_wait_ns.max(now_ns - wanted_ns);
        backlog.submitted(Nanos(now_ns));
        now_ns += COMMIT_NS;
        backlog.committed(MIB);
        fold_until(&mut backlog, now_ns, &mut folded_at_ns, FOLD_NS);
    }
    let fill = backlog.unfolded_peak_bytes() * 100 / BOUND;
    assert!((74..=76).contains(&fill), "{fill} % of the bound");
    assert!(longest_wait_ns <= FOLD_NS - COMMIT_NS + FOLD_NS / 10, "{longest_wait_ns} ns");
}

fn fold_until(backlog: &mut Backlog, now_ns: u64, folded_at_ns: &mut u64, fold_ns: u64) {
    while *folded_at_ns <= now_ns {
        backlog.folded(MIB, Duration::from_nanos(fold_ns));
        *folded_at_ns += fold_ns;
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Commit(u64),
    Fold { bytes: u64, took_us: u64 },
    Full,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..=16 * MIB).prop_map(Step::Commit),
        2 => (0..=32 * MIB, 0..=1_000_000_u64).prop_map(|(bytes, took_us)| Step::Fold { bytes, took_us }),
        1 => Just(Step::Full),
        2 => (0..=100_000_000_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_the_bound_holds_and_nobody_waits_below_half_of_it(
        bound in 1..=100 * MIB,
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let mut backlog = Backlog::new(bound);
        let (mut now, mut unfolded) = (Nanos(0), 0_u64);
        for step in steps {
            match step {
                Step::Commit(bytes) => {
                    match backlog.verdict(now) {
                        Verdict::Go => {
                            prop_assert!(unfolded < bound);
                            backlog.submitted(now);
                            backlog.committed(bytes);
                            unfolded += bytes;
                        }
                        Verdict::NotBefore(at) => prop_assert!(at > now && unfolded > bound / 2 && unfolded < bound),
                        Verdict::WhenFolded | Verdict::Full => prop_assert!(unfolded >= bound),
                    }
                }
                Step::Fold { bytes, took_us } => {
                    let bytes = bytes.min(unfolded);
                    backlog.folded(bytes, Duration::from_micros(took_us));
                    unfolded -= bytes;
                }
                Step::Full => backlog.archive_is_full(),
                Step::Wait(ns) => now.0 += ns,
            }
            prop_assert_eq!(backlog.unfolded_bytes(), unfolded);
            prop_assert!(backlog.unfolded_peak_bytes() < bound + 16 * MIB);
        }
    }

    #[test]
    fn whoever_waits_as_long_as_told_may_go(unfolded in BOUND / 2..BOUND) {
        let backlog = at(unfolded);
        let after = Nanos(distance_ns(&backlog));
        prop_assert_eq!(backlog.verdict(after), Verdict::Go);
    }
}
