//! How a plain function is put around an async one.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Ident, ItemFn, parse2};

/// `#[miniloop::main]`.
pub(crate) fn main(arguments: TokenStream, item: TokenStream) -> Result<TokenStream, Error> {
    if !arguments.is_empty() {
        let text = "this attribute takes no arguments: a plain `main` makes a loop with settings of its own by `EventLoop::builder()`";
        return Err(Error::new_spanned(arguments, text));
    }
    let run = |future| quote!(::miniloop::run(#future).unwrap_or_else(|error| ::core::panic!("{error}")));
    expand(parse2(item)?, run, TokenStream::new())
}

/// `#[miniloop::test]`.
pub(crate) fn test(arguments: TokenStream, item: TokenStream) -> Result<TokenStream, Error> {
    let run = match parse2::<Option<Ident>>(arguments.clone()) {
        Ok(None) => quote!(::miniloop::testing::run),
        Ok(Some(name)) if name == "system_clock" => quote!(::miniloop::testing::run_on_system_clock),
        _ => {
            let text = "the one argument that there is: `system_clock`, for tests of what is outside the program";
            return Err(Error::new_spanned(arguments, text));
        }
    };
    expand(parse2(item)?, |future| quote!(#run(#future)), quote!(#[::core::prelude::v1::test]))
}

/// A plain function with the attributes, name and result of an async one, which stands in it as it was written: so the compiler takes its
/// body, and what it says of it, for that of any other async function.
fn expand(function: ItemFn, run: impl FnOnce(TokenStream) -> TokenStream, attribute: TokenStream) -> Result<TokenStream, Error> {
    let ItemFn { attrs, vis, sig, block, .. } = function;
    let mut outer = sig.clone();
    if outer.asyncness.take().is_none() {
        return Err(Error::new_spanned(sig.fn_token, "write `async fn`: there is nothing to run on a loop otherwise"));
    }
    if let Some(first) = sig.inputs.first() {
        return Err(Error::new_spanned(first, "this function is called with nothing: it cannot have parameters"));
    }
    if let Some(first) = sig.generics.params.first() {
        return Err(Error::new_spanned(first, "this function is called by nobody who could choose: it cannot be generic"));
    }
    let name = &sig.ident;
    let body = run(quote!(#name()));
    Ok(quote! {
        #attribute
        #(#attrs)*
        #vis #outer {
            #sig #block
            #body
        }
    })
}
