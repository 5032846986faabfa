//! Are definitions of objects read correctly, and are their faults reported to the author? The
//! files are written like those of the OMA registry.

use proptest::prelude::{any, prop_assert, proptest};
use proptest::sample::Index;

use protocol::lwm2m::model::definition::{
    BYTES_MAX, Definition, DefinitionFault, DefinitionFaultKind, RESOURCES_MAX, parse,
};
use protocol::lwm2m::model::{self, Instances, Operations};
use protocol::lwm2m::value::DataType;
use protocol::lwm2m::version::Version;

const TEMPERATURE: &str = include_str!("definitions/temperature.xml");
const HEAT_METER: &str = include_str!("definitions/heat_meter.xml");
const DOOR_LOCK: &str = include_str!("definitions/door_lock.xml");

/// One replacement in the door lock, and the one fault it causes: its kind, element, line and
/// column, and part of its text.
type Faulty = (
    &'static str,
    &'static str,
    DefinitionFaultKind,
    &'static str,
    (u32, u32),
    &'static str,
);

const FAULTY: &[Faulty] = &[
    (
        "<ObjectID>32770</ObjectID>",
        "",
        DefinitionFaultKind::Missing,
        "Object",
        (2, 3),
        "the element ObjectID is missing",
    ),
    (
        "<ObjectID>32770",
        "<ObjectID>65536",
        DefinitionFaultKind::Invalid,
        "Object/ObjectID",
        (5, 5),
        "ObjectID must be a whole number from 0 to 65535, not \"65536\"",
    ),
    (
        "<ObjectID>32770",
        "<ObjectID>+7",
        DefinitionFaultKind::Invalid,
        "Object/ObjectID",
        (5, 5),
        "must be a whole number",
    ),
    (
        "<ObjectVersion>2.3",
        "<ObjectVersion>2",
        DefinitionFaultKind::Invalid,
        "Object/ObjectVersion",
        (8, 5),
        "ObjectVersion must be a version, such as 1.0, not \"2\"",
    ),
    (
        "<Name>Türschloß",
        "<Name>   ",
        DefinitionFaultKind::Invalid,
        "Object/Name",
        (3, 5),
        "Name must be a name, not \"\"",
    ),
    (
        "<MultipleInstances>Multiple</MultipleInstances>\n    <Mandatory>",
        "<MultipleInstances>many</MultipleInstances>\n    <Mandatory>",
        DefinitionFaultKind::Invalid,
        "Object/MultipleInstances",
        (9, 5),
        "must be Single or Multiple, not \"many\"",
    ),
    (
        "<Description2/>",
        "<Colour>red</Colour>",
        DefinitionFaultKind::Unknown,
        "Object",
        (133, 5),
        "the element \"Colour\" is not allowed here",
    ),
    (
        "<Description2/>",
        "<Name>Again</Name>",
        DefinitionFaultKind::Repeated,
        "Object/Name",
        (133, 5),
        "given only once",
    ),
    (
        "<Item ID=\"10\">",
        "<Item>",
        DefinitionFaultKind::Missing,
        "Item",
        (22, 7),
        "the attribute ID is missing",
    ),
    (
        "<Item ID=\"10\">",
        "<Item ID=\"ten\">",
        DefinitionFaultKind::Invalid,
        "Item",
        (22, 7),
        "the attribute ID must be a whole number",
    ),
    (
        "<Item ID=\"10\">",
        "<Item ID=\"0\">",
        DefinitionFaultKind::Repeated,
        "Item",
        (22, 7),
        "another resource has the ID 0",
    ),
    (
        "<Operations>W</Operations>",
        "<Operations>RWE</Operations>",
        DefinitionFaultKind::Invalid,
        "Item[40]/Operations",
        (54, 9),
        "Operations must be R, W, RW, E or empty, not \"RWE\"",
    ),
    (
        "<Type>Time</Type>",
        "<Type>Date</Type>",
        DefinitionFaultKind::Invalid,
        "Item[60]/Type",
        (77, 9),
        "Corelnk or empty, not \"Date\"",
    ),
    (
        "<Type>Time</Type>",
        "",
        DefinitionFaultKind::Missing,
        "Item[60]",
        (72, 7),
        "the element Type is missing",
    ),
    (
        "<Type>Time</Type>",
        "<Type><b>Time</b></Type>",
        DefinitionFaultKind::Invalid,
        "Item[60]/Type",
        (77, 9),
        "must contain text only",
    ),
    (
        "    </Resources>",
        "    <Thing/></Resources>",
        DefinitionFaultKind::Unknown,
        "Resources",
        (132, 5),
        "only Item elements are allowed here",
    ),
];

