//! Which resources does the plugtest server list, and which of them does a query select? RFC 6690
//! sections 4 and 4.1.

/// The links under `/.well-known/core`. The links below `/path` are listed by `/path` itself.
pub(super) const ENTRY: [Link; 20] = [
    Link("/test", &[("title", "Default test resource"), ("ct", "0")]),
    Link("/separate", &[("title", "Answers in a message of its own")]),
    Link("/seg1/seg2/seg3", &[("title", "Behind several segments")]),
    Link("/query", &[("title", "Repeats its query")]),
    Link("/location-query", &[("title", "Creates behind a query")]),
    Link("/multi-format", &[("ct", "0 41")]),
    Link("/validate", &[("title", "Has a version")]),
    Link("/create1", &[("title", "Is created once")]),
    Link("/large", &[("rt", "block"), ("sz", "1280")]),
    Link("/large-update", &[("rt", "block"), ("sz", "1280")]),
    Link("/large-create", &[("rt", "block")]),
    Link("/large-post", &[("rt", "block")]),
    Link("/obs", &[("obs", ""), ("rt", "observe"), ("ct", "0")]),
    Link("/obs-non", &[("obs", ""), ("rt", "observe"), ("ct", "0")]),
    Link("/obs-large", &[("obs", ""), ("rt", "observe block")]),
    Link("/obs-reset", &[("title", "Forgets who observes")]),
    Link("/link1", &[("rt", "Type1 Type2"), ("if", "If1")]),
    Link("/link2", &[("rt", "Type2 Type3"), ("if", "If2")]),
    Link("/link3", &[("rt", "Type1 Type3"), ("if", "foo")]),
    Link("/path", &[("title", "Has links of its own"), ("ct", "40")]),
];

/// The links below `/path`.
pub(super) const PATH: [Link; 3] = [
    Link("/path/sub1", &[("ct", "0")]),
    Link("/path/sub2", &[("ct", "0")]),
    Link("/path/sub3", &[("ct", "0")]),
];

/// A path and its attributes: names with values, an empty value for an attribute without one.
#[derive(Clone, Copy)]
pub(super) struct Link(&'static str, &'static [(&'static str, &'static str)]);

/// Writes the links that match every query.
pub(super) fn chosen<'a>(links: &[Link], queries: impl Iterator<Item = &'a str>) -> String {
    let queries: Vec<&str> = queries.collect();
    let passing = links
        .iter()
        .filter(|link| queries.iter().all(|query| link.passes(query)));
    passing.map(Link::written).collect::<Vec<_>>().join(",")
}

impl Link {
    fn passes(&self, query: &str) -> bool {
        let Some((name, wanted)) = query.split_once('=') else {
            return false;
        };
        if name == "href" {
            return is_meant(self.0, wanted);
        }
        let mut attributes = self.1.iter().filter(|(its, _)| *its == name);
        attributes.any(|(_, value)| value.split(' ').any(|word| is_meant(word, wanted)))
    }

    fn written(&self) -> String {
        let mut text = format!("<{}>", self.0);
        for (name, value) in self.1 {
            match *value {
                "" => text.push_str(&format!(";{name}")),
                number if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                    text.push_str(&format!(";{name}={number}"));
                }
                words => text.push_str(&format!(";{name}=\"{words}\"")),
            }
        }
        text
    }
}

/// Whether a value is the wanted one, or begins with it if the wanted one ends in an asterisk.
fn is_meant(value: &str, wanted: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(beginning) => value.starts_with(beginning),
        None => value == wanted,
    }
}
