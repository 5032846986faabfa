//! Which handlers create, list, get and delete the object definitions of a customer?

pub(super) mod described;

use actix_web::http::header::{ACCEPT, HeaderMap, LOCATION, VARY};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder, web};
use serde::Serialize;

use engine::Version;
use engine::definition::{Definition, DefinitionId, ParsedDefinition};
use engine::directory::DirectoryRefusal;
use engine::directory::definition::{PutOutcome, put_definition, remove_definition};
use engine::ids::CustomerId;
use engine::model::definition::{BYTES_MAX, DefinitionFault as XmlFault, DefinitionFaultKind};
use engine::model::{Instances, Object, Operations, Resource};

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::{Raw, essence};
use super::error::{ApiError, ErrorDetail};
use super::page::PageBody;
use super::records::{settle, to_its_end};
use super::segment::{ObjectNumber, PathSegment};

/// The media type of a definition.
const XML: &str = "application/xml";

/// The other media type of XML.
const XML_TOO: &str = "text/xml";

/// A definition in a list, and in the response to a PUT.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DefinitionBody {
    object_id: u16,
    version: String,
    /// None if this version cannot parse the XML.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_count: Option<usize>,
    updated: String,
}

/// A definition with its resources.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WholeDefinitionBody {
    #[serde(flatten)]
    definition: DefinitionBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    multiple_instances: Option<bool>,
    resources: Vec<ResourceBody>,
}

/// A resource that a definition describes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceBody {
    resource_id: u16,
    name: String,
    operations: Vec<&'static str>,
    multiple_instances: bool,
    mandatory: bool,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    data_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    units: Option<String>,
}

/// PUT: stores a definition of one version of an object.
pub(super) async fn put(
    caller: AuthenticatedCaller,
    raw: Raw,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    if ![XML, XML_TOO].contains(&raw.media_type.as_str()) {
        return Err(ApiError::unsupported_media(XML));
    }
    if raw.bytes.len() > BYTES_MAX {
        return Err(ApiError::body_too_large(BYTES_MAX));
    }
    let read = ParsedDefinition::of(&raw.bytes);
    let read =
        read.map_err(|faults| ApiError::invalid(faults.into_iter().map(detail_of).collect()))?;
    let (body, id, put) = to_its_end(store_definition(api, caller.customer, read)).await?;
    let mut answer = match put {
        PutOutcome::Made => HttpResponse::Created(),
        PutOutcome::Replaced | PutOutcome::Unchanged => HttpResponse::Ok(),
    };
    let DefinitionId {
        object, version, ..
    } = id;
    let at = format!("/management-api/v1/lwm2m/objects/{object}/{version}");
    Ok(answer.insert_header((LOCATION, at)).json(body))
}

async fn store_definition(
    api: web::Data<Api>,
    customer: CustomerId,
    read: ParsedDefinition,
) -> Result<(DefinitionBody, DefinitionId, PutOutcome), ApiError> {
    // One at a time, so that the maximum holds.
    let turn = api.changing_definitions.lock().await;
    let (definition, put) = settle(&*api.commits, async || {
        let others = api
            .store
            .customer_settings(customer.clone())
            .await?
            .definitions;
        let moment = api.clock.moment();
        Ok(put_definition(&moment, customer.clone(), &others, &read)?)
    })
    .await?;
    drop(turn);
    api.devices.take_policy(customer).await?;
    let body = DefinitionBody::of(&definition, Some(read.object()));
    Ok((body, definition.id, put))
}

/// GET: lists the definitions of the caller by object and version.
pub(super) async fn list(
    caller: AuthenticatedCaller,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let mut definitions = api
        .store
        .customer_settings(caller.customer)
        .await?
        .definitions;
    definitions.sort_by_key(|it| (it.id.object, it.id.version));
    let shown = |definition: &Definition| {
        let read = definition.read().ok();
        DefinitionBody::of(definition, read.as_ref().map(ParsedDefinition::object))
    };
    let items = definitions.iter().map(shown).collect();
    Ok(HttpResponse::Ok().json(PageBody::whole(items)))
}

/// GET one: as JSON, or the XML unchanged.
pub(super) async fn show(
    caller: AuthenticatedCaller,
    PathSegment(object): PathSegment<ObjectNumber>,
    PathSegment(version): PathSegment<Version>,
    request: HttpRequest,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let found = api.store.definition(id(caller, object, version)).await?;
    let definition = found.ok_or(DirectoryRefusal::DefinitionUnknown)?;
    if wants_xml(request.headers()) {
        let text = String::from(definition.xml);
        return Ok(varying().content_type(XML).body(text));
    }
    Ok(varying().json(WholeDefinitionBody::of(&definition)))
}

