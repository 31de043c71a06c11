//! The attributes of `miniloop`, which is where they are documented for users: `#[miniloop::main]` and `#[miniloop::test]`.
//!
//! Each takes an `async fn` without parameters apart and puts a plain one around it that calls a function of miniloop with the future. They
//! know nothing else of it: what a main function and a test are stands in `miniloop::run` and `miniloop::testing::run`.

mod attribute;

/// Runs an `async fn main` on a new loop, as `miniloop::run` does. If the loop itself fails, `main` panics and says why.
#[proc_macro_attribute]
pub fn main(arguments: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    attribute::main(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Runs an `async fn` as a test, as `miniloop::testing::run` does: in virtual time, failing also for failures that nobody has read.
/// `#[miniloop::test(system_clock)]` leaves the clock alone.
#[proc_macro_attribute]
pub fn test(arguments: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    attribute::test(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
