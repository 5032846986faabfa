//! What in a Rust text is code, where do its functions begin and end, and which lines are tests?
//!
//! No parser: comments and literals are blanked, then braces are matched. It rests on what rustfmt
//! leaves behind; `tests` below says what it is exact about.

/// A function and its extent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Function {
    /// Its name.
    pub(crate) name: String,
    /// The line of its `fn`, from 1.
    pub(crate) line: usize,
    /// Lines from its `fn` to its closing brace, both counted.
    pub(crate) lines: usize,
}

/// An item behind `#[cfg(test)]`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum TestItem {
    /// An item in this file: its first and last line, from 1.
    Lines(usize, usize),
    /// A module in a file of its own.
    Module(String),
}

/// The text with every comment and literal blanked; lines and columns stay what they were.
pub(crate) fn code_of(text: &str) -> String {
    let mut blanker = Blanker {
        chars: text.chars().collect(),
        at: 0,
        out: String::new(),
    };
    blanker.run();
    blanker.out
}

/// Every function that has a body, in order of appearance.
pub(crate) fn functions(code: &str) -> Vec<Function> {
    let chars: Vec<char> = code.chars().collect();
    let mut found = Vec::new();
    for at in words(&chars, "fn") {
        let name: String = chars[at + 2..]
            .iter()
            .skip_while(|c| c.is_whitespace())
            .take_while(|c| is_word(**c))
            .collect();
        let Some(open) = body_after(&chars, at).filter(|_| !name.is_empty()) else {
            continue;
        };
        let (first, last) = (line_of(&chars, at), line_of(&chars, closing(&chars, open)));
        found.push(Function {
            name,
            line: first,
            lines: last + 1 - first,
        });
    }
    found
}

/// Every item behind a `cfg` that asks for `test`.
pub(crate) fn test_items(code: &str) -> Vec<TestItem> {
    let chars: Vec<char> = code.chars().collect();
    let mut found = Vec::new();
    for at in words(&chars, "cfg") {
        if at < 2 || chars[at - 2..at] != ['#', '['] {
            continue;
        }
        let end = closing(&chars, at - 1);
        let condition: String = chars[at..end]
            .iter()
            .filter(|c| !c.is_whitespace())
            .collect();
        let asks = words(&chars[at..end], "test").next().is_some();
        if !asks || condition.contains("not(test)") {
            continue;
        }
        let item = after_attributes(&chars, end + 1);
        found.push(match body_after(&chars, item) {
            Some(open) => {
                TestItem::Lines(line_of(&chars, at), line_of(&chars, closing(&chars, open)))
            }
            None => match module_name(&chars, item) {
                Some(name) => TestItem::Module(name),
                None => TestItem::Lines(line_of(&chars, at), line_of(&chars, item)),
            },
        });
    }
    found
}

/// Whether a line of code holds a name as a whole; the name may be a path (`Utc::now`).
pub(crate) fn mentions(line: &str, name: &str) -> bool {
    let chars: Vec<char> = line.chars().collect();
    words(&chars, name).next().is_some()
}

