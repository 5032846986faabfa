//! Which tokens, functions and tests does a Rust text contain?
//!
//! Reads the token trees of `proc_macro2`, so that the bodies of macros count too. Comments are no
//! tokens, and literals are all alike. `tests` below shows the exact behaviour.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};

/// Stands for each literal.
const LITERAL: &str = "\"\"";

/// The content of a text, free of the parser's own types, which stay on their thread.
#[derive(Debug, Default)]
pub(crate) struct Syntax {
    /// Identifiers, punctuation character by character, and brackets.
    pub(crate) tokens: Vec<Token>,
    pub(crate) functions: Vec<Function>,
    /// First and last line of each item with a `cfg` of `test`.
    pub(crate) test_lines: Vec<(usize, usize)>,
    /// Modules in files of their own that only tests declare.
    pub(crate) test_modules: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// Its line, from 1.
    pub(crate) line: usize,
}

#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The line of its `fn`, from 1.
    pub(crate) line: usize,
    /// Whether an attribute makes it a test.
    pub(crate) is_test: bool,
}

impl Syntax {
    pub(crate) fn of(text: &str) -> Self {
        let stream: TokenStream = text.parse().expect("the compiler has read this text");
        let mut syntax = Self::default();
        syntax.read(stream);
        syntax
    }

    /// Where a sequence of tokens begins, as places among the tokens.
    pub(crate) fn places(&self, sequence: &[&str]) -> Vec<usize> {
        let windows = self.tokens.windows(sequence.len()).enumerate();
        let found = windows.filter(|(_, window)| {
            let mut pairs = window.iter().zip(sequence);
            pairs.all(|(token, text)| token.text == *text)
        });
        found.map(|(place, _)| place).collect()
    }

    /// The lines that contain a name, which may be a path (`Utc::now`).
    pub(crate) fn lines_with(&self, name: &str) -> Vec<usize> {
        let mut sequence = Vec::new();
        for word in name.split("::") {
            let colons: &[&str] = if sequence.is_empty() {
                &[]
            } else {
                &[":", ":"]
            };
            sequence.extend(colons);
            sequence.push(word);
        }
        let lines = self
            .places(&sequence)
            .into_iter()
            .map(|place| self.tokens[place].line);
        let mut lines: Vec<usize> = lines.collect();
        lines.dedup();
        lines
    }

    /// The text of a token; empty beyond the ends of the file.
    pub(crate) fn text(&self, place: Option<usize>) -> &str {
        let token = place.and_then(|place| self.tokens.get(place));
        token.map_or("", |token| &token.text)
    }

    /// Reads the tokens between two brackets.
    fn read(&mut self, stream: TokenStream) {
        let mut item = Item::default();
        let mut trees = stream.into_iter().peekable();
        while let Some(tree) = trees.next() {
            match tree {
                TokenTree::Literal(literal) => self.push(LITERAL.to_owned(), literal.span()),
                TokenTree::Ident(word) => {
                    let text = word.to_string();
                    match trees.peek() {
                        Some(TokenTree::Ident(name)) if text == "fn" => {
                            self.functions.push(Function {
                                name: name.to_string(),
                                line: line(word.span()),
                                is_test: item.runs_as_test,
                            })
                        }
                        Some(TokenTree::Ident(name)) if text == "mod" => {
                            item.module = Some(name.to_string());
                        }
                        _ => {}
                    }
                    self.push(text, word.span());
                }
                TokenTree::Punct(mark) => {
                    self.push(mark.as_char().to_string(), mark.span());
                    match (mark.as_char(), trees.peek()) {
                        ('#', Some(TokenTree::Group(group)))
                            if group.delimiter() == Delimiter::Bracket =>
                        {
                            item.mark(&words(group.stream()), line(mark.span()));
                        }
                        (';', _) => self.end(std::mem::take(&mut item), mark.span()),
                        _ => {}
                    }
                }
                TokenTree::Group(group) => {
                    let (open, close) = match group.delimiter() {
                        Delimiter::Parenthesis => ("(", ")"),
                        Delimiter::Bracket => ("[", "]"),
                        Delimiter::Brace => ("{", "}"),
                        Delimiter::None => ("", ""),
                    };
                    self.push(open.to_owned(), group.span_open());
                    self.read(group.stream());
                    self.push(close.to_owned(), group.span_close());
                    // A constant as a type's argument, `Ring<{ SIZE }>`, closes no item.
                    let is_argument = trees.peek().is_some_and(
                        |next| matches!(next, TokenTree::Punct(mark) if mark.as_char() == '>'),
                    );
                    if open == "{" && !is_argument {
                        item.module = None;
                        self.end(std::mem::take(&mut item), group.span_close());
                    }
                }
            }
        }
    }

    fn push(&mut self, text: String, span: Span) {
        let line = line(span);
        self.tokens.push(Token { text, line });
    }

    fn end(&mut self, item: Item, last: Span) {
        match (item.tests_from, item.module) {
            (Some(_), Some(module)) => self.test_modules.push(module),
            (Some(first), None) => self.test_lines.push((first, line(last))),
            (None, _) => {}
        }
    }
}

/// What is known of an item that has not ended.
#[derive(Default)]
struct Item {
    /// The line of the `cfg` of `test`.
    tests_from: Option<usize>,
    runs_as_test: bool,
    module: Option<String>,
}