/// Texts that are not supported XML, and the fault of each.
const NOT_XML: &[(&str, (u32, u32), &str)] = &[
    ("", (1, 1), "the document has no element"),
    (
        "   \n<!-- nothing -->",
        (2, 17),
        "the document has no element",
    ),
    ("{\"objectId\": 1}", (1, 1), "unknown token"),
    (
        "<LWM2M>\n<Object>",
        (2, 9),
        "ends before its elements are closed",
    ),
    (
        "<LWM2M>\n <Object></LWM2M>",
        (2, 10),
        "expected 'Object' tag",
    ),
    (
        "<?xml version=\"1.0\"?>\n<!DOCTYPE LWM2M [<!ENTITY a \"b\">]>\n<LWM2M/>",
        (2, 1),
        "a document type declaration (DOCTYPE) is not allowed",
    ),
    (
        "<!DOCTYPE LWM2M SYSTEM \"file:///etc/passwd\"><LWM2M/>",
        (1, 1),
        "a document type declaration (DOCTYPE) is not allowed",
    ),
    (
        "<LWM2M>\n<Object>&passwd;</Object></LWM2M>",
        (2, 9),
        "unknown entity reference 'passwd'",
    ),
    ("<a:LWM2M/>", (1, 2), "an unknown namespace prefix 'a'"),
];

#[test]
fn a_file_of_the_registry_agrees_with_the_tables() {
    let definition = read(TEMPERATURE);
    let object = definition.object();
    let registered = model::object(3303, Version::new(1, 1)).unwrap();
    assert_eq!((object.id(), object.version()), (3303, Version::new(1, 1)));
    assert_eq!(object.name(), registered.name());
    assert_eq!(object.instances(), registered.instances());
    let facts = |object: &model::Object<'_>| {
        let resources = object.resources().iter().map(|it| {
            (
                it.id(),
                object.name_of(it.id()).map(str::to_owned),
                object.units_of(it.id()).map(str::to_owned),
                (it.operations(), it.instances(), it.is_mandatory()),
                it.data_type(),
            )
        });
        resources.collect::<Vec<_>>()
    };
    assert_eq!(facts(&object), facts(registered));
    assert_eq!(object.resources().len(), registered.resources().len());
}

#[test]
fn a_byte_order_mark_line_ends_comments_and_marked_sections_change_nothing() {
    let definition = read(HEAT_METER);
    let object = definition.object();
    assert_eq!((object.id(), object.name()), (33_000, "Heat Meter"));
    assert_eq!(object.version(), Version::new(1, 0));
    assert_eq!(object.instances(), Instances::Single);
    let ids: Vec<_> = object.resources().iter().map(|it| it.id()).collect();
    assert_eq!(ids, [0, 1, 2]);
    assert_eq!(object.name_of(0), Some("Flow Temperature"));
    assert_eq!(object.units_of(0), Some("Cel"));
    assert_eq!(object.name_of(2), Some("Raw & whole"));
    assert_eq!(object.units_of(2), None);
}

#[test]
fn every_type_and_every_operation_is_read() {
    let definition = read(DOOR_LOCK);
    let object = definition.object();
    let read: Vec<_> = object
        .resources()
        .iter()
        .map(|it| (it.data_type(), it.operations()))
        .collect();
    assert_eq!(
        read,
        [
            (Some(DataType::String), Operations::ReadWrite),
            (Some(DataType::Integer), Operations::Read),
            (Some(DataType::UnsignedInteger), Operations::Read),
            (Some(DataType::Float), Operations::Read),
            (Some(DataType::Boolean), Operations::Write),
            (Some(DataType::Opaque), Operations::None),
            (Some(DataType::Time), Operations::Read),
            (Some(DataType::ObjectLink), Operations::ReadWrite),
            (Some(DataType::CoreLink), Operations::Read),
            (None, Operations::Execute),
            (Some(DataType::String), Operations::Read),
            (Some(DataType::UnsignedInteger), Operations::ReadWrite),
        ]
    );
    assert_eq!(object.name(), "Türschloß");
    assert_eq!(object.instances(), Instances::Multiple);
    let (first, second) = (object.resource(0).unwrap(), object.resource(10).unwrap());
    assert!(first.is_mandatory() && !second.is_mandatory());
    assert_eq!(first.instances(), Instances::Single);
    assert_eq!(second.instances(), Instances::Multiple);
    assert!(object.resource(5).is_none());
}