/// DELETE: deletes a definition.
pub(super) async fn delete(
    caller: AuthenticatedCaller,
    PathSegment(object): PathSegment<ObjectNumber>,
    PathSegment(version): PathSegment<Version>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    to_its_end(removed(api, id(caller, object, version))).await?;
    Ok(HttpResponse::NoContent().finish())
}

async fn removed(api: web::Data<Api>, id: DefinitionId) -> Result<(), ApiError> {
    settle(&*api.commits, async || {
        let found = api.store.definition(id.clone()).await?;
        Ok(remove_definition(found)?)
    })
    .await?;
    Ok(api.devices.take_policy(id.customer).await?)
}

fn id(
    caller: AuthenticatedCaller,
    ObjectNumber(object): ObjectNumber,
    version: Version,
) -> DefinitionId {
    DefinitionId {
        customer: caller.customer,
        object,
        version,
    }
}

/// A response that depends on the `Accept` header.
fn varying() -> HttpResponseBuilder {
    let mut answer = HttpResponse::Ok();
    answer.insert_header((VARY, "Accept"));
    answer
}

/// Whether the caller accepts XML and not JSON.
fn wants_xml(headers: &HeaderMap) -> bool {
    let accepted = headers
        .get_all(ACCEPT)
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(essence);
    let accepted: Vec<_> = accepted.collect();
    let names = |media_type: &str| accepted.iter().any(|accepted| accepted == media_type);
    (names(XML) || names(XML_TOO)) && !names("application/json")
}

fn detail_of(fault: XmlFault) -> ErrorDetail {
    let code = match fault.kind {
        DefinitionFaultKind::NotXml => "MALFORMED_BODY",
        DefinitionFaultKind::Missing => "REQUIRED",
        DefinitionFaultKind::Repeated => "REPEATED",
        DefinitionFaultKind::Unknown => "UNKNOWN_PROPERTY",
        DefinitionFaultKind::Invalid => "INVALID_VALUE",
        DefinitionFaultKind::TooMuch => "OUT_OF_RANGE",
    };
    match fault.element.as_str() {
        "" => ErrorDetail::new(code, &fault),
        element => ErrorDetail::of(code, element, &fault),
    }
}

impl DefinitionBody {
    /// The definition in a list, with its parsed object if the XML can be parsed.
    pub(super) fn of(definition: &Definition, object: Option<Object<'_>>) -> Self {
        Self {
            object_id: definition.id.object,
            version: definition.id.version.to_string(),
            name: object.map(|object| object.name().to_owned()),
            resource_count: object.map(|object| object.resources().len()),
            updated: definition.at.iso().to_string(),
        }
    }
}

impl WholeDefinitionBody {
    /// The definition with its resources.
    pub(super) fn of(definition: &Definition) -> Self {
        let read = definition.read().ok();
        let object = read.as_ref().map(ParsedDefinition::object);
        let resources = object.iter().flat_map(|object| {
            let resources = object.resources().iter();
            resources.map(|resource| ResourceBody::of(object, resource))
        });
        Self {
            definition: DefinitionBody::of(definition, object),
            multiple_instances: object.map(|object| are_many(object.instances())),
            resources: resources.collect(),
        }
    }
}

impl ResourceBody {
    fn of(object: &Object<'_>, resource: &Resource) -> Self {
        let name = object.name_of(resource.id()).unwrap_or_default();
        Self {
            resource_id: resource.id(),
            name: name.to_owned(),
            operations: words(resource.operations()),
            multiple_instances: are_many(resource.instances()),
            mandatory: resource.is_mandatory(),
            data_type: resource.data_type().map(engine::DataType::as_str),
            units: object.units_of(resource.id()).map(str::to_owned),
        }
    }
}

fn words(operations: Operations) -> Vec<&'static str> {
    match operations {
        Operations::None => vec![],
        Operations::Read => vec![READ],
        Operations::Write => vec![WRITE],
        Operations::ReadWrite => vec![READ, WRITE],
        Operations::Execute => vec![EXECUTE],
    }
}

fn are_many(instances: Instances) -> bool {
    match instances {
        Instances::Single => false,
        Instances::Multiple => true,
    }
}

const READ: &str = "READ";
const WRITE: &str = "WRITE";
const EXECUTE: &str = "EXECUTE";
