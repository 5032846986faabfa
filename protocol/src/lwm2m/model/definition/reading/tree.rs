//! Which elements does a definition have, what do they contain, and where is a fault?

use std::collections::BTreeMap;

use roxmltree::{Document, Error, Node, ParsingOptions};

use crate::lwm2m::model::definition::{DefinitionFault, DefinitionFaultKind};

/// Characters that could begin an element: a thousand resources need half as many.
const OPENINGS_MAX: usize = 65_536;

/// Characters that could belong to an attribute, descriptions included.
const EQUALS_MAX: usize = 4_096;

/// Namespace declarations; files of the registry have one or two.
const NAMESPACES_MAX: usize = 16;

/// Faults that are collected: more than are ever reported.
const FOUND_MAX: usize = 200;

/// The characters of a text that a fault quotes.
const QUOTED_MAX: usize = 40;

/// A fault at an offset of the text.
pub(super) struct FaultAt {
    kind: DefinitionFaultKind,
    at: usize,
    element: String,
    why: String,
}

/// Reads elements and collects their faults.
#[derive(Default)]
pub(super) struct TreeReader {
    pub(super) found: Vec<FaultAt>,
    /// Set once the lack of room for names was reported.
    pub(super) names_are_full: bool,
}

/// The child elements of an element, by name.
pub(super) struct ChildElements<'d, 'i> {
    whole: Node<'d, 'i>,
    /// The name of the parent in faults.
    way: String,
    by_name: BTreeMap<&'static str, Node<'d, 'i>>,
}

/// Parses XML within the bounds.
pub(super) fn parse(text: &str) -> Result<Document<'_>, FaultAt> {
    for (sign, what, max) in [
        ("<", "elements", OPENINGS_MAX),
        ("=", "attributes", EQUALS_MAX),
        ("xmlns", "namespaces", NAMESPACES_MAX),
    ] {
        if let Some((at, _)) = text.match_indices(sign).nth(max) {
            let why = format!("the document has too many {what}: more than {max} {sign:?}");
            return Err(FaultAt::new(DefinitionFaultKind::TooMuch, at, why));
        }
    }
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: u32::try_from(2 * OPENINGS_MAX).expect("a constant that fits"),
        entity_resolver: None,
    };
    Document::parse_with_options(text, options).map_err(|error| unparsed(text, &error))
}

/// Converts the offsets of faults to lines and columns.
pub(super) fn placed(text: &str, mut found: Vec<FaultAt>) -> Vec<DefinitionFault> {
    found.sort_by_key(|found| found.at);
    let (mut line, mut column, mut through) = (1, 1, 0);
    let place = |found: FaultAt| {
        let passed = text.get(through..found.at).unwrap_or_default();
        for character in passed.chars() {
            (line, column) = match character {
                '\n' => (line + 1, 1),
                _ => (line, column + 1),
            };
        }
        through = found.at;
        DefinitionFault {
            kind: found.kind,
            element: found.element,
            line,
            column,
            why: found.why,
        }
    };
    found.into_iter().map(place).collect()
}

/// The elements in an element.
pub(super) fn children<'d, 'i>(of: Node<'d, 'i>) -> impl Iterator<Item = Node<'d, 'i>> {
    of.children().filter(Node::is_element)
}

/// The beginning of a text, for a fault.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

impl FaultAt {
    /// A fault at an offset.
    pub(super) fn new(kind: DefinitionFaultKind, at: usize, why: String) -> Self {
        Self {
            kind,
            at,
            element: String::new(),
            why,
        }
    }

    /// A fault of the whole text.
    pub(super) fn whole(kind: DefinitionFaultKind, why: String) -> Self {
        Self::new(kind, 0, why)
    }
}

impl TreeReader {
    /// Records a fault of an element.
    pub(super) fn note(
        &mut self,
        node: Node<'_, '_>,
        element: &str,
        kind: DefinitionFaultKind,
        why: &str,
    ) {
        if self.found.len() < FOUND_MAX {
            self.found.push(FaultAt {
                kind,
                at: node.range().start,
                element: element.to_owned(),
                why: why.to_owned(),
            });
        }
    }

