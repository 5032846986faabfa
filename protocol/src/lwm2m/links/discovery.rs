//! Which instances, resources and attributes does a device list in the answer to a Discover?
//! (LwM2M Core 1.2 section 6.3.2, RFC 6690)

use crate::lwm2m::path::Path;

use super::{MalformedLinks, grammar, starts_numbered};

/// A path that a device lists, with its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveredLink {
    /// The object, instance, resource or resource instance.
    pub path: Path,
    /// The attributes in the order of the list, each a name and its value without quotes; a value
    /// that is missing is empty.
    pub attributes: Box<[(Box<str>, Box<str>)]>,
}

/// Reads the links at and below a path; the objects of the device are below a root. Links of
/// anything else are skipped.
pub fn decode(
    root: &str,
    path: Path,
    payload: &[u8],
) -> Result<Vec<DiscoveredLink>, MalformedLinks> {
    let mut links = decode_below(root, payload)?;
    links.retain(|link| path.contains(link.path));
    Ok(links)
}

/// Reads the links that [`encode`] writes.
pub fn decode_all(payload: &[u8]) -> Result<Vec<DiscoveredLink>, MalformedLinks> {
    decode_below("", payload)
}

fn decode_below(root: &str, payload: &[u8]) -> Result<Vec<DiscoveredLink>, MalformedLinks> {
    let text = std::str::from_utf8(payload).map_err(|_| MalformedLinks::NotText)?;
    let mut found = Vec::new();
    for link in grammar::read(text)? {
        // Some devices leave out the root, which the path of the request has.
        let below = link.target.strip_prefix(root).unwrap_or(link.target);
        if !starts_numbered(below) {
            continue;
        }
        let at = Path::parse(below).map_err(MalformedLinks::Path)?;
        let attributes = link.attributes();
        let attributes = attributes.map(|(name, value)| (name.into(), value.into()));
        found.push(DiscoveredLink {
            path: at,
            attributes: attributes.collect(),
        });
    }
    Ok(found)
}

/// Writes links in the CoRE link format, as [`decode_all`] reads them.
pub fn encode(links: &[DiscoveredLink]) -> String {
    let link = |link: &DiscoveredLink| {
        let attributes = link
            .attributes
            .iter()
            .map(|(name, value)| match value.is_empty() {
                true => format!(";{name}"),
                false => format!(";{name}=\"{value}\""),
            });
        format!("<{}>{}", link.path, attributes.collect::<String>())
    };
    links.iter().map(link).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn links_at_and_below_a_path_are_read_with_their_attributes() {
        let payload =
            br#"</3/0>;pmin=10;ver="1.1",</3/0/6>;dim=2, </3/0/6/1>;con,</>;ct=40,</30/0>"#;
        let read = decode("", Path::object(3), payload).unwrap();
        let shown: Vec<String> = read
            .iter()
            .map(|it| encode(std::slice::from_ref(it)))
            .collect();
        let expected = [
            r#"</3/0>;pmin="10";ver="1.1""#,
            r#"</3/0/6>;dim="2""#,
            "</3/0/6/1>;con",
        ];
        assert_eq!(shown, expected);
        assert_eq!(
            decode("", Path::object(3), encode(&read).as_bytes()),
            Ok(read)
        );
    }

    #[test]
    fn the_root_of_the_objects_is_left_out() {
        let read = decode("/lwm2m", Path::instance(3, 0), b"</lwm2m/3/0>,</3/0/1>").unwrap();
        assert_eq!(encode(&read), "</3/0>,</3/0/1>");
    }

    #[test]
    fn a_list_that_is_none_is_refused() {
        let payloads = [
            &b"\xff"[..],
            b"3/0",
            b"</3/0",
            b"</3/x>",
            b"</3/0/1/2/3>",
            b"</3/0>;x=a\\",
        ];
        for payload in payloads {
            assert!(decode("", Path::object(3), payload).is_err(), "{payload:?}");
        }
        assert_eq!(decode("", Path::object(3), b""), Ok(vec![]));
    }

    proptest! {
        /// Results are stored in this form: one that cannot be read again would be lost.
        #[test]
        fn whatever_is_listed_can_be_written_and_read_again(
            text in r#"</3/0>(;[a-z]{1,2}(=("([^"\\\\]|\\\\.){0,3}"|[a-z\\\\=/?'*]{0,3}))?){0,3}"#
        ) {
            if let Ok(read) = decode("", Path::object(3), text.as_bytes()) {
                prop_assert_eq!(decode_all(encode(&read).as_bytes()), Ok(read));
            }
        }
    }
}
