//! How are descriptions turned into HTML? Escaped, with paragraphs and code in backquotes.

use std::fmt::Write as _;

/// HTML under construction.
#[derive(Debug, Default)]
pub(in crate::api) struct Html(String);

impl Html {
    /// Adds markup as it is.
    pub(in crate::api) fn raw(&mut self, markup: &str) {
        self.0.push_str(markup);
    }

    /// Adds text, escaped.
    pub(in crate::api) fn text(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '&' => self.raw("&amp;"),
                '<' => self.raw("&lt;"),
                '>' => self.raw("&gt;"),
                '"' => self.raw("&quot;"),
                '\'' => self.raw("&#39;"),
                other => self.0.push(other),
            }
        }
    }

    /// Adds an element with text content.
    pub(in crate::api) fn element(&mut self, tag: &str, class: &str, text: &str) {
        self.open(tag, class);
        self.text(text);
        self.close(tag);
    }

    /// Begins an element.
    pub(super) fn open(&mut self, tag: &str, class: &str) {
        if class.is_empty() {
            self.format(format_args!("<{tag}>"));
        } else {
            self.format(format_args!("<{tag} class=\"{class}\">"));
        }
    }

    /// Ends an element.
    pub(super) fn close(&mut self, tag: &str) {
        self.format(format_args!("</{tag}>"));
    }

    /// Adds a text with code in backquotes.
    pub(super) fn line(&mut self, text: &str) {
        for (place, part) in text.split('`').enumerate() {
            if place % 2 == 1 {
                self.element("code", "", part);
            } else {
                self.text(part);
            }
        }
    }

    /// Adds a text with code in backquotes and empty lines between paragraphs.
    pub(super) fn prose(&mut self, text: &str) {
        for paragraph in text.trim().split("\n\n") {
            self.open("p", "");
            self.line(paragraph);
            self.close("p");
        }
    }

    /// Adds a block of code with a copy button.
    pub(super) fn sample(&mut self, label: &str, lines: &str) {
        self.open("div", "sample");
        self.element("span", "label", label);
        self.open("pre", "");
        self.element("code", "", lines);
        self.close("pre");
        self.close("div");
    }

    /// The markup.
    pub(in crate::api) fn into_text(self) -> String {
        self.0
    }

    fn format(&mut self, markup: std::fmt::Arguments<'_>) {
        let written = self.0.write_fmt(markup);
        written.expect("a text takes whatever is written to it");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let mut html = Html::default();
        html.prose("a < b & `<c>`\n\n\"d\"");
        assert_eq!(
            html.into_text(),
            "<p>a &lt; b &amp; <code>&lt;c&gt;</code></p><p>&quot;d&quot;</p>"
        );
    }
}
