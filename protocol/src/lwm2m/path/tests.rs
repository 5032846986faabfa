//! Is a path read, printed and ordered like the tree it is in?

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::{InvalidPath, Level, Path};

#[test]
fn each_level_reads_and_prints_as_itself() {
    let cases = [
        ("/3", Path::object(3), Level::Object),
        ("/3/0", Path::instance(3, 0), Level::Instance),
        (
            "/3303/0/5700",
            Path::resource(3303, 0, 5700),
            Level::Resource,
        ),
        (
            "/65535/65535/65535/65535",
            Path::resource_instance(65535, 65535, 65535, 65535),
            { Level::ResourceInstance },
        ),
    ];
    for (text, path, level) in cases {
        assert_eq!(Path::parse(text), Ok(path));
        assert_eq!(path.to_string(), text);
        assert_eq!(path.level(), level);
    }
}

#[test]
fn anything_but_the_strict_form_is_refused() {
    let cases = [
        ("", InvalidPath::NoLeadingSlash),
        ("3/0", InvalidPath::NoLeadingSlash),
        (" /3", InvalidPath::NoLeadingSlash),
        ("/", InvalidPath::InvalidSegment),
        ("//3", InvalidPath::InvalidSegment),
        ("/3/", InvalidPath::TrailingSlash),
        ("/3/0/9/", InvalidPath::TrailingSlash),
        ("/3/0/6/1/", InvalidPath::TrailingSlash),
        ("/3//0", InvalidPath::InvalidSegment),
        ("/03", InvalidPath::InvalidSegment),
        ("/00", InvalidPath::InvalidSegment),
        ("/+3", InvalidPath::InvalidSegment),
        ("/-3", InvalidPath::InvalidSegment),
        ("/3 ", InvalidPath::InvalidSegment),
        ("/3a", InvalidPath::InvalidSegment),
        ("/٣", InvalidPath::InvalidSegment),
        ("/65536", InvalidPath::InvalidSegment),
        ("/99999999999999999999", InvalidPath::InvalidSegment),
        ("/3/0/1/2/4", InvalidPath::TooDeep),
    ];
    for (text, reason) in cases {
        assert_eq!(Path::parse(text), Err(reason), "{text:?}");
    }
}

#[test]
fn segments_of_a_message_become_a_path() {
    assert_eq!(
        Path::from_segments(["3", "0", "9"]),
        Ok(Path::resource(3, 0, 9))
    );
    assert_eq!(Path::from_segments([]), Err(InvalidPath::InvalidSegment));
    assert_eq!(
        Path::from_segments(["rd", "x"]),
        Err(InvalidPath::InvalidSegment)
    );
    assert_eq!(Path::from_segments(["1"; 5]), Err(InvalidPath::TooDeep));
}

#[test]
fn getters_answer_only_what_the_path_reaches() {
    let resource = Path::resource(3, 0, 9);
    assert_eq!(resource.object_id(), 3);
    assert_eq!(resource.instance_id(), Some(0));
    assert_eq!(resource.resource_id(), Some(9));
    assert_eq!(resource.resource_instance_id(), None);
    assert_eq!(Path::object(3).instance_id(), None);
    assert!(resource.is_resource() && !resource.is_instance() && !resource.is_object());
    assert!(Path::resource_instance(3, 0, 6, 1).is_resource_instance());
    assert_eq!(resource.segments().collect::<Vec<_>>(), [3, 0, 9]);
    assert_eq!(resource.segments().len(), 3);
}

#[test]
fn a_parent_sorts_before_its_children_and_they_before_its_siblings() {
    let sorted = ["/3", "/3/0", "/3/0/0", "/3/0/0/0", "/3/0/1", "/3/1", "/4"];
    let paths: Vec<Path> = sorted.iter().map(|text| text.parse().unwrap()).collect();
    assert!(paths.is_sorted());
    assert!(paths.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn a_path_contains_itself_and_what_lies_below() {
    let instance = Path::instance(3, 0);
    for inside in ["/3/0", "/3/0/0", "/3/0/9", "/3/0/6/1"] {
        assert!(instance.contains(inside.parse().unwrap()), "{inside}");
    }
    for outside in ["/3", "/3/1", "/4/0", "/3/1/0", "/30/0/9", "/0"] {
        assert!(!instance.contains(outside.parse().unwrap()), "{outside}");
    }
}

#[test]
fn a_child_is_one_level_deeper() {
    assert_eq!(Path::object(3).child(0), Some(Path::instance(3, 0)));
    assert_eq!(Path::instance(3, 0).child(9), Some(Path::resource(3, 0, 9)));
    let deepest = Path::resource_instance(3, 0, 6, 65535);
    assert_eq!(Path::resource(3, 0, 6).child(65535), Some(deepest));
    assert_eq!(deepest.child(0), None);
}

#[test]
fn a_path_lies_in_one_resource_at_most() {
    let resource = Path::resource(3, 0, 6);
    assert_eq!(
        Path::resource_instance(3, 0, 6, 1).to_resource(),
        Some(resource)
    );
    assert_eq!(resource.to_resource(), Some(resource));
    assert_eq!(Path::instance(3, 0).to_resource(), None);
    assert_eq!(Path::object(3).to_resource(), None);
}

proptest! {
    #[test]
    fn a_path_contains_every_child(path in any_path(), id in any::<u16>()) {
        if let Some(child) = path.child(id) {
            prop_assert!(path.contains(child) && !child.contains(path));
            prop_assert!(path < child);
        }
    }

    #[test]
    fn every_path_survives_its_text(path in any_path()) {
        prop_assert_eq!(Path::parse(&path.to_string()), Ok(path));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[/0-9a-z+-]{0,24}|\\PC{0,40}") {
        if let Ok(path) = Path::parse(&text) {
            prop_assert_eq!(path.to_string(), text);
        }
    }
}

pub(crate) fn any_path() -> impl Strategy<Value = Path> {
    prop_oneof![
        any::<u16>().prop_map(Path::object),
        any::<(u16, u16)>().prop_map(|(o, i)| Path::instance(o, i)),
        any::<(u16, u16, u16)>().prop_map(|(o, i, r)| Path::resource(o, i, r)),
        any::<(u16, u16, u16, u16)>()
            .prop_map(|(o, i, r, ri)| Path::resource_instance(o, i, r, ri)),
    ]
}

/// Paths of few numbers, so that two of them are often related.
pub(crate) fn near_path() -> impl Strategy<Value = Path> {
    let number = || prop_oneof![Just(0), Just(1), Just(255), Just(256), Just(u16::MAX)];
    vec(number(), 1..=4).prop_map(|numbers| {
        let (object, below) = numbers.split_first().expect("it has one number at least");
        let deeper = |path: Path, id: &u16| path.child(*id).expect("there are four at most");
        below.iter().fold(Path::object(*object), deeper)
    })
}
