//! Ten ways to break one rule each, for `tests/mutants.rs`, which demands that random programs notice every one.
//!
//! A test of an order is worth as much as the wrong orders that it rejects. Outside `--cfg miniloop_mutants` every question in here is a
//! constant `false`, and the compiler removes the branch that asks it.

/// What can be broken. `MINILOOP_MUTANT` names one by its variant, in snake case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// O1: a woken task goes to the front of the ready queue.
    WakesJumpTheQueue,
    /// O2: a round runs until the queue is empty.
    RoundWithoutSnapshot,
    /// O3: due timers are appended before what other threads sent.
    TimersBeforeInbox,
    /// O4: cancelling does nothing once the callback is queued.
    CancelTooLate,
    /// O5: two wakes are two entries.
    WakesAddUp,
    /// O6: a busy loop looks into the inbox only when it polls.
    InboxOnlyAtPoll,
    /// O7: of equal deadlines the one set last fires first.
    EqualDeadlinesNewestFirst,
    /// O8: a waiter that polls again moves to the end.
    WaiterLosesItsPlace,
    /// O9: closing drops the task spawned first, first.
    CloseOldestFirst,
    /// O10: operations are not counted.
    NoOperationBudget,
}

#[cfg(not(miniloop_mutants))]
pub(crate) const fn is_broken(_rule: Mutant) -> bool {
    false
}

#[cfg(miniloop_mutants)]
pub(crate) fn is_broken(rule: Mutant) -> bool {
    use std::sync::LazyLock;

    static CHOSEN: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("MINILOOP_MUTANT").ok());
    CHOSEN.as_deref().is_some_and(|chosen| chosen.replace('_', "").eq_ignore_ascii_case(&format!("{rule:?}")))
}
