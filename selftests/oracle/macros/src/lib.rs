// SPDX-License-Identifier: GPL-2.0

//! Stand-ins for the kernel's procedural macros, so that the source of `tcp_dctcp_floor` compiles
//! on the host: `#[vtable]` and `#[derive(Zeroable)]`, for what that module makes of them.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// `#[vtable]`: for every function `f` of a trait or of its implementation a constant `HAS_F`,
/// false in the trait and true in the implementation.
#[proc_macro_attribute]
pub fn vtable(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = item.into_iter().collect();
    let is_trait = tokens.iter().any(|t| is_word(t, "trait"));
    let Some(TokenTree::Group(body)) = tokens.pop() else {
        panic!("#[vtable]: not a trait and not an implementation");
    };
    let inside: Vec<TokenTree> = body.stream().into_iter().collect();
    let mut constants = String::new();
    for pair in inside.windows(2).filter(|pair| is_word(&pair[0], "fn")) {
        let name = pair[1].to_string().to_uppercase();
        constants += "#[allow(missing_docs)] const HAS_";
        constants += &name;
        constants += if is_trait {
            ": bool = false;"
        } else {
            ": bool = true;"
        };
    }
    let mut stream = parse(&constants);
    stream.extend(inside);
    tokens.push(Group::new(Delimiter::Brace, stream).into());
    tokens.into_iter().collect()
}

/// `#[derive(Zeroable)]`, for a structure without parameters.
#[proc_macro_derive(Zeroable)]
pub fn zeroable(item: TokenStream) -> TokenStream {
    let mut words = item.into_iter().skip_while(|t| !is_word(t, "struct"));
    let Some(name) = words.nth(1) else {
        panic!("derive(Zeroable): not a structure");
    };
    parse(&format!(
        "// SAFETY: The kernel's own macro checks the members; the host's does not.
        unsafe impl ::kernel::prelude::Zeroable for {name} {{}}"
    ))
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident.to_string() == word)
}

fn parse(text: &str) -> TokenStream {
    text.parse().expect("what is written here is Rust")
}
