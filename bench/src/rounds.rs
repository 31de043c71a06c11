//! The order in which contenders take turns.
//!
//! A noisy neighbour, a warm cache and a hot processor favour whoever is lucky; taking turns spreads the luck. In each round everybody
//! runs once, and each round begins with another one, so that nobody always comes first or behind the same one. Next: the programs in
//! `bin`.

/// The contenders of one round, in its order.
///
/// ```
/// let order = |round| bench::rounds::order(round, &["a", "b", "c"]).copied().collect::<String>();
/// assert_eq!([order(0), order(1), order(2), order(3)], ["abc", "bca", "cab", "abc"]);
/// ```
pub fn order<T>(round: usize, contenders: &[T]) -> impl Iterator<Item = &T> {
    let first = round % contenders.len().max(1);
    contenders[first..].iter().chain(&contenders[..first])
}
