//! Are object definitions stored, returned and deleted, and is every fault of a definition
//! reported?

use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use serde_json::json;

use engine::definition::{Definition, DefinitionId, ParsedDefinition};
use engine::ids::CustomerId;
use engine::limits::DEFINITIONS_MAX;
use engine::model::definition::BYTES_MAX;
use engine::moment::Timestamp;

use super::golden;
use super::test_service::{CallAnswer, TestService};
use crate::api::definitions::described::SOME_XML;
use crate::api::definitions::{DefinitionBody, WholeDefinitionBody};
use crate::api::page::PageBody;

const OBJECTS: &str = "/management-api/v1/lwm2m/objects";
const NOON: Timestamp = Timestamp::from_ms(1_795_521_600_000);

#[test]
fn a_definition() {
    let definition = definition_of(&xml(33_000, "1.1", "Heat Meter"));
    let read = definition.read().unwrap();
    let body = DefinitionBody::of(&definition, Some(read.object()));
    golden::check("object_definition", &body);
    golden::check(
        "object_definition_whole",
        &WholeDefinitionBody::of(&definition),
    );
}

#[test]
fn a_list_of_definitions_with_one_that_cannot_be_parsed() {
    let whole = definition_of(&xml(33_000, "1.1", "Heat Meter"));
    let broken = definition_of("<LWM2M/>");
    let read = whole.read().unwrap();
    let items = vec![
        DefinitionBody::of(&whole, Some(read.object())),
        DefinitionBody::of(&broken, None),
    ];
    golden::check("object_definitions", &PageBody::whole(items));
    let shown = serde_json::to_value(WholeDefinitionBody::of(&broken)).unwrap();
    assert_eq!(shown["objectId"], 33_000);
    assert_eq!(shown["resources"], json!([]));
}

#[test]
fn the_example_of_the_document_is_a_definition() {
    let read = ParsedDefinition::of(SOME_XML.as_bytes()).unwrap();
    assert_eq!(
        (read.object().id(), read.object().name()),
        (33_000, "Heat Meter")
    );
}

#[actix_web::test]
async fn a_definition_is_stored_returned_replaced_and_deleted() {
    let setup = TestService::new();
    let acme = setup
        .customer("acme", &["settings:read", "settings:write"])
        .await;
    let first = xml(33_000, "1.1", "Heat Meter");
    let made = put(&setup, &acme.bearer, &first).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let path = "/management-api/v1/lwm2m/objects/33000/1.1";
    assert_eq!(made.header("location"), Some(path));
    assert_eq!(made.json()["name"], "Heat Meter");
    assert_eq!(made.json()["resourceCount"], 3);

    let again = put(&setup, &acme.bearer, &first).await;
    assert_eq!(again.status, StatusCode::OK);
    assert_eq!(again.json(), made.json());

    let second = xml(33_000, "1.1", "Cold Meter");
    let replaced = put(&setup, &acme.bearer, &second).await;
    assert_eq!(
        (replaced.status, replaced.header("location")),
        (StatusCode::OK, Some(path))
    );
    let shown = setup.get(path, &acme.bearer).await;
    assert_eq!(shown.json()["name"], "Cold Meter");
    assert_eq!(shown.json()["resources"][1]["type"], "INTEGER");
    assert_eq!(shown.header("vary"), Some("Accept"));

    let listed = setup.get(OBJECTS, &acme.bearer).await.json();
    assert_eq!(listed["items"], json!([replaced.json()]));
    assert_eq!(
        setup.delete(path, &acme.bearer).await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        setup.delete(path, &acme.bearer).await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        setup.get(path, &acme.bearer).await.status,
        StatusCode::NOT_FOUND
    );
    let listed = setup.get(OBJECTS, &acme.bearer).await.json();
    assert_eq!(listed["items"], json!([]));
}