    /// The child elements of an element; unknown and repeated ones are faults.
    pub(super) fn parts<'d, 'i>(
        &mut self,
        whole: Node<'d, 'i>,
        way: &str,
        known: &[&'static str],
    ) -> ChildElements<'d, 'i> {
        let mut by_name = BTreeMap::new();
        for part in children(whole) {
            let name = part.tag_name().name();
            let Some(known) = known.iter().find(|known| **known == name) else {
                let why = format!("the element {} is not allowed here", quoted(name));
                self.note(part, way, DefinitionFaultKind::Unknown, &why);
                continue;
            };
            if by_name.contains_key(known) {
                let element = format!("{way}/{known}");
                self.note(
                    part,
                    &element,
                    DefinitionFaultKind::Repeated,
                    "the element must be given only once",
                );
            } else {
                by_name.insert(*known, part);
            }
        }
        ChildElements {
            whole,
            way: way.to_owned(),
            by_name,
        }
    }

    /// A required child element.
    pub(super) fn needed<'d, 'i>(
        &mut self,
        parts: &ChildElements<'d, 'i>,
        name: &'static str,
    ) -> Option<Node<'d, 'i>> {
        let part = parts.by_name.get(name).copied();
        if part.is_none() {
            let why = format!("the element {name} is missing");
            self.note(parts.whole, &parts.way, DefinitionFaultKind::Missing, &why);
        }
        part
    }

    /// The value of a required element.
    pub(super) fn value<T>(
        &mut self,
        parts: &ChildElements<'_, '_>,
        name: &'static str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let part = self.needed(parts, name)?;
        self.read(parts, name, part, read)
    }

    /// The value of an element that may be missing or empty.
    pub(super) fn value_or<T>(
        &mut self,
        parts: &ChildElements<'_, '_>,
        name: &'static str,
        default: T,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let Some(part) = parts.by_name.get(name) else {
            return Some(default);
        };
        let value = self.read(parts, name, *part, |text| match text.is_empty() {
            true => Ok(None),
            false => read(text).map(Some),
        });
        value.map(|value| value.unwrap_or(default))
    }

    fn read<T>(
        &mut self,
        parts: &ChildElements<'_, '_>,
        name: &'static str,
        part: Node<'_, '_>,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let element = format!("{}/{name}", parts.way);
        if children(part).next().is_some() {
            self.note(
                part,
                &element,
                DefinitionFaultKind::Invalid,
                "the element must contain text only",
            );
            return None;
        }
        let text = text_of(part);
        match read(&text) {
            Ok(value) => Some(value),
            Err(expected) => {
                let why = format!("{name} must be {expected}, not {}", quoted(&text));
                self.note(part, &element, DefinitionFaultKind::Invalid, &why);
                None
            }
        }
    }
}

/// The text of an element without comments; runs of white space become one space.
fn text_of(node: Node<'_, '_>) -> String {
    let texts = node.children().filter(Node::is_text);
    let whole: String = texts.filter_map(|text| text.text()).collect();
    let words: Vec<_> = whole.split_whitespace().collect();
    words.join(" ")
}

fn unparsed(text: &str, error: &Error) -> FaultAt {
    if let Error::DtdDetected = error {
        let at = text.find("<!DOCTYPE").unwrap_or_default();
        return FaultAt::new(
            DefinitionFaultKind::NotXml,
            at,
            "a document type declaration (DOCTYPE) is not allowed".to_owned(),
        );
    }
    if let Error::NodesLimitReached = error {
        return FaultAt::whole(
            DefinitionFaultKind::TooMuch,
            "the document has too many elements".to_owned(),
        );
    }
    if let Error::NoRootNode = error {
        return FaultAt::new(
            DefinitionFaultKind::NotXml,
            text.len(),
            "the document has no element".to_owned(),
        );
    }
    if let Error::UnclosedRootNode | Error::UnexpectedEndOfStream = error {
        let why = "the document ends before its elements are closed".to_owned();
        return FaultAt::new(DefinitionFaultKind::NotXml, text.len(), why);
    }
    let position = error.pos();
    let why = error.to_string().replace(&format!(" at {position}"), "");
    let why = why.chars().take(4 * QUOTED_MAX).collect();
    FaultAt::new(
        DefinitionFaultKind::NotXml,
        offset_of(text, position.row, position.col),
        why,
    )
}

/// The offset of a line and column, both from 1.
fn offset_of(text: &str, line: u32, column: u32) -> usize {
    let before: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1) as usize)
        .map(str::len)
        .sum();
    let rest = text.get(before..).unwrap_or_default();
    let characters = rest.char_indices().map(|(at, _)| at);
    let within = characters.chain([rest.len()]);
    before
        + within
            .take(column.max(1) as usize)
            .last()
            .unwrap_or_default()
}
