//! The attributes of `miniloop`, which is where they are documented for users: `#[miniloop::main]` and `#[miniloop::test]`.
//!
//! Each puts a plain function around an `async fn` without parameters, and has it call a function of miniloop with the future. They
//! know nothing else of it: what a main function and a test are stands in `miniloop::run` and `miniloop::testing::run`.

mod attribute;

/// Runs an `async fn main` on a new loop, as `miniloop::run` does. If the loop itself fails, `main` panics and says why.
///
/// It takes no arguments: a loop with settings of its own is made by `EventLoop::builder()` in a plain `main`. A crate in which miniloop
/// has another name writes `extern crate other_name as miniloop;` in its root.
///
/// ```
/// #[miniloop::main]
/// async fn main() -> std::io::Result<()> {
///     let listener = miniloop::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0).into())?;
///     println!("listening on {}", listener.local_addr()?);
///     Ok(())
/// }
/// ```
#[proc_macro_attribute]
pub fn main(arguments: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    attribute::main(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Runs an `async fn` as a test, as `miniloop::testing::run` does: in virtual time, failing also for failures that nobody has read.
/// `#[miniloop::test(system_clock)]` leaves the clock alone, for tests of what is outside the program: virtual time does not wait for a
/// child process, so a time limit on one would be over at once.
///
/// ```
/// #[miniloop::test]
/// async fn an_hour_passes() {
///     miniloop::sleep(std::time::Duration::from_secs(3_600)).await;
/// }
/// ```
#[proc_macro_attribute]
pub fn test(arguments: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    attribute::test(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
