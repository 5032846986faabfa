//! Where does one link end and the next begin? (RFC 6690 section 2)
//!
//! Blanks around separators are skipped, because some devices break their lists into lines.

use super::{LINKS_MAX, MalformedLinks};

/// One link with its attributes, still as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link<'a> {
    /// The text between the angle brackets.
    pub(super) target: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
}

impl<'a> Link<'a> {
    /// Iterates over the attributes, each with its value without quotes.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.attributes.iter().copied()
    }

    /// Returns the values of an attribute, without their quotes.
    pub(super) fn values_of(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.attributes
            .iter()
            .filter(move |(found, _)| *found == name)
            .map(|(_, value)| *value)
    }
}

/// Reads a list of links; a text of blanks is an empty list.
pub(super) fn read(text: &str) -> Result<Vec<Link<'_>>, MalformedLinks> {
    let mut rest = skip_blanks(text);
    let mut links = Vec::new();
    if rest.is_empty() {
        return Ok(links);
    }
    loop {
        if links.len() == LINKS_MAX {
            return Err(MalformedLinks::TooMany);
        }
        let (link, tail) = read_link(rest)?;
        links.push(link);
        match tail.strip_prefix(',') {
            Some(next) => rest = skip_blanks(next),
            None if tail.is_empty() => return Ok(links),
            None => return Err(MalformedLinks::Syntax),
        }
    }
}

fn read_link(text: &str) -> Result<(Link<'_>, &str), MalformedLinks> {
    let rest = text.strip_prefix('<').ok_or(MalformedLinks::Syntax)?;
    let (target, rest) = rest.split_once('>').ok_or(MalformedLinks::Syntax)?;
    if target.contains(['<', '"', ' ']) {
        return Err(MalformedLinks::Syntax);
    }
    let mut attributes = Vec::new();
    let mut rest = skip_blanks(rest);
    while let Some(next) = rest.strip_prefix(';') {
        let (attribute, tail) = read_attribute(skip_blanks(next))?;
        attributes.push(attribute);
        rest = skip_blanks(tail);
    }
    Ok((Link { target, attributes }, rest))
}

/// Reads `name`, `name=value` or `name="value"`.
fn read_attribute(text: &str) -> Result<((&str, &str), &str), MalformedLinks> {
    let end = text.find(['=', ';', ',']).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end).ok_or(MalformedLinks::Syntax)?;
    let name = name.trim_end();
    if name.is_empty() || name.contains(['<', '>', '"']) {
        return Err(MalformedLinks::Syntax);
    }
    let Some(value) = rest.strip_prefix('=') else {
        return Ok(((name, ""), rest));
    };
    let (value, rest) = match skip_blanks(value).strip_prefix('"') {
        Some(quoted) => read_quoted(quoted)?,
        None => read_plain(value)?,
    };
    Ok(((name, value), rest))
}

/// Reads up to the closing quote; an escaped character stays escaped, because no attribute used
/// here has one.
fn read_quoted(text: &str) -> Result<(&str, &str), MalformedLinks> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => {
                let value = text.get(..at).ok_or(MalformedLinks::Syntax)?;
                let rest = text.get(at + 1..).ok_or(MalformedLinks::Syntax)?;
                return Ok((value, rest));
            }
            _ => {}
        }
    }
    Err(MalformedLinks::Syntax)
}

fn read_plain(text: &str) -> Result<(&str, &str), MalformedLinks> {
    let end = text.find([';', ',']).unwrap_or(text.len());
    let (value, rest) = text.split_at_checked(end).ok_or(MalformedLinks::Syntax)?;
    let value = value.trim();
    // A backslash escapes in quotes alone (RFC 6690 section 2, ptokenchar).
    if value.contains(['<', '>', '"', '\\', ' ']) {
        return Err(MalformedLinks::Syntax);
    }
    Ok((value, rest))
}

fn skip_blanks(text: &str) -> &str {
    text.trim_ascii_start()
}
