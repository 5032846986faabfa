//! Which operations create, read and delete object definitions? The OpenAPI descriptions.

use engine::DataType;
use engine::limits::DEFINITIONS_MAX;
use engine::model::definition::{BYTES_MAX, RESOURCES_MAX};

use super::{EXECUTE, READ, WRITE, XML, XML_TOO};
use crate::api::openapi::{ApiOperation, JSON, Schema, Tag, names};
use crate::api::page::described::page_of;

/// An example of an object definition.
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
pub(in crate::api) fn put() -> ApiOperation {
    let text = format!(
        "Defines the resources of an LwM2M object. The service uses the definition to check \
         values before it writes them and to type the values it reads. The body is the OMA XML \
         of one version of one object, in the format of the OMA registry: UTF-8, at most \
         {BYTES_MAX} bytes and {RESOURCES_MAX} resources, without a document type declaration. \
         For the devices of this customer, it takes precedence over the OMA registry, from their \
         next message on. Objects 0, 1, 2, 3 and 21 cannot be redefined (`OBJECT_RESERVED`). The \
         call is idempotent."
    );
    let full = format!(
        "`TOO_MANY_DEFINITIONS`: the customer has {DEFINITIONS_MAX} definitions. \
         `DEFINITIONS_TOO_LONG`: the definitions of the customer would be too long in total."
    );
    ApiOperation::new("putObjectDefinition", Tag::Settings, "Define an object")
        .description(text)
        .body(
            vec![(XML, xml()), (XML_TOO, xml())],
            "The OMA XML of one version of an object.",
        )
        .faults(&["OBJECT_RESERVED"])
        .answer(201, definition(), "The definition is created.")
        .answer(200, definition(), "The definition is replaced.")
        .answer_header(201, "Location", Schema::text(), LOCATION)
        .answer_header(200, "Location", Schema::text(), LOCATION)
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

const LOCATION: &str = "The path of the definition.";

/// GET all.
pub(in crate::api) fn list() -> ApiOperation {
    let summary = "List object definitions";
    let text = "Returns the customer's own definitions on one page, sorted by object and version.";
    ApiOperation::new("listObjectDefinitions", Tag::Settings, summary)
        .description(text)
        .answer(200, page_of(definition()), "The definitions.")
}

/// GET one.
pub(in crate::api) fn show() -> ApiOperation {
    let summary = "Get an object definition";
    let text = "With `Accept: application/xml`, returns the XML unchanged.";
    let media = vec![(JSON, whole()), (XML, xml())];
    let vary = Schema::text().example("Accept");
    ApiOperation::new("getObjectDefinition", Tag::Settings, summary)
        .description(text)
        .answer_in(200, media, "The definition.")
        .answer_header(200, "Vary", vary, "The response depends on `Accept`.")
}

/// DELETE.
pub(in crate::api) fn delete() -> ApiOperation {
    let summary = "Delete an object definition";
    let text = "The definition of the OMA registry applies again, if there is one. Values of an \
                undefined object are not typed.";
    ApiOperation::new("deleteObjectDefinition", Tag::Settings, summary)
        .description(text)
        .answer_empty(204, "The definition is deleted.")
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
            "Whether the object can have several instances.",
        )
        .must(
            "resources",
            Schema::list(resource()).many(0..=RESOURCES_MAX as u64),
            "The resources, sorted by id.",
        )
        .named("WholeObjectDefinition")
}

fn summary() -> Schema {
    let unread = "Absent if this version of the service cannot parse the stored XML; put the \
                  definition again.";
    Schema::object()
        .must("objectId", object_number(), "The object id.")
        .must("version", version(), "The version of the object.")
        .may(
            "name",
            Schema::text().example("Heat Meter"),
            &format!("The name of the object. {unread}"),
        )
        .may(
            "resourceCount",
            Schema::whole(1..=RESOURCES_MAX as u64).example(3_u64),
            &format!("The number of resources. {unread}"),
        )
        .must("updated", names::instant(), "The time of the last change.")
}

fn resource() -> Schema {
    let operations = Schema::list(Schema::one_of_words(vec![READ, WRITE, EXECUTE]));
    let types = DataType::ALL.map(DataType::as_str).to_vec();
    Schema::object()
        .must(
            "resourceId",
            Schema::whole(0..=u64::from(u16::MAX)).example(0_u64),
            "The resource id.",
        )
        .must(
            "name",
            Schema::text().example("Flow Temperature"),
            "The name of the resource.",
        )
        .must(
            "operations",
            operations.example(vec![READ, WRITE]),
            "The operations an LwM2M server may use. Empty if only a bootstrap server may access \
             the resource.",
        )
        .must(
            "multipleInstances",
            Schema::truth(),
            "Whether the resource can have several instances.",
        )
        .must(
            "mandatory",
            Schema::truth(),
            "Whether every instance of the object has the resource.",
        )
        .may(
            "type",
            Schema::one_of_words(types),
            "The data type. Absent for a resource without a value.",
        )
        .may("units", Schema::text().example("Cel"), "The unit.")
        .named("ObjectResource")
}

/// An object id.
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
