//! Is every list of links read, refused or bounded as specified?

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};
use proptest::sample::select;

use super::{LINKS_MAX, MalformedLinks, ObjectLinks, OfferedObject};
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
        (r#"</3/0>;rt="oma.lwm2m",</4/0>"#, "</3/0>,</4/0>"),
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
            Err(MalformedLinks::Syntax),
            "{text:?}"
        );
    }
    let long_root = format!("</{}>;rt=\"oma.lwm2m\"", "r".repeat(64));
    let others = [
        ("</3>;ver=1", MalformedLinks::Version),
        ("</3>;ver", MalformedLinks::Version),
        (
            "</65536/0>",
            MalformedLinks::Path(InvalidPath::InvalidSegment),
        ),
        ("</3/00>", MalformedLinks::Path(InvalidPath::InvalidSegment)),
        ("</3/0/1/2/3>", MalformedLinks::Path(InvalidPath::TooDeep)),
        ("<//>;rt=\"oma.lwm2m\"", MalformedLinks::Root),
        ("</a%20b>;rt=\"oma.lwm2m\"", MalformedLinks::Root),
        (long_root.as_str(), MalformedLinks::Root),
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
        Err(MalformedLinks::NotText)
    );
}

#[test]
fn a_list_at_the_bound_is_read_and_one_above_it_refused() {
    let list = |links: usize| {
        let links: Vec<String> = (0..links).map(|id| format!("</{id}/0>")).collect();
        ObjectLinks::decode(links.join(",").as_bytes())
    };
    assert_eq!(list(LINKS_MAX).unwrap().objects().count(), LINKS_MAX);
    assert_eq!(list(LINKS_MAX + 1), Err(MalformedLinks::TooMany));
    let versions: Vec<String> = (0..LINKS_MAX)
        .map(|id| format!("</{id}/0>;ver=1.0"))
        .collect();
    let versions = ObjectLinks::decode(versions.join(",").as_bytes());
    assert_eq!(versions, Err(MalformedLinks::TooMany));
    let formats: Vec<String> = (0..33).map(|format: u16| format.to_string()).collect();
    let formats = format!("</>;ct=\"{}\"", formats.join(" "));
    assert_eq!(
        ObjectLinks::decode(formats.as_bytes()),
        Err(MalformedLinks::TooMany)
    );
}

#[test]
fn offered_objects_and_instances_can_be_queried() {
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
    assert!(links.object(2).unwrap().instances.is_empty());
}

#[test]
fn each_object_has_its_own_instances() {
    let links = ObjectLinks::decode(b"</3/0>,</1/1>,</1/0>,</2>,</4/7>;ver=1.1").unwrap();
    let offered = |id, version, instances| OfferedObject {
        id,
        version,
        instances,
    };
    let expected = [
        offered(1, None, &[0, 1][..]),
        offered(2, None, &[]),
        offered(3, None, &[0]),
        offered(4, Some(Version::new(1, 1)), &[7]),
    ];
    assert!(links.objects().eq(expected));
    assert!(
        expected
            .into_iter()
            .all(|it| links.object(it.id) == Some(it))
    );
    assert_eq!(links.object(5), None);
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
    let root = select(vec!["", "/lwm2m", "/a/b-c", "/r.1~_/2"]);
    let objects = btree_map(any::<u16>(), object, 0..40);
    (root, objects, btree_set(any::<u16>(), 0..8)).prop_map(|(root, objects, formats)| {
        let formats = formats.into_iter().collect();
        ObjectLinks::pack(objects, root.into(), formats).unwrap()
    })
}

/// Text that resembles a list of links closely enough to pass the first checks.
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