#[test]
fn a_missing_version_is_the_first() {
    for version in ["", "<ObjectVersion/>", "<ObjectVersion> </ObjectVersion>"] {
        let xml = DOOR_LOCK.replace("<ObjectVersion>2.3</ObjectVersion>", version);
        assert_eq!(
            read(&xml).object().version(),
            Version::new(1, 0),
            "{version}"
        );
    }
}

#[test]
fn each_fault_is_reported_with_its_place() {
    for (from, to, kind, element, (line, column), why) in FAULTY {
        let xml = DOOR_LOCK.replacen(from, to, 1);
        assert_ne!(xml, DOOR_LOCK, "{from}");
        let faults = refused(&xml);
        let [fault] = faults.as_slice() else {
            panic!("{to}: {faults:?}");
        };
        assert_eq!(
            (fault.kind, fault.element.as_str()),
            (*kind, *element),
            "{to}"
        );
        assert_eq!(
            (fault.line, fault.column),
            (*line, *column),
            "{to}: {fault}"
        );
        assert!(fault.why.contains(why), "{to}: {fault}");
    }
}

#[test]
fn all_faults_are_reported_at_once_in_the_order_of_the_text() {
    let mut xml = DOOR_LOCK.to_owned();
    for (from, to) in [
        ("<ObjectID>32770", "<ObjectID>many"),
        ("<Operations>W<", "<Operations>w<"),
        ("<Type>Time<", "<Type>Date<"),
        ("<Mandatory>Mandatory</Mandatory>\n    <Res", "<Res"),
    ] {
        xml = xml.replacen(from, to, 1);
    }
    let faults = refused(&xml);
    let elements: Vec<_> = faults.iter().map(|it| it.element.as_str()).collect();
    assert_eq!(
        elements,
        [
            "Object",
            "Object/ObjectID",
            "Item[40]/Operations",
            "Item[60]/Type"
        ]
    );
    assert!(faults.is_sorted_by_key(|fault| (fault.line, fault.column)));
}

#[test]
fn invalid_xml_is_reported_with_its_place() {
    for (xml, (line, column), why) in NOT_XML {
        let faults = refused(xml);
        let [fault] = faults.as_slice() else {
            panic!("{xml}: {faults:?}");
        };
        assert_eq!(fault.kind, DefinitionFaultKind::NotXml, "{xml}: {fault}");
        assert!(fault.why.contains(why), "{xml}: {fault}");
        assert_eq!(
            (fault.line, fault.column),
            (*line, *column),
            "{xml}: {fault}"
        );
    }
}

#[test]
fn invalid_utf8_is_reported_where_it_begins() {
    let fault = &parse(b"<LWM2M>\n <\xff").unwrap_err()[0];
    assert_eq!(
        (fault.kind, fault.line, fault.column),
        (DefinitionFaultKind::NotXml, 2, 3)
    );
    let wide: Vec<u8> = HEAT_METER
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(
        parse(&wide).unwrap_err()[0].kind,
        DefinitionFaultKind::NotXml
    );
}

#[test]
fn other_documents_are_refused() {
    let why = |xml: &str| refused(xml)[0].why.clone();
    assert_eq!(why("<html/>"), "the root element must be LWM2M");
    assert_eq!(why("<LWM2M/>"), "the element Object is missing");
    let (before, rest) = DOOR_LOCK.split_once("  <Object ").unwrap();
    let object = rest.split_once("</LWM2M>").unwrap().0;
    let two = format!("{before}<Object {object}<Object {object}</LWM2M>");
    assert_eq!(why(&two), "the element must be given only once");
}

#[test]
fn an_object_without_resources_is_refused() {
    let (before, rest) = DOOR_LOCK.split_once("<Resources>").unwrap();
    let (_, after) = rest.split_once("</Resources>").unwrap();
    let empty = format!("{before}<Resources></Resources>{after}");
    let faults = refused(&empty);
    assert_eq!(
        (faults.len(), faults[0].kind),
        (1, DefinitionFaultKind::Missing)
    );
}