#[actix_web::test]
async fn the_xml_is_returned_byte_for_byte() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let marked =
        format!("\u{feff}{}", xml(33_000, "1.0", "Wärme &amp; Kälte")).replace('\n', "\r\n");
    assert_eq!(
        put(&setup, &acme.bearer, &marked).await.status,
        StatusCode::CREATED
    );
    let path = format!("{OBJECTS}/33000/1.0");
    for accept in ["application/xml", "text/xml;q=0.9, */*;q=0.1"] {
        let call = TestService::request("GET", &path)
            .insert_header((AUTHORIZATION, acme.bearer.clone()))
            .insert_header((ACCEPT, accept));
        let shown = setup.call(call).await;
        assert_eq!(shown.header("content-type"), Some("application/xml"));
        assert_eq!(shown.bytes, marked.as_bytes());
    }
    let call = TestService::request("GET", &path)
        .insert_header((AUTHORIZATION, acme.bearer.clone()))
        .insert_header((ACCEPT, "application/xml, application/json"));
    assert_eq!(setup.call(call).await.json()["name"], "Wärme & Kälte");
}

#[actix_web::test]
async fn definitions_are_listed_by_object_and_version() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    for (object, version) in [
        (33_001, "1.0"),
        (33_000, "10.0"),
        (33_000, "2.0"),
        (7, "1.0"),
    ] {
        put(&setup, &acme.bearer, &xml(object, version, "It")).await;
    }
    let listed = setup.get(OBJECTS, &acme.bearer).await.json();
    let items = listed["items"].as_array().unwrap();
    let shown: Vec<_> = items
        .iter()
        .map(|it| {
            (
                it["objectId"].as_u64().unwrap(),
                it["version"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            (7, "1.0"),
            (33_000, "2.0"),
            (33_000, "10.0"),
            (33_001, "1.0")
        ]
    );
}

#[actix_web::test]
async fn a_definition_belongs_to_one_customer() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let umbrella = setup.customer("umbrella", &["all"]).await;
    put(&setup, &acme.bearer, &xml(33_000, "1.0", "Theirs")).await;
    let path = format!("{OBJECTS}/33000/1.0");
    assert_eq!(
        setup.get(&path, &umbrella.bearer).await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        setup.delete(&path, &umbrella.bearer).await.status,
        StatusCode::NOT_FOUND
    );
    let listed = setup.get(OBJECTS, &umbrella.bearer).await.json();
    assert_eq!(listed["items"], json!([]));
    assert_eq!(setup.get(&path, &acme.bearer).await.status, StatusCode::OK);
}

#[actix_web::test]
async fn every_fault_of_a_definition_is_reported_at_once() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let faulty = xml(33_000, "one", "")
        .replace("<Type>Integer</Type>", "<Type>Number</Type>")
        .replace("<Item ID=\"2\">", "<Item ID=\"1\"><Colour/>");
    let answer = put(&setup, &acme.bearer, &faulty).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    let expected = [
        ("INVALID_VALUE", "Object/Name"),
        ("INVALID_VALUE", "Object/ObjectVersion"),
        ("INVALID_VALUE", "Item[1]/Type"),
        ("REPEATED", "Item"),
        ("UNKNOWN_PROPERTY", "Item"),
    ];
    let expected = expected.map(|(code, field)| (code.to_owned(), field.to_owned()));
    assert_eq!(answer.faults(), expected);
    let message = &answer.json()["errors"][1]["message"];
    let expected = "line 4, column 1: ObjectVersion must be a version, such as 1.0, not \"one\"";
    assert_eq!(message, expected);

    for (body, code) in [
        ("", "MALFORMED_BODY"),
        ("{}", "MALFORMED_BODY"),
        ("<!DOCTYPE x><LWM2M/>", "MALFORMED_BODY"),
        ("<LWM2M/>", "REQUIRED"),
    ] {
        let answer = put(&setup, &acme.bearer, body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(answer.faults()[0].0, code, "{body}");
    }
    let listed = setup.get(OBJECTS, &acme.bearer).await.json();
    assert_eq!(listed["items"], json!([]));
}

