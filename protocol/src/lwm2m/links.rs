//! What does a device offer, according to the links it registers? (LwM2M Core 1.1 section 6.2.1,
//! RFC 6690)
//!
//! Links that are no objects of the device are well-formed noise and skipped, as are unknown
//! attributes; a list that breaks the syntax is refused as a whole.

mod grammar;

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use self::grammar::Link;
use super::path::{InvalidPath, Level, Path};
use super::version::Version;

/// Bounds the links of one list: far above any real device, low enough that a million lists fit
/// a machine. A longer list is refused.
pub const LINKS_MAX: usize = 1024;

/// Bounds the Content-Formats a device announces; the registry of LwM2M formats has a dozen. A
/// longer list is refused.
pub const CONTENT_FORMATS_MAX: usize = 32;

/// Bounds the alternate root in bytes; each of its segments travels with every request.
pub const ROOT_BYTES_MAX: usize = 64;

const ROOT_TYPE: &str = "oma.lwm2m";

/// Lists what a device offers, in canonical order: devices that offer the same are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectLinks {
    root: Box<str>,
    objects: Box<[OfferedObject]>,
    content_formats: Box<[u16]>,
}

/// One object a device offers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferedObject {
    /// The object's number.
    pub id: u16,
    /// The version the device stated, if it did.
    pub version: Option<Version>,
    /// The numbers of its instances, ascending; none for an object without instance.
    pub instances: Box<[u16]>,
}

/// Tells why a payload is no list of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// The bytes are not UTF-8 text.
    #[error("the object links are not UTF-8 text")]
    NotText,
    /// The text is not in the CoRE link format.
    #[error("the object links are not in the CoRE link format")]
    Syntax,
    /// A link's path starts like an object's and is none.
    #[error("an object link is not a path: {0}")]
    Path(InvalidPath),
    /// A version is not written as major.minor.
    #[error("an object's version is not written major.minor")]
    Version,
    /// The alternate root is longer than allowed or not made of plain path characters.
    #[error("the alternate root is not a plain path of at most {ROOT_BYTES_MAX} bytes")]
    Root,
    /// There are more links or formats than allowed.
    #[error("more than {LINKS_MAX} links or {CONTENT_FORMATS_MAX} formats")]
    TooMany,
}

impl ObjectLinks {
    /// Reads the payload of a Register or Update; an empty one lists nothing.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(payload).map_err(|_| Malformed::NotText)?;
        let links = grammar::read(text)?;
        let root = find_root(&links)?;
        let read = Self {
            objects: collect_objects(&links, &root)?,
            content_formats: collect_formats(&links, &root)?,
            root,
        };
        // What is accepted can be written and read again: the canonical form keeps the bound too.
        if read.canonical_links() > LINKS_MAX {
            return Err(Malformed::TooMany);
        }
        Ok(read)
    }

    /// Writes the list in its canonical form, which [`ObjectLinks::decode`] reads back.
    pub fn encode(&self) -> String {
        let mut links = Vec::with_capacity(self.canonical_links());
        links.extend(self.encode_root());
        for object in &self.objects {
            let path = format!("{}/{}", self.root, object.id);
            match object.version {
                Some(version) => links.push(format!("<{path}>;ver={version}")),
                None if object.instances.is_empty() => links.push(format!("<{path}>")),
                None => {}
            }
            let instances = object.instances.iter();
            links.extend(instances.map(|instance| format!("<{path}/{instance}>")));
        }
        links.join(",")
    }

    /// Returns the path under which the objects are found: empty, or like `/lwm2m`.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Returns the objects, by number.
    pub fn objects(&self) -> &[OfferedObject] {
        &self.objects
    }

    /// Returns the Content-Formats the device announces, ascending; none if it announces none.
    pub fn content_formats(&self) -> &[u16] {
        &self.content_formats
    }

    /// Returns one object.
    pub fn object(&self, id: u16) -> Option<&OfferedObject> {
        let at = self
            .objects
            .binary_search_by_key(&id, |object| object.id)
            .ok()?;
        self.objects.get(at)
    }

    /// Returns the version the device stated for an object, if it did.
    pub fn version_of(&self, object: u16) -> Option<Version> {
        self.object(object)?.version
    }

    /// Tells whether the object or the instance a path lies in is offered; what lies deeper is
    /// not listed and cannot be told.
    pub fn offers(&self, path: Path) -> bool {
        self.object(path.object_id())
            .is_some_and(|object| match path.instance_id() {
                Some(instance) => object.instances.binary_search(&instance).is_ok(),
                None => true,
            })
    }

    fn encode_root(&self) -> Option<String> {
        let formats: Vec<String> = self.content_formats.iter().map(u16::to_string).collect();
        let formats = match formats.as_slice() {
            [] if self.root.is_empty() => return None,
            [] => String::new(),
            [one] => format!(";ct={one}"),
            many => format!(";ct=\"{}\"", many.join(" ")),
        };
        let path = if self.root.is_empty() {
            "/"
        } else {
            &self.root
        };
        Some(format!("<{path}>;rt=\"{ROOT_TYPE}\"{formats}"))
    }

    fn canonical_links(&self) -> usize {
        let root = usize::from(!(self.root.is_empty() && self.content_formats.is_empty()));
        let of = |object: &OfferedObject| {
            let own = object.version.is_some() || object.instances.is_empty();
            usize::from(own) + object.instances.len()
        };
        root + self.objects.iter().map(of).sum::<usize>()
    }
}