#[test]
fn the_parts_of_a_definition_are_bounded() {
    let named = |name: &str| xml_of(1, |_| name.to_owned());
    assert!(parse(named(&"n".repeat(255)).as_bytes()).is_ok());
    assert_eq!(
        refused(&named(&"n".repeat(256)))[0].kind,
        DefinitionFaultKind::Invalid
    );

    let many = |count| xml_of(count, |id| id.to_string());
    let most = read(&many(RESOURCES_MAX));
    assert_eq!(most.object().resources().len(), RESOURCES_MAX);
    assert_eq!(most.object().name_of(999), Some("999"));
    let faults = refused(&many(RESOURCES_MAX + 1));
    assert_eq!(
        (faults.len(), faults[0].kind),
        (1, DefinitionFaultKind::TooMuch)
    );

    let long = xml_of(300, |id| format!("{id:0>255}"));
    let faults = refused(&long);
    assert_eq!(
        (faults.len(), faults[0].kind),
        (1, DefinitionFaultKind::TooMuch)
    );
    assert!(faults[0].why.contains("all names and units together"));
}

#[test]
fn xml_that_would_be_slow_to_parse_is_refused_before() {
    let longer = format!("{DOOR_LOCK}{}", " ".repeat(BYTES_MAX));
    let attributes: String = (0..5_000).map(|at| format!(" a{at}=''")).collect();
    let namespaces: String = (0..20).map(|at| format!(" xmlns:a{at}='{at}'")).collect();
    for xml in [
        longer,
        format!("<LWM2M{attributes}/>"),
        format!("<LWM2M{namespaces}/>"),
        "<".repeat(100_000),
        format!("<LWM2M>{}</LWM2M>", "<a/>".repeat(65_536)),
    ] {
        assert_eq!(refused(&xml)[0].kind, DefinitionFaultKind::TooMuch);
    }
    let deep = format!(
        "<LWM2M>{}{}</LWM2M>",
        "<a>".repeat(30_000),
        "</a>".repeat(30_000)
    );
    assert!(
        refused(&deep)
            .iter()
            .any(|it| it.kind == DefinitionFaultKind::Unknown)
    );
}

#[test]
fn the_number_of_reported_faults_is_bounded() {
    let faults = refused(&format!("<LWM2M>{}</LWM2M>", "<a/>".repeat(20_000)));
    assert!((100..1_000).contains(&faults.len()));
}

proptest! {
    #[test]
    fn a_changed_definition_is_read_or_refused(
        file in 0_usize..3,
        at in any::<Index>(),
        to in any::<Index>(),
        length in 0_usize..40,
        put in proptest::collection::vec(any::<u8>(), 0..4),
    ) {
        let xml = [TEMPERATURE, HEAT_METER, DOOR_LOCK][file].as_bytes();
        let at = at.index(xml.len());
        let piece = &xml[to.index(xml.len())..];
        let mut changed = xml[..at].to_vec();
        changed.extend(&put);
        changed.extend(&piece[..length.min(piece.len())]);
        changed.extend(&xml[(at + length).min(xml.len())..]);
        check(parse(&changed))?;
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(parse(&bytes).is_err());
    }
}

/// A definition that was read is consistent; a refused one has at least one fault, each at a place.
fn check(
    read: Result<Definition, Vec<DefinitionFault>>,
) -> Result<(), proptest::test_runner::TestCaseError> {
    match read {
        Ok(definition) => {
            let object = definition.object();
            prop_assert!(!object.name().is_empty());
            prop_assert!(object.resources().is_sorted_by(|a, b| a.id() < b.id()));
            for resource in object.resources() {
                let name = object.name_of(resource.id());
                prop_assert!(name.is_some_and(|name| !name.is_empty()));
            }
        }
        Err(faults) => {
            prop_assert!(!faults.is_empty());
            prop_assert!(faults.iter().all(|it| it.line > 0 && it.column > 0));
        }
    }
    Ok(())
}

fn xml_of(resources: usize, name: impl Fn(usize) -> String) -> String {
    let item = |id| {
        format!(
            "<Item ID=\"{id}\"><Name>{}</Name><Operations>R</Operations>\
             <MultipleInstances>Single</MultipleInstances><Mandatory>Optional</Mandatory>\
             <Type/></Item>",
            name(id)
        )
    };
    let items: String = (0..resources).map(item).collect();
    format!(
        "<LWM2M><Object><Name>Many</Name><ObjectID>33001</ObjectID>\
         <MultipleInstances>Single</MultipleInstances><Mandatory>Optional</Mandatory>\
         <Resources>{items}</Resources></Object></LWM2M>"
    )
}

fn read(xml: &str) -> Definition {
    parse(xml.as_bytes()).expect("it is a definition")
}

fn refused(xml: &str) -> Vec<DefinitionFault> {
    parse(xml.as_bytes()).expect_err("it is no definition")
}