#[actix_web::test]
async fn a_definition_that_is_not_allowed_is_refused() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let reserved = put(&setup, &acme.bearer, &xml(3, "1.1", "Device")).await;
    assert_eq!(reserved.status, StatusCode::BAD_REQUEST);
    let expected = ("OBJECT_RESERVED".to_owned(), "Object/ObjectID".to_owned());
    assert_eq!(reserved.faults(), [expected]);

    let long = format!("{}{}", xml(33_000, "1.0", "It"), " ".repeat(BYTES_MAX));
    let answer = put(&setup, &acme.bearer, &long).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);

    let call = TestService::request("PUT", OBJECTS)
        .insert_header((AUTHORIZATION, acme.bearer.clone()))
        .insert_header((CONTENT_TYPE, "application/json"));
    let answer = setup.call(call.set_payload(xml(33_000, "1.0", "It"))).await;
    assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[actix_web::test]
async fn a_definition_beyond_the_maximum_is_refused() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let first = 30_000;
    for object in (first..).take(DEFINITIONS_MAX) {
        let made = put(&setup, &acme.bearer, &xml(object, "1.0", "It")).await;
        assert_eq!(made.status, StatusCode::CREATED, "{object}");
    }
    let more = put(&setup, &acme.bearer, &xml(40_000, "1.0", "It")).await;
    assert_eq!(more.status, StatusCode::CONFLICT);
    assert_eq!(more.faults()[0].0, "TOO_MANY_DEFINITIONS");
    let replaced = put(&setup, &acme.bearer, &xml(first, "1.0", "Other")).await;
    assert_eq!(replaced.status, StatusCode::OK);
}

#[actix_web::test]
async fn an_invalid_object_or_version_is_not_found() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    for path in [
        "65536/1.0",
        "+7/1.0",
        "x/1.0",
        "33000/1",
        "33000/1.256",
        "33000/v1.0",
    ] {
        let path = format!("{OBJECTS}/{path}");
        let answer = setup.get(&path, &acme.bearer).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
    }
}

async fn put(setup: &TestService, bearer: &str, xml: &str) -> CallAnswer {
    let call = TestService::request("PUT", OBJECTS)
        .insert_header((AUTHORIZATION, bearer))
        .insert_header((CONTENT_TYPE, "application/xml; charset=utf-8"));
    setup.call(call.set_payload(xml.to_owned())).await
}

fn definition_of(xml: &str) -> Definition {
    let customer = CustomerId::parse("acme").unwrap();
    Definition {
        id: DefinitionId::of(customer, 33_000, "1.1").unwrap(),
        xml: xml.into(),
        at: NOON,
    }
}

fn xml(object: u16, version: &str, name: &str) -> String {
    let item = |id: u16, name: &str, operations: &str, data_type: &str, units: &str| {
        format!(
            "<Item ID=\"{id}\"><Name>{name}</Name><Operations>{operations}</Operations>\
             <MultipleInstances>Single</MultipleInstances><Mandatory>Mandatory</Mandatory>\
             <Type>{data_type}</Type><Units>{units}</Units></Item>\n"
        )
    };
    let items = [
        item(0, "Flow Temperature", "RW", "Float", "Cel"),
        item(1, "Energy", "R", "Integer", "kWh"),
        item(2, "Reset", "E", "", ""),
    ];
    format!(
        "<LWM2M><Object>\n<Name>{name}</Name>\n<ObjectID>{object}</ObjectID>\n\
         <ObjectVersion>{version}</ObjectVersion>\n\
         <MultipleInstances>Multiple</MultipleInstances><Mandatory>Optional</Mandatory>\n\
         <Resources>\n{}</Resources>\n</Object></LWM2M>\n",
        items.concat()
    )
}