/// Finds the link that says it is the root of LwM2M; without one it is the server's own root.
fn find_root(links: &[Link<'_>]) -> Result<Box<str>, Malformed> {
    let is_root = |link: &&Link<'_>| {
        link.target.starts_with('/')
            && link
                .values_of("rt")
                .any(|types| types.split(' ').any(|name| name == ROOT_TYPE))
    };
    let root = links.iter().find(is_root).map_or("", |link| link.target);
    let root = root.strip_suffix('/').unwrap_or(root);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let mut segments = root.split('/').skip(1);
    if root.len() <= ROOT_BYTES_MAX && segments.all(|s| !s.is_empty() && s.bytes().all(plain)) {
        Ok(root.into())
    } else {
        Err(Malformed::Root)
    }
}

fn collect_objects(links: &[Link<'_>], root: &str) -> Result<Box<[OfferedObject]>, Malformed> {
    let mut found: BTreeMap<u16, (Option<Version>, BTreeSet<u16>)> = BTreeMap::new();
    for link in links {
        let Some(path) = object_path(link.target, root)? else {
            continue;
        };
        let stated = link.values_of("ver").next().map(Version::parse).transpose();
        let stated = stated.map_err(|_| Malformed::Version)?;
        let (version, instances) = found.entry(path.object_id()).or_default();
        // Of contradicting versions the first counts: a device offers one version at a time.
        *version = version.or(stated);
        instances.extend(path.instance_id());
    }
    let offered =
        |(id, (version, instances)): (u16, (Option<Version>, BTreeSet<u16>))| OfferedObject {
            id,
            version,
            instances: instances.into_iter().collect(),
        };
    Ok(found.into_iter().map(offered).collect())
}

/// Reads a link's path below the root, if it is that of an object or an instance.
fn object_path(target: &str, root: &str) -> Result<Option<Path>, Malformed> {
    let Some(below) = target.strip_prefix(root) else {
        return Ok(None);
    };
    let mut bytes = below.bytes();
    let numbered = bytes.next() == Some(b'/') && bytes.next().is_some_and(|b| b.is_ascii_digit());
    if !numbered {
        return Ok(None);
    }
    let path = Path::parse(below).map_err(Malformed::Path)?;
    match path.level() {
        Level::Object | Level::Instance => Ok(Some(path)),
        Level::Resource | Level::ResourceInstance => Ok(None),
    }
}

/// Collects the formats the root's link announces. A number out of range is skipped: the
/// announcement is a hint, and no reason to turn a device away.
fn collect_formats(links: &[Link<'_>], root: &str) -> Result<Box<[u16]>, Malformed> {
    let at_root = |link: &&Link<'_>| link.target.strip_suffix('/').unwrap_or(link.target) == root;
    let formats: BTreeSet<u16> = links
        .iter()
        .filter(at_root)
        .flat_map(|link| link.values_of("ct"))
        .flat_map(|formats| formats.split(' '))
        .filter_map(|format| format.parse().ok())
        .collect();
    if formats.len() > CONTENT_FORMATS_MAX {
        return Err(Malformed::TooMany);
    }
    Ok(formats.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::collection::{btree_map, btree_set, vec};
    use proptest::option;
    use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};
    use proptest::sample::select;

    use super::{LINKS_MAX, Malformed, ObjectLinks, OfferedObject};
    use crate::lwm2m::path::{InvalidPath, Path};
    use crate::lwm2m::version::Version;

    #[test]
    fn objects_are_read_whatever_their_spelling() {
        let cases = [
            ("", ""),
            (" \r\n", ""),
            ("</3/0>", "</3/0>"),
            (
                "</1/0>,</2>,</3/0>;ver=1.1",
                "</1/0>,</2>,</3>;ver=1.1,</3/0>",
            ),
            (r#"</10>;ver="1.1",</10/0>"#, "</10>;ver=1.1,</10/0>"),
            ("</3>,</3/1>,</3/0>,</3/1>,</1>", "</1>,</3/0>,</3/1>"),
            ("</3>;ver=1.2,</3>;ver=1.0", "</3>;ver=1.2"),
            ("</3/0>;ver=1.0,</3>;ver=1.2", "</3>;ver=1.0,</3/0>"),
            (
                "</3/0>;x;y=1;z=\"a,b;c\\\"d\";ver=1.1",
                "</3>;ver=1.1,</3/0>",
            ),
            (
                "</1/0> ,\r\n </3/0> ; ver = 1.1",
                "</1/0>,</3>;ver=1.1,</3/0>",
            ),
            (
                "</.well-known/core>,</sensors/1>,<coap://x/3>,<>,</>,</1/0>",
                "</1/0>",
            ),
            ("</3/0/9>,</3/0/6/1>,</1/0>", "</1/0>"),
            ("</65535/65535>", "</65535/65535>"),
        ];
        for (text, canonical) in cases {
            let links = ObjectLinks::decode(text.as_bytes()).unwrap();
            assert_eq!(links.encode(), canonical, "{text:?}");
        }
    }

    #[test]
    fn the_root_announces_formats() {
        let cases = [
            (r#"</>;rt="oma.lwm2m";ct=110,</3/0>"#, &[110][..]),
            (r#"</>;ct="60 110 112",</3/0>"#, &[60, 110, 112]),
            (r#"</3/0>,</>;rt="oma.lwm2m";ct="112 60  60""#, &[60, 112]),
            (r#"</>;rt="oma.lwm2m";ct="110 what 70000""#, &[110]),
            (r#"</>;rt="oma.lwm2m",</3/0>;ct=60"#, &[]),
        ];
        for (text, formats) in cases {
            let links = ObjectLinks::decode(text.as_bytes()).unwrap();
            assert_eq!(links.content_formats(), formats, "{text:?}");
            assert_eq!(links.root(), "");
        }
    }

    #[test]
    fn objects_below_an_alternate_root_are_found_and_others_are_none() {
        let text = r#"</3/0>,</lwm2m>;rt="x oma.lwm2m y";ct=110,</lwm2m/1/0>,</lwm2mx/4/0>"#;
        let links = ObjectLinks::decode(text.as_bytes()).unwrap();
        assert_eq!(links.root(), "/lwm2m");
        assert_eq!(links.content_formats(), [110]);
        assert_eq!(
            links.encode(),
            r#"</lwm2m>;rt="oma.lwm2m";ct=110,</lwm2m/1/0>"#
        );
        let slash = ObjectLinks::decode(br#"</a/b/>;rt=oma.lwm2m,</a/b/1>;ver=1.0"#).unwrap();
        assert_eq!(slash.encode(), r#"</a/b>;rt="oma.lwm2m",</a/b/1>;ver=1.0"#);
    }

    #[test]
    fn a_list_that_breaks_the_syntax_is_malformed() {
        let syntax = [
            "x",
            "</3/0",
            "/3/0",
            "</3/0>,",
            ",</3/0>",
            "</3/0></4/0>",
            "</3/0>;",
            "</3/0>;=1",
            "</3/0>;ver=\"1.1",
            "</3/0>;ver=\"1.1\"x",
            "</3/0>;ver=\"1.1\\\"",
            "</3/0>;a=b c",
            "</3 /0>",
            "</3<0>",
            "</3/0>;<",
        ];
        for text in syntax {
            assert_eq!(
                ObjectLinks::decode(text.as_bytes()),
                Err(Malformed::Syntax),
                "{text:?}"
            );
        }
        let long_root = format!("</{}>;rt=\"oma.lwm2m\"", "r".repeat(64));
        let others = [
            ("</3>;ver=1", Malformed::Version),
            ("</3>;ver", Malformed::Version),
            ("</65536/0>", Malformed::Path(InvalidPath::InvalidSegment)),
            ("</3/00>", Malformed::Path(InvalidPath::InvalidSegment)),
            ("</3/0/1/2/3>", Malformed::Path(InvalidPath::TooDeep)),
            ("<//>;rt=\"oma.lwm2m\"", Malformed::Root),
            ("</a%20b>;rt=\"oma.lwm2m\"", Malformed::Root),
            (long_root.as_str(), Malformed::Root),
        ];
        for (text, reason) in others {
            assert_eq!(
                ObjectLinks::decode(text.as_bytes()),
                Err(reason),
                "{text:?}"
            );
        }
        assert_eq!(
            ObjectLinks::decode(b"</3/0>;n=\"\xff\""),
            Err(Malformed::NotText)
        );
    }

    #[test]
    fn a_list_at_the_bound_is_read_and_one_above_it_refused() {
        let list = |links: usize| {
            let links: Vec<String> = (0..links).map(|id| format!("</{id}/0>")).collect();
            ObjectLinks::decode(links.join(",").as_bytes())
        };
        assert_eq!(list(LINKS_MAX).unwrap().objects().len(), LINKS_MAX);
        assert_eq!(list(LINKS_MAX + 1), Err(Malformed::TooMany));
        let versions: Vec<String> = (0..LINKS_MAX)
            .map(|id| format!("</{id}/0>;ver=1.0"))
            .collect();
        let versions = ObjectLinks::decode(versions.join(",").as_bytes());
        assert_eq!(versions, Err(Malformed::TooMany));
        let formats: Vec<String> = (0..33).map(|format: u16| format.to_string()).collect();
        let formats = format!("</>;ct=\"{}\"", formats.join(" "));
        assert_eq!(
            ObjectLinks::decode(formats.as_bytes()),
            Err(Malformed::TooMany)
        );
    }

    #[test]
    fn what_is_offered_can_be_asked() {
        let links = ObjectLinks::decode(b"</1/0>,</2>,</3>;ver=1.1,</3/0>").unwrap();
        assert_eq!(links.version_of(3), Some(Version::new(1, 1)));
        assert_eq!(links.version_of(1), None);
        assert_eq!(links.version_of(9), None);
        let offered = [
            Path::object(2),
            Path::instance(1, 0),
            Path::resource(3, 0, 9),
        ];
        assert!(offered.into_iter().all(|path| links.offers(path)));
        let lacking = [
            Path::object(9),
            Path::instance(2, 0),
            Path::resource(3, 1, 9),
        ];
        assert!(!lacking.into_iter().any(|path| links.offers(path)));
        assert_eq!(*links.object(2).unwrap().instances, []);
    }

    proptest! {
        #[test]
        fn every_list_survives_its_text(links in any_links()) {
            prop_assert_eq!(ObjectLinks::decode(links.encode().as_bytes()), Ok(links));
        }

        #[test]
        fn any_bytes_are_read_or_malformed(bytes in vec(any::<u8>(), 0..200)) {
            let _ = ObjectLinks::decode(&bytes);
        }

        #[test]
        fn whatever_is_accepted_can_be_written_and_read_again(text in near_links()) {
            if let Ok(links) = ObjectLinks::decode(text.as_bytes()) {
                prop_assert_eq!(ObjectLinks::decode(links.encode().as_bytes()), Ok(links));
            }
        }
    }

    fn any_links() -> impl Strategy<Value = ObjectLinks> {
        let version = option::of(any::<(u8, u8)>().prop_map(|(a, b)| Version::new(a, b)));
        let object = (version, btree_set(any::<u16>(), 0..8));
        let root = select(vec!["", "/lwm2m", "/a/b-c", "/3"]);
        let objects = btree_map(any::<u16>(), object, 0..40);
        (root, objects, btree_set(any::<u16>(), 0..8)).prop_map(|(root, objects, formats)| {
            ObjectLinks {
                root: root.into(),
                objects: offered(objects),
                content_formats: formats.into_iter().collect(),
            }
        })
    }

    fn offered(objects: BTreeMap<u16, (Option<Version>, BTreeSet<u16>)>) -> Box<[OfferedObject]> {
        let objects = objects
            .into_iter()
            .map(|(id, (version, instances))| OfferedObject {
                id,
                version,
                instances: instances.into_iter().collect(),
            });
        objects.collect()
    }

    /// Text close enough to a list of links to get past the first check.
    fn near_links() -> impl Strategy<Value = String> {
        let pieces = [
            "<",
            ">",
            "</>",
            "</3>",
            "</3/0>",
            "</9/65535>",
            "</x>",
            ",",
            ";",
            "ver=",
            "1.1",
            "=",
            "\"",
            "\\",
            "rt=oma.lwm2m",
            "rt=\"oma.lwm2m\"",
            "ct=",
            "\"60 110\"",
            "/",
            " ",
            "é",
        ];
        vec(select(pieces.to_vec()), 0..16).prop_map(|pieces| pieces.concat())
    }
}
