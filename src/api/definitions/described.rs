//! How are definitions of objects put, shown and removed? For the document of the API.

use engine::DataType;
use engine::limits::DEFINITIONS_MAX;
use engine::model::definition::{BYTES_MAX, RESOURCES_MAX};

use super::{EXECUTE, READ, WRITE, XML, XML_TOO};
use crate::api::openapi::{JSON, Operation, Schema, Tag, names};
use crate::api::page::described::page_of;

/// An example of a definition.
pub(in crate::api) const SOME_XML: &str = r#"<LWM2M>
  <Object ObjectType="MODefinition">
    <Name>Heat Meter</Name>
    <ObjectID>33000</ObjectID>
    <ObjectVersion>1.0</ObjectVersion>
    <MultipleInstances>Single</MultipleInstances>
    <Mandatory>Optional</Mandatory>
    <Resources>
      <Item ID="0">
        <Name>Flow Temperature</Name>
        <Operations>RW</Operations>
        <MultipleInstances>Single</MultipleInstances>
        <Mandatory>Mandatory</Mandatory>
        <Type>Float</Type>
        <Units>Cel</Units>
      </Item>
    </Resources>
  </Object>
</LWM2M>
"#;

/// PUT.
pub(in crate::api) fn put() -> Operation {
    let text = format!(
        "Says what the resources of an object are, so that values of them are checked before they \
         are written and told in their types. The body is the OMA XML of one version of one \
         object, as the files of the OMA registry are: at most {BYTES_MAX} bytes and \
         {RESOURCES_MAX} resources, in UTF-8, without a document type. It goes before what the \
         registry says of that version, for the devices of this customer alone, from their next \
         message on. Objects 0, 1, 2, 3 and 21 are not defined anew (`OBJECT_RESERVED`). Putting \
         the same again changes nothing."
    );
    let full = format!(
        "The customer has {DEFINITIONS_MAX} definitions, or all of them together would be longer \
         than they may be."
    );
    Operation::new("putObjectDefinition", Tag::Settings, "Define an object")
        .description(text)
        .body(
            vec![(XML, xml()), (XML_TOO, xml())],
            "The OMA XML of one version of an object.",
        )
        .faults(&["OBJECT_RESERVED"])
        .answer(201, definition(), "What was understood. It is new.")
        .answer(
            200,
            definition(),
            "What was understood. There was a definition of this version before.",
        )
        .answer_header(201, "Location", Schema::text(), "Where it is.")
        .answer_header(200, "Location", Schema::text(), "Where it is.")
        .leads_to(
            201,
            &["getObjectDefinition", "deleteObjectDefinition"],
            &[
                ("object", "$response.body#/objectId"),
                ("version", "$response.body#/version"),
            ],
        )
        .refusal(
            409,
            &["TOO_MANY_DEFINITIONS", "DEFINITIONS_TOO_LONG"],
            &full,
        )
}

/// GET all.
pub(in crate::api) fn list() -> Operation {
    Operation::new(
        "listObjectDefinitions",
        Tag::Settings,
        "List the objects defined",
    )
    .description("The customer's own definitions by object and version, on one page.")
    .answer(200, page_of(definition()), "The definitions.")
}

/// GET one.
pub(in crate::api) fn show() -> Operation {
    let text = "What the definition says. With `Accept: application/xml` the XML as it was put, \
                byte for byte.";
    let media = vec![(JSON, whole()), (XML, xml())];
    Operation::new(
        "getObjectDefinition",
        Tag::Settings,
        "Read a definition of an object",
    )
    .description(text)
    .answer_in(200, media, "The definition.")
    .answer_header(
        200,
        "Vary",
        Schema::text().example("Accept"),
        "What the answer depends on.",
    )
}

/// DELETE.
pub(in crate::api) fn delete() -> Operation {
    let text = "What the registry says of the object holds again, if it says anything; values of \
                an object that nobody defines are not typed.";
    Operation::new(
        "deleteObjectDefinition",
        Tag::Settings,
        "Remove a definition of an object",
    )
    .description(text)
    .answer_empty(204, "The definition is gone.")
}

fn xml() -> Schema {
    Schema::text().example(SOME_XML)
}

fn definition() -> Schema {
    summary().named("ObjectDefinition")
}

fn whole() -> Schema {
    Schema::object()
        .including(summary())
        .may(
            "multipleInstances",
            Schema::truth(),
            "Whether a device may have several instances of it.",
        )
        .must(
            "resources",
            Schema::list(resource()).many(0..=RESOURCES_MAX as u64),
            "Its resources by number.",
        )
        .named("WholeObjectDefinition")
}

fn summary() -> Schema {
    let unread = "missing if this version of the service cannot read the XML any more, which \
                  holds nothing up; put it again";
    Schema::object()
        .must("objectId", object_number(), "The number of the object.")
        .must("version", version(), "The version defined.")
        .may(
            "name",
            Schema::text().example("Heat Meter"),
            &format!("What it is called; {unread}."),
        )
        .may(
            "resourceCount",
            Schema::whole(1..=RESOURCES_MAX as u64).example(3_u64),
            &format!("How many resources it has; {unread}."),
        )
        .must("updated", names::instant(), "When it was put.")
}

fn resource() -> Schema {
    let operations = Schema::list(Schema::one_of_words(vec![READ, WRITE, EXECUTE]));
    let types = DataType::ALL.map(DataType::as_str).to_vec();
    Schema::object()
        .must(
            "resourceId",
            Schema::whole(0..=u64::from(u16::MAX)).example(0_u64),
            "Its number.",
        )
        .must(
            "name",
            Schema::text().example("Flow Temperature"),
            "What it is called.",
        )
        .must(
            "operations",
            operations.example(vec![READ, WRITE]),
            "What a server may do with it; nothing if only a bootstrap server touches it.",
        )
        .must(
            "multipleInstances",
            Schema::truth(),
            "Whether it may have several values.",
        )
        .must(
            "mandatory",
            Schema::truth(),
            "Whether every instance of the object has it.",
        )
        .may(
            "type",
            Schema::one_of_words(types),
            "The type of its values, if it has any.",
        )
        .may(
            "units",
            Schema::text().example("Cel"),
            "The unit of its values.",
        )
        .named("ObjectResource")
}

/// The number of an object.
pub(in crate::api) fn object_number() -> Schema {
    Schema::whole(0..=u64::from(u16::MAX)).example(33_000_u64)
}

/// A version of an object.
pub(in crate::api) fn version() -> Schema {
    let number = r"([01]?\d{1,2}|2[0-4]\d|25[0-5])";
    Schema::text()
        .pattern(&format!(r"^{number}\.{number}$"))
        .example("1.0")
}
