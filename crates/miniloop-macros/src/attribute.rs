//! How a plain function is put around an async one.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::Nothing;
use syn::{Error, Ident, ItemFn, parse2};

/// `#[miniloop::main]`.
pub(crate) fn main(arguments: TokenStream, item: TokenStream) -> Result<TokenStream, Error> {
    parse2::<Nothing>(arguments)?;
    let call = |body| quote!(::miniloop::run(async move #body).unwrap_or_else(|error| ::core::panic!("{error}")));
    expand(parse2(item)?, call, TokenStream::new())
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
    expand(parse2(item)?, |body| quote!(#run(async move #body)), quote!(#[::core::prelude::v1::test]))
}

/// A plain function with the attributes, name and result of an async one, whose body is what `call` makes of the async body.
fn expand(function: ItemFn, call: impl FnOnce(TokenStream) -> TokenStream, attribute: TokenStream) -> Result<TokenStream, Error> {
    let ItemFn { attrs, vis, mut sig, block, .. } = function;
    if sig.asyncness.take().is_none() {
        return Err(Error::new_spanned(sig.fn_token, "write `async fn`: there is nothing to run on a loop otherwise"));
    }
    if let Some(first) = sig.inputs.first() {
        return Err(Error::new_spanned(first, "this function is called with nothing: it cannot have parameters"));
    }
    let body = call(quote!(#block));
    Ok(quote! {
        #attribute
        #(#attrs)*
        #vis #sig {
            #body
        }
    })
}
