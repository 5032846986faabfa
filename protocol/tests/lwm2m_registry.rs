//! Do the built tables agree with the registry's source, and is a broken source refused?

use protocol::lwm2m::model;
use protocol::lwm2m::version::Version;

#[path = "../build/registry.rs"]
mod registry;

const SOURCE: &str = include_str!("../data/oma-objects.csv");

const BROKEN_LINES: [(&str, &str); 15] = [
    ("", "1 fields"),
    (
        "7,1.0,Object,single,2,Name,R,single,optional,float",
        "10 fields",
    ),
    (
        "7,1.0,Object,single,2,Name,R,single,optional,float,,",
        "12 fields",
    ),
    (
        "65536,1.0,Object,single,2,Name,R,single,optional,float,",
        "\"65536\" is no id",
    ),
    (
        "7,1,Object,single,2,Name,R,single,optional,float,",
        "\"1\" is no version",
    ),
    (
        "7,1.0,,single,2,Name,R,single,optional,float,",
        "a name is empty",
    ),
    (
        "7,1.0,Object,many,2,Name,R,single,optional,float,",
        "neither single nor multiple",
    ),
    (
        "7,1.0,Object,single,2,Name,X,single,optional,float,",
        "are no operations",
    ),
    (
        "7,1.0,Object,single,2,Name,R,single,maybe,float,",
        "neither mandatory nor optional",
    ),
    (
        "7,1.0,Object,single,2,Name,R,single,optional,double,",
        "\"double\" is no type",
    ),
    (
        "7,1.0,Other,single,2,Name,R,single,optional,float,",
        "described differently",
    ),
    (
        "7,1.0,Object,single,1,Name,R,single,optional,float,",
        "listed twice",
    ),
    (
        "7,1.0,\"Object,single,2,Name,R,single,optional,float,",
        "a quote is not closed",
    ),
    (
        "7,1.0,Ob\"ject,single,2,Name,R,single,optional,float,",
        "inside a plain field",
    ),
    (
        "7,1.0,\"Object\"x,single,2,Name,R,single,optional,float,",
        "follows a closing quote",
    ),
];

#[test]
fn every_line_of_the_source_is_in_the_tables() {
    let objects = registry::read_objects(SOURCE).unwrap();
    assert_eq!(objects.len(), model::objects().len());
    for ((id, (major, minor)), expected) in &objects {
        let object = model::object(*id, Version::new(*major, *minor)).unwrap();
        assert_eq!((object.id(), object.name()), (*id, expected.name.as_str()));
        assert_eq!(object.version(), Version::new(*major, *minor));
        assert_eq!(format!("{:?}", object.instances()), expected.instances);
        assert_eq!(object.resources().len(), expected.resources.len());
        for expected in expected.resources.values() {
            let resource = object.resource(expected.id).unwrap();
            assert_eq!(
                (resource.id(), object.name_of(expected.id)),
                (expected.id, Some(expected.name.as_str()))
            );
            let units = object.units_of(expected.id).unwrap_or_default();
            assert_eq!(units, expected.units);
            assert_eq!(format!("{:?}", resource.operations()), expected.operations);
            assert_eq!(format!("{:?}", resource.instances()), expected.instances);
            assert_eq!(resource.is_mandatory(), expected.mandatory);
            let data_type = resource
                .data_type()
                .map(|data_type| format!("{data_type:?}"));
            assert_eq!(data_type.as_deref(), expected.data_type);
        }
    }
}

#[test]
fn quoted_fields_keep_their_commas_and_quotes() {
    let line = r#"7,1.0,"Say ""hi"", then",single,1,"a,b",RW,multiple,optional,float,"m,s""#;
    let objects = registry::read_objects(&with_header(&[line])).unwrap();
    let object = &objects[&(7, (1, 0))];
    assert_eq!(object.name, r#"Say "hi", then"#);
    let resource = &object.resources[&1];
    assert_eq!(
        (resource.name.as_str(), resource.units.as_str()),
        ("a,b", "m,s")
    );
}

#[test]
fn a_line_that_is_not_understood_is_named() {
    let good = "7,1.0,Object,single,1,Name,R,single,optional,float,";
    for (line, fault) in BROKEN_LINES {
        let found = registry::read_objects(&with_header(&[good, line]))
            .err()
            .unwrap();
        assert!(
            found.starts_with("line 3: ") && found.contains(fault),
            "{line}: {found}"
        );
    }
    assert!(registry::read_objects(good).is_err());
}

fn with_header(lines: &[&str]) -> String {
    let header = SOURCE.lines().next().expect("the source has a header");
    let lines = std::iter::once(&header)
        .chain(lines)
        .map(|line| format!("{line}\n"));
    lines.collect()
}
