//! What the attributes refuse, each with a word on what to do; and that an error in the body is told as in any other function.
//! error: write `async fn`
//! error: write `async fn`
//! error: this attribute takes no arguments
//! error: the one argument that there is
//! error: the one argument that there is
//! error: this function is called with nothing
//! error: this function is called by nobody who could choose
//! error: expected `fn`
//! error[E0308]
//! error[E0277]

#[miniloop::main]
fn nothing_to_await() {}

#[miniloop::test]
fn nothing_to_await_either() {}

#[miniloop::main(flavor = "current_thread")]
async fn arguments() {}

#[miniloop::test(start_paused)]
async fn an_unknown_argument() {}

#[miniloop::test(system_clock, system_clock)]
async fn two_arguments() {}

#[miniloop::test]
async fn a_parameter(_port: u16) {}

#[miniloop::test]
async fn generic<T>() {}

#[miniloop::test]
struct NoFunction;

#[miniloop::main]
async fn main() -> u16 {
    "not a number"
}
