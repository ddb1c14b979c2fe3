//! The part of a Rust file that reaches an image.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// Returns the tokens of a file without comments, `#[doc]` and items under `#[cfg(test)]`. Unless
/// the file is for the ArceOS of 2026, items under `#[cfg(arceos = "0.6")]` are left out, too. Returns
/// the text itself if it is not Rust.
///
/// A comment changes the line numbers in panics, and no instruction.
pub fn code(text: &str, is_2026: bool) -> String {
    let Ok(tokens) = text.parse::<TokenStream>() else {
        return text.to_owned();
    };
    let mut code = String::new();
    let left_out: &[&str] = match is_2026 {
        true => &["cfg(test)"],
        false => &["cfg(test)", "cfg(arceos=\"0.6\")"],
    };
    add(tokens, left_out, &mut code);
    code
}

fn add(tokens: TokenStream, left_out: &[&str], code: &mut String) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                let is_inner =
                    matches!(tokens.peek(), Some(TokenTree::Punct(next)) if next.as_char() == '!');
                if is_inner {
                    tokens.next();
                }
                let attribute = match tokens.peek() {
                    Some(TokenTree::Group(group)) => group.stream().to_string(),
                    _ => String::new(),
                };
                let attribute = attribute.replace(' ', "");
                if attribute.starts_with("doc=") {
                    tokens.next();
                } else if left_out.contains(&attribute.as_str()) && !is_inner {
                    tokens.next();
                    // An item ends with one of these or later; the rest of an item counts.
                    let _ = tokens.find(ends);
                } else {
                    *code += if is_inner { "#!" } else { "#" };
                }
            }
            TokenTree::Punct(punct) => {
                code.push(punct.as_char());
                if punct.spacing() == Spacing::Alone {
                    code.push('\n');
                }
            }
            TokenTree::Group(group) => {
                let [open, close] = match group.delimiter() {
                    Delimiter::Parenthesis => ["(\n", ")\n"],
                    Delimiter::Brace => ["{\n", "}\n"],
                    Delimiter::Bracket => ["[\n", "]\n"],
                    Delimiter::None => ["", ""],
                };
                *code += open;
                add(group.stream(), left_out, code);
                *code += close;
            }
            word @ (TokenTree::Ident(_) | TokenTree::Literal(_)) => {
                *code += &word.to_string();
                code.push('\n');
            }
        }
    }
}

fn ends(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => matches!(punct.as_char(), ';' | ','),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    fn code(text: &str) -> String {
        super::code(text, false)
    }

    const FILE: &str = "//! A file.\nfn f(a: &str) -> u8 { b'\"' }\n";

    #[test]
    fn comments_and_tests_do_not_count() {
        for other in [
            "//! Another.\n\nfn f(a: &str) -> u8 { b'\"' }",
            "/* one */ fn f(a: /* a */ &str) -> u8 { // here\n b'\"' }",
            "/// A function.\n#[doc = \"x\"]\nfn f(a: &str) -> u8\n{ b'\"' }",
            "fn f(a: &str) -> u8 { b'\"' }\n#[cfg(test)]\nmod tests { fn g() {} }",
            "fn f(a: &str) -> u8 { b'\"' }\n#[cfg(test)]\nmod tests;",
            "fn f(#[cfg(test)] b: u8, a: &str) -> u8 { b'\"' }",
        ] {
            assert_eq!(code(FILE), code(other), "{other}");
        }
    }

    #[test]
    fn tokens_of_an_image_count() {
        for other in [
            "fn f(a: &str) -> u8 { b'/' }",
            "fn f(a: &'a str) -> u8 { b'\"' }",
            "#[inline] fn f(a: &str) -> u8 { b'\"' }",
            "#![no_std] fn f(a: &str) -> u8 { b'\"' }",
            "#[no_std] fn f(a: &str) -> u8 { b'\"' }",
            "#[cfg(test)] fn f(a: &str) -> u8 { b'\"' }",
            "#[cfg(not(test))] fn f(a: &str) -> u8 { b'\"' }",
            "fn f(a: &str) -> u8 { b'\"' } #[cfg(test)] mod t {} fn g() {}",
            "fn f(#[cfg(test)] b: u8, c: u8, a: &str) -> u8 { b'\"' }",
            "fn f(a: &str) -> u8 { \"// no comment\"; b'\"' }",
            "fn f(a: &str) -> u8 { b'\"' } }",
        ] {
            assert_ne!(code(FILE), code(other), "{other}");
        }
        assert_ne!(code("a && b"), code("a & &b"));
        assert_ne!(code("\"a // b\""), code("\"a // c\""));
        assert_ne!(code("#![a]"), code("#[a]"));
    }

    #[test]
    fn item_of_2026_counts_there_only() {
        const OF_2026: &str = "fn f() { a(); #[cfg(arceos = \"0.6\")] b(); }";
        const OF_ALL: &str = "fn f() { a(); }";
        assert_eq!(super::code(OF_2026, false), super::code(OF_ALL, false));
        assert_ne!(super::code(OF_2026, true), super::code(OF_ALL, true));
        let other_call = OF_2026.replace("b()", "c()");
        assert_ne!(super::code(OF_2026, true), super::code(&other_call, true));
        let other_line = OF_2026.replace("0.6", "0.8");
        assert_ne!(code(&other_line), code(OF_ALL));
    }
}