impl Item {
    fn mark(&mut self, attribute: &[String], line: usize) {
        let has = |word: &str| attribute.iter().any(|it| it == word);
        let is_cfg = attribute.first().is_some_and(|first| first == "cfg");
        if is_cfg && has("test") && !has("not") {
            self.tests_from.get_or_insert(line);
        } else if !is_cfg && attribute.last().is_some_and(|last| last == "test") {
            self.runs_as_test = true;
        }
    }
}

/// Every identifier of a stream.
fn words(stream: TokenStream) -> Vec<String> {
    let words = stream.into_iter().flat_map(|tree| match tree {
        TokenTree::Ident(word) => vec![word.to_string()],
        TokenTree::Group(group) => words(group.stream()),
        TokenTree::Punct(_) | TokenTree::Literal(_) => vec![],
    });
    words.collect()
}

fn line(span: Span) -> usize {
    span.start().line
}

#[cfg(test)]
mod tests {
    use super::{Function, Syntax};

    #[test]
    fn comments_are_no_tokens_and_literals_are_alike() {
        for (text, tokens) in [
            ("let a = 1; // { fn", r#"let a = "" ;"#),
            ("/// A fn.\nstruct B;", r#"# [ doc = "" ] struct B ;"#),
            (
                r#"say("a \" { b", 'c', r"d");"#,
                r#"say ( "" , "" , "" ) ;"#,
            ),
            (
                "fn f<'a>(x: &'a str) {}",
                "fn f < ' a > ( x : & ' a str ) { }",
            ),
        ] {
            let syntax = Syntax::of(text);
            let found: Vec<_> = syntax.tokens.iter().map(|token| &*token.text).collect();
            assert_eq!(found.join(" "), tokens, "{text}");
        }
    }

    #[test]
    fn functions_are_found_with_what_marks_them_as_tests() {
        for (text, expected) in [
            ("fn a() {}", vec![("a", 1, false)]),
            (
                "trait T {\n fn a();\n fn b() {}\n}",
                vec![("a", 2, false), ("b", 3, false)],
            ),
            ("type F = fn(u8) -> u8;\nfn c() {}", vec![("c", 2, false)]),
            (
                "fn f() {\n fn g() {}\n}",
                vec![("f", 1, false), ("g", 2, false)],
            ),
            (
                "#[test]\nfn h() {}\nfn i() {}",
                vec![("h", 2, true), ("i", 3, false)],
            ),
            (
                "#[actix_web::test]\n#[allow(x)]\nasync fn j() {}",
                vec![("j", 3, true)],
            ),
            ("#[cfg(test)]\nfn k() {}", vec![("k", 2, false)]),
            (
                "proptest! {\n #[test]\n fn l(a in 0..3) {}\n}",
                vec![("l", 3, true)],
            ),
            ("fn_like! { fnord }", vec![]),
        ] {
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(name, line, is_test)| Function {
                    name: name.to_owned(),
                    line,
                    is_test,
                })
                .collect();
            assert_eq!(Syntax::of(text).functions, expected, "{text}");
        }
    }

    #[test]
    fn items_behind_cfg_test_are_found() {
        for (text, lines, modules) in [
            (
                "fn a() {}\n#[cfg(test)]\nmod t {\n    {}\n}\nfn b() {}",
                vec![(2, 5)],
                vec![],
            ),
            ("#[cfg(test)]\nmod tests;", vec![], vec!["tests"]),
            (
                "#[cfg(test)]\n#[path = \"x.rs\"]\npub(crate) mod t;",
                vec![],
                vec!["t"],
            ),
            (
                "#[cfg(any(test, feature = \"x\"))]\nimpl A {\n}",
                vec![(1, 3)],
                vec![],
            ),
            ("#[cfg(test)]\nuse a::b;\nfn c() {}", vec![(1, 2)], vec![]),
            (
                "#[cfg(test)]\nfn d() -> R<{ N }>\n{\n}",
                vec![(1, 4)],
                vec![],
            ),
            (
                "#[cfg(test)]\nimpl<A, B> C<A, B> {\n}",
                vec![(1, 3)],
                vec![],
            ),
            ("#[cfg(not(test))]\nmod real;", vec![], vec![]),
            ("#[cfg(unix)]\nmod tests {}", vec![], vec![]),
            ("// #[cfg(test)]\nmod tests {}", vec![], vec![]),
        ] {
            let syntax = Syntax::of(text);
            assert_eq!(syntax.test_lines, lines, "{text}");
            assert_eq!(syntax.test_modules, modules, "{text}");
        }
    }

    #[test]
    fn a_name_is_mentioned_only_as_a_whole() {
        for (text, name, expected) in [
            ("use rand::Rng;", "rand", true),
            ("let operand = brand;", "rand", false),
            ("Utc::now()", "Utc::now", true),
            ("Utc::\nnow()", "Utc::now", true),
            ("Utc::now_utc()", "Utc::now", false),
            ("unsafe_code", "unsafe", false),
            ("", "rand", false),
        ] {
            let found = Syntax::of(text).lines_with(name);
            assert_eq!(!found.is_empty(), expected, "{text} {name}");
        }
    }
}
