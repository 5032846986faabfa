//! Which objects does a device offer, according to the links it registers? (LwM2M Core 1.1 section
//! 6.2.1, RFC 6690)
//!
//! Links that are no objects of the device are skipped, as are unknown attributes; a list with a
//! syntax error is refused as a whole.

pub mod discovery;
mod grammar;
#[cfg(test)]
mod tests;

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

/// Bounds the alternate root in bytes; each of its segments is sent with every request.
pub const ROOT_BYTES_MAX: usize = 64;

const ROOT_TYPE: &str = "oma.lwm2m";

/// The objects a device offers, in canonical order: devices with the same offer are equal.
///
/// A fleet may have as many lists as devices, so a list takes a few allocations, however many
/// objects it has.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectLinks {
    root: Box<str>,
    objects: Box<[Listed]>,
    /// The instances of all objects, object by object.
    instances: Box<[u16]>,
    content_formats: Box<[u16]>,
}

/// One object a device offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferedObject<'a> {
    /// The object's number.
    pub id: u16,
    /// The version, if the device stated one.
    pub version: Option<Version>,
    /// The numbers of its instances, ascending; none for an object without instance.
    pub instances: &'a [u16],
}

/// One object of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Listed {
    id: u16,
    version: Option<Version>,
    /// Where its instances end, and those of the next object begin.
    instances_end: u16,
}

/// The version and the instances of each object while a list is read.
type Found = BTreeMap<u16, (Option<Version>, BTreeSet<u16>)>;

/// Why a payload is no list of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MalformedLinks {
    /// The bytes are not UTF-8 text.
    #[error("the object links are not UTF-8 text")]
    NotText,
    /// The text is not in the CoRE link format.
    #[error("the object links are not in the CoRE link format")]
    Syntax,
    /// A link's path starts like an object's but is not a valid one.
    #[error("the path of an object link {0}")]
    Path(InvalidPath),
    /// A version is not written as major.minor.
    #[error("an object's version is not written major.minor")]
    Version,
    /// The alternate root is too long or has other characters than plain path characters.
    #[error("the alternate root is not a plain path of at most {ROOT_BYTES_MAX} bytes")]
    Root,
    /// There are more links or formats than allowed.
    #[error("more than {LINKS_MAX} links or {CONTENT_FORMATS_MAX} formats")]
    TooMany,
}

impl ObjectLinks {
    /// Reads the payload of a Register or Update; an empty one is an empty list.
    pub fn decode(payload: &[u8]) -> Result<Self, MalformedLinks> {
        let text = std::str::from_utf8(payload).map_err(|_| MalformedLinks::NotText)?;
        let links = grammar::read(text)?;
        let root = find_root(&links)?;
        let formats = collect_formats(&links, &root)?;
        let read = Self::pack(collect_objects(&links, &root)?, root, formats)?;
        // Every accepted list can be written and read again: the canonical form has the same bound.
        if read.canonical_links() > LINKS_MAX {
            return Err(MalformedLinks::TooMany);
        }
        Ok(read)
    }

    /// Writes the list in its canonical form, which [`ObjectLinks::decode`] reads back.
    pub fn encode(&self) -> String {
        let mut links = Vec::with_capacity(self.canonical_links());
        links.extend(self.encode_root());
        for object in self.objects() {
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

    /// Returns the path of the objects: empty, or like `/lwm2m`.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Returns the objects, by number.
    pub fn objects(&self) -> impl Iterator<Item = OfferedObject<'_>> {
        (0..self.objects.len()).filter_map(|place| self.object_at(place))
    }

    /// Returns the Content-Formats the device announces, ascending; none if it announces none.
    pub fn content_formats(&self) -> &[u16] {
        &self.content_formats
    }

    /// Returns one object.
    pub fn object(&self, id: u16) -> Option<OfferedObject<'_>> {
        let place = self.objects.binary_search_by_key(&id, |object| object.id);
        self.object_at(place.ok()?)
    }

    /// Returns the version of an object, if the device stated one.
    pub fn version_of(&self, object: u16) -> Option<Version> {
        self.object(object)?.version
    }