fn words<'a>(chars: &'a [char], word: &str) -> impl Iterator<Item = usize> + use<'a> {
    let word: Vec<char> = word.chars().collect();
    let length = word.len();
    (0..(chars.len() + 1).saturating_sub(length)).filter(move |&at| {
        chars[at..at + length] == word[..]
            && (at == 0 || !is_word(chars[at - 1]))
            && chars.get(at + length).is_none_or(|next| !is_word(*next))
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn line_of(chars: &[char], at: usize) -> usize {
    1 + chars.iter().take(at).filter(|c| **c == '\n').count()
}

/// Where the braces of the item at `from` open; None if it ends with `;` or has none.
fn body_after(chars: &[char], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(c) = chars.get(at) {
        match c {
            ';' | ')' | ']' | '}' => return None,
            '(' | '[' => at = closing(chars, at),
            // A constant as a type's argument, `Ring<{ SIZE }>`.
            '{' if before(chars, at) == Some('<') => at = closing(chars, at),
            '{' => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

fn before(chars: &[char], at: usize) -> Option<char> {
    chars[..at]
        .iter()
        .rev()
        .copied()
        .find(|c| !c.is_whitespace())
}

/// The place of the bracket that closes the one at `open`, or the end of the text.
fn closing(chars: &[char], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, c) in chars.iter().enumerate().skip(open) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn after_attributes(chars: &[char], from: usize) -> usize {
    let mut at = from;
    loop {
        while chars.get(at).is_some_and(|c| c.is_whitespace()) {
            at += 1;
        }
        if chars.get(at) != Some(&'#') {
            return at;
        }
        at = closing(chars, at + 1) + 1;
    }
}

fn module_name(chars: &[char], item: usize) -> Option<String> {
    let text: String = chars[item..].iter().take_while(|c| **c != ';').collect();
    let mut words = text
        .split_whitespace()
        .skip_while(|word| word.starts_with("pub"));
    (words.next() == Some("mod")).then(|| words.next().map(str::to_owned))?
}

/// Copies a text, blanking what is not code.
struct Blanker {
    chars: Vec<char>,
    at: usize,
    out: String,
}

impl Blanker {
    fn run(&mut self) {
        while let Some(c) = self.peek(0) {
            match c {
                '/' if self.peek(1) == Some('/') => self.blank_line(),
                '/' if self.peek(1) == Some('*') => self.blank_block(),
                '"' => self.blank_text(),
                '\'' => self.blank_char(),
                'r' if self.begins_raw() => self.blank_raw(),
                _ => self.keep(),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn keep(&mut self) {
        self.out.extend(self.peek(0));
        self.at += 1;
    }

    fn blank(&mut self, count: usize) {
        for _ in 0..count {
            match self.peek(0) {
                Some('\n') => self.out.push('\n'),
                Some(_) => self.out.push(' '),
                None => return,
            }
            self.at += 1;
        }
    }

    fn blank_line(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.blank(1);
        }
    }

    fn blank_block(&mut self) {
        let mut depth = 0_usize;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => depth += 1,
                (Some('*'), Some('/')) => depth -= 1,
                (None, _) => return,
                _ => {
                    self.blank(1);
                    continue;
                }
            }
            self.blank(2);
            if depth == 0 {
                return;
            }
        }
    }

    fn blank_text(&mut self) {
        self.blank(1);
        while let Some(c) = self.peek(0) {
            match c {
                '\\' => self.blank(2),
                '"' => return self.blank(1),
                _ => self.blank(1),
            }
        }
    }

    /// A quote opens a character only if one closes it; else it begins a lifetime.
    fn blank_char(&mut self) {
        if self.peek(1) == Some('\\') {
            self.blank(3);
            while self.peek(0).is_some_and(|c| c != '\'') {
                self.blank(1);
            }
            return self.blank(1);
        }
        if self.peek(2) == Some('\'') {
            return self.blank(3);
        }
        self.keep();
    }

    fn hashes(&self) -> usize {
        (1..)
            .take_while(|ahead| self.peek(*ahead) == Some('#'))
            .count()
    }

    /// `r"`, `r#"`, also after `b` or `c`; not the end of a longer name.
    fn begins_raw(&self) -> bool {
        let mut behind = self.out.chars().rev().take_while(|c| is_word(*c));
        let prefix = (behind.next(), behind.next());
        matches!(prefix, (None | Some('b' | 'c'), None))
            && self.peek(1 + self.hashes()) == Some('"')
    }

    fn blank_raw(&mut self) {
        let hashes = self.hashes();
        self.blank(2 + hashes);
        while let Some(c) = self.peek(0) {
            let closes = c == '"' && self.hashes() >= hashes;
            self.blank(1);
            if closes {
                return self.blank(hashes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Function, TestItem, code_of, functions, mentions, test_items};

    #[test]
    fn comments_and_literals_are_blanked_and_nothing_else_is() {
        for (text, code) in [
            ("let a = 1; // { fn", "let a = 1;        "),
            ("a /* { /* nested */ } */ b", "a                        b"),
            (r#"say("a \" { b");"#, "say(          );"),
            ("r#\"a \" { \"#;", "           ;"),
            ("br##\"a\"# {\"##;", "b            ;"),
            (
                "let b'{' | '\\'' | '\\u{7b}' = c;",
                "let b    |      |          = c;",
            ),
            (
                "fn f<'a>(x: &'a str) -> &'a str {",
                "fn f<'a>(x: &'a str) -> &'a str {",
            ),
            (
                "'outer: loop { break 'outer }",
                "'outer: loop { break 'outer }",
            ),
            ("bar\"x\"", "bar   "),
            ("\"two\n{lines\";", "    \n       ;"),
            ("'\"'; '\"'", "   ;    "),
        ] {
            assert_eq!(code_of(text), code, "{text}");
        }
    }

    #[test]
    fn functions_are_found_with_their_extent() {
        for (text, expected) in [
            ("fn a() {}", vec![("a", 1, 1)]),
            (
                "trait T {\n    fn a();\n    fn b() {\n    }\n}",
                vec![("b", 3, 2)],
            ),
            ("type F = fn(u8) -> u8;\nfn c() {\n}\n", vec![("c", 2, 2)]),
            (
                "fn d(x: [u8; { 3 }]) -> R<{ N }>\nwhere\n    A: B,\n{\n}",
                vec![("d", 1, 5)],
            ),
            (
                "fn e() {\n    let s = \"}\";\n    // }\n}\n",
                vec![("e", 1, 4)],
            ),
            (
                "fn f() {\n    fn g() {\n    }\n}",
                vec![("f", 1, 4), ("g", 2, 2)],
            ),
            (
                "pub(crate) const unsafe fn h<'a>(c: &'a str) {\n}",
                vec![("h", 1, 2)],
            ),
            (
                "fn i(f: impl Fn(u8) -> u8) -> impl Fn() {\n    move || f('}')\n}",
                vec![("i", 1, 3)],
            ),
            ("fn_like! { fnord }", vec![]),
        ] {
            let expected: Vec<Function> = expected
                .into_iter()
                .map(|(name, line, lines)| Function {
                    name: name.into(),
                    line,
                    lines,
                })
                .collect();
            assert_eq!(functions(&code_of(text)), expected, "{text}");
        }
    }

    #[test]
    fn items_behind_cfg_test_are_found() {
        for (text, expected) in [
            (
                "fn a() {}\n#[cfg(test)]\nmod t {\n    {}\n}\nfn b() {}",
                vec![TestItem::Lines(2, 5)],
            ),
            (
                "#[cfg(test)]\nmod tests;",
                vec![TestItem::Module("tests".into())],
            ),
            (
                "#[cfg(test)]\n#[path = \"x.rs\"]\npub(crate) mod t;",
                vec![TestItem::Module("t".into())],
            ),
            (
                "#[cfg(any(test, feature = \"x\"))]\nimpl A {\n}",
                vec![TestItem::Lines(1, 3)],
            ),
            (
                "#[cfg(test)]\nuse a::b;\nfn c() {}",
                vec![TestItem::Lines(1, 2)],
            ),
            ("#[cfg(not(test))]\nmod real;", vec![]),
            ("#[cfg(unix)]\nmod tests {}", vec![]),
            ("// #[cfg(test)]\nmod tests {}", vec![]),
        ] {
            assert_eq!(test_items(&code_of(text)), expected, "{text}");
        }
    }

    #[test]
    fn a_name_is_mentioned_only_as_a_whole() {
        for (line, name, expected) in [
            ("use rand::Rng;", "rand", true),
            ("let operand = brand;", "rand", false),
            ("Utc::now()", "Utc::now", true),
            ("Utc::now_utc()", "Utc::now", false),
            ("unsafe_code", "unsafe", false),
            ("rand", "rand", true),
            ("", "rand", false),
        ] {
            assert_eq!(mentions(line, name), expected, "{line} {name}");
        }
    }
}
