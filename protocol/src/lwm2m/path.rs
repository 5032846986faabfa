//! Which object, instance or resource is addressed? (LwM2M Core 1.1 section 7.3, "/3/0/1")

pub mod bytes;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Addresses an object, an object instance, a resource or a resource instance.
///
/// Paths are ordered like a tree: a parent before its children, siblings by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    // Segments below the level are zero: with the level last, the derived order is the tree's.
    segments: [u16; 4],
    level: Level,
}

/// The level of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// `/3`
    Object,
    /// `/3/0`
    Instance,
    /// `/3/0/1`
    Resource,
    /// `/3/0/1/2`
    ResourceInstance,
}

/// Why a text is not a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidPath {
    /// The text does not start with a slash.
    #[error("must begin with /")]
    NoLeadingSlash,
    /// The text ends with a slash after its last number.
    #[error("must not end with /")]
    TrailingSlash,
    /// A segment is not a plain decimal number from 0 to 65535.
    #[error("must consist of numbers from 0 to 65535 without leading zeros")]
    InvalidSegment,
    /// There are more than four segments.
    #[error("must have at most four numbers")]
    TooDeep,
}

impl Path {
    /// Addresses a whole object.
    pub const fn object(object: u16) -> Self {
        Self {
            segments: [object, 0, 0, 0],
            level: Level::Object,
        }
    }

    /// Addresses one instance of an object.
    pub const fn instance(object: u16, instance: u16) -> Self {
        Self {
            segments: [object, instance, 0, 0],
            level: Level::Instance,
        }
    }

    /// Addresses one resource.
    pub const fn resource(object: u16, instance: u16, resource: u16) -> Self {
        Self {
            segments: [object, instance, resource, 0],
            level: Level::Resource,
        }
    }

    /// Addresses one instance of a multiple resource.
    pub const fn resource_instance(
        object: u16,
        instance: u16,
        resource: u16,
        resource_instance: u16,
    ) -> Self {
        let segments = [object, instance, resource, resource_instance];
        Self {
            segments,
            level: Level::ResourceInstance,
        }
    }

    /// Reads the strict text form: a leading slash, one to four plain decimal numbers.
    pub fn parse(text: &str) -> Result<Self, InvalidPath> {
        let rest = text.strip_prefix('/').ok_or(InvalidPath::NoLeadingSlash)?;
        if rest.ends_with('/') {
            return Err(InvalidPath::TrailingSlash);
        }
        Self::from_segments(rest.split('/'))
    }

    /// Reads segments from the options of a message, with the rules of [`Path::parse`].
    pub fn from_segments<'a>(
        segments: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, InvalidPath> {
        let mut found = [0; 4];
        let mut level = None;
        for segment in segments {
            let deeper = next_level(level).ok_or(InvalidPath::TooDeep)?;
            found[deeper as usize] = parse_segment(segment)?;
            level = Some(deeper);
        }
        let level = level.ok_or(InvalidPath::InvalidSegment)?;
        Ok(Self {
            segments: found,
            level,
        })
    }

    /// Returns the level of the path.
    pub const fn level(&self) -> Level {
        self.level
    }

    /// Returns the object's number.
    pub const fn object_id(&self) -> u16 {
        self.segments[0]
    }

    /// Returns the object instance's number, if the path reaches that deep.
    pub fn instance_id(&self) -> Option<u16> {
        self.at(Level::Instance)
    }

    /// Returns the resource's number, if the path reaches that deep.
    pub fn resource_id(&self) -> Option<u16> {
        self.at(Level::Resource)
    }

    /// Returns the resource instance's number, if the path reaches that deep.
    pub fn resource_instance_id(&self) -> Option<u16> {
        self.at(Level::ResourceInstance)
    }

    /// Returns whether the path addresses a whole object.
    pub fn is_object(&self) -> bool {
        self.level == Level::Object
    }

    /// Returns whether the path addresses an object instance.
    pub fn is_instance(&self) -> bool {
        self.level == Level::Instance
    }

    /// Returns whether the path addresses a resource.
    pub fn is_resource(&self) -> bool {
        self.level == Level::Resource
    }

    /// Returns whether the path addresses a resource instance.
    pub fn is_resource_instance(&self) -> bool {
        self.level == Level::ResourceInstance
    }

    /// Iterates over the path's numbers, from the object down.
    pub fn segments(&self) -> impl ExactSizeIterator<Item = u16> + use<> {
        self.segments.into_iter().take(self.level as usize + 1)
    }

    /// Returns the path directly below with this number; a resource instance has none.
    pub fn child(&self, id: u16) -> Option<Self> {
        let level = next_level(Some(self.level))?;
        let mut segments = self.segments;
        segments[level as usize] = id;
        Some(Self { segments, level })
    }

    /// Returns the resource the path is or is in, if it reaches that deep.
    pub fn to_resource(&self) -> Option<Self> {
        let [object, instance, resource, _] = self.segments;
        (self.level >= Level::Resource).then_some(Self::resource(object, instance, resource))
    }

    /// Returns whether the other path is this one or is below it.
    pub fn contains(&self, other: Self) -> bool {
        self.level <= other.level
            && self
                .segments()
                .eq(other.segments().take(self.segments().len()))
    }

    fn at(&self, level: Level) -> Option<u16> {
        (self.level >= level).then_some(self.segments[level as usize])
    }
}

impl FromStr for Path {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        Self::parse(text)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.segments()
            .try_for_each(|segment| write!(f, "/{segment}"))
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn next_level(level: Option<Level>) -> Option<Level> {
    match level {
        None => Some(Level::Object),
        Some(Level::Object) => Some(Level::Instance),
        Some(Level::Instance) => Some(Level::Resource),
        Some(Level::Resource) => Some(Level::ResourceInstance),
        Some(Level::ResourceInstance) => None,
    }
}

fn parse_segment(segment: &str) -> Result<u16, InvalidPath> {
    let plain = segment.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = segment == "0" || !segment.starts_with('0');
    if !(plain && canonical) {
        return Err(InvalidPath::InvalidSegment);
    }
    segment.parse().map_err(|_| InvalidPath::InvalidSegment)
}