    /// Returns whether the object or the object instance of a path is offered; resources are not
    /// listed, so nothing is known about them.
    pub fn offers(&self, path: Path) -> bool {
        self.object(path.object_id())
            .is_some_and(|object| match path.instance_id() {
                Some(instance) => object.instances.binary_search(&instance).is_ok(),
                None => true,
            })
    }

    fn pack(found: Found, root: Box<str>, formats: Box<[u16]>) -> Result<Self, MalformedLinks> {
        let mut objects = Vec::with_capacity(found.len());
        let mut all_instances = Vec::new();
        for (id, (version, instances)) in found {
            all_instances.extend(instances);
            objects.push(Listed {
                id,
                version,
                instances_end: u16::try_from(all_instances.len())
                    .map_err(|_| MalformedLinks::TooMany)?,
            });
        }
        Ok(Self {
            root,
            objects: objects.into(),
            instances: all_instances.into(),
            content_formats: formats,
        })
    }

    fn object_at(&self, place: usize) -> Option<OfferedObject<'_>> {
        let listed = self.objects.get(place)?;
        let before = place.checked_sub(1).and_then(|it| self.objects.get(it));
        let start = before.map_or(0, |before| before.instances_end);
        let instances = usize::from(start)..usize::from(listed.instances_end);
        Some(OfferedObject {
            id: listed.id,
            version: listed.version,
            instances: self.instances.get(instances)?,
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
        let of = |object: OfferedObject<'_>| {
            let own = object.version.is_some() || object.instances.is_empty();
            usize::from(own) + object.instances.len()
        };
        root + self.objects().map(of).sum::<usize>()
    }
}

/// Finds the link that is marked as the root of LwM2M; without one the objects are at the top. An
/// object's own link is never the root, whatever its attributes are.
fn find_root(links: &[Link<'_>]) -> Result<Box<str>, MalformedLinks> {
    let is_root = |link: &&Link<'_>| {
        link.target.starts_with('/')
            && !starts_numbered(link.target)
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
        Err(MalformedLinks::Root)
    }
}

fn collect_objects(links: &[Link<'_>], root: &str) -> Result<Found, MalformedLinks> {
    let mut found = Found::new();
    for link in links {
        let Some(path) = object_path(link.target, root)? else {
            continue;
        };
        let stated = link.values_of("ver").next().map(Version::parse).transpose();
        let stated = stated.map_err(|_| MalformedLinks::Version)?;
        let (version, instances) = found.entry(path.object_id()).or_default();
        // Of contradicting versions the first counts: a device offers one version at a time.
        *version = version.or(stated);
        instances.extend(path.instance_id());
    }
    Ok(found)
}

/// Reads a link's path below the root, if it is that of an object or an instance.
fn object_path(target: &str, root: &str) -> Result<Option<Path>, MalformedLinks> {
    let Some(below) = target.strip_prefix(root) else {
        return Ok(None);
    };
    if !starts_numbered(below) {
        return Ok(None);
    }
    let path = Path::parse(below).map_err(MalformedLinks::Path)?;
    match path.level() {
        Level::Object | Level::Instance => Ok(Some(path)),
        Level::Resource | Level::ResourceInstance => Ok(None),
    }
}

fn starts_numbered(target: &str) -> bool {
    let mut bytes = target.bytes();
    bytes.next() == Some(b'/') && bytes.next().is_some_and(|byte| byte.is_ascii_digit())
}

/// Collects the formats that the root's link announces. A number out of range is skipped: the
/// announcement is a hint, and no reason to refuse a device.
fn collect_formats(links: &[Link<'_>], root: &str) -> Result<Box<[u16]>, MalformedLinks> {
    let at_root = |link: &&Link<'_>| link.target.strip_suffix('/').unwrap_or(link.target) == root;
    let formats: BTreeSet<u16> = links
        .iter()
        .filter(at_root)
        .flat_map(|link| link.values_of("ct"))
        .flat_map(|formats| formats.split(' '))
        .filter_map(|format| format.parse().ok())
        .collect();
    if formats.len() > CONTENT_FORMATS_MAX {
        return Err(MalformedLinks::TooMany);
    }
    Ok(formats.into_iter().collect())
}
