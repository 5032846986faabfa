//! The whole HTTP API on one page: method, path, who may call, what is told of it, what answers.
//!
//! Every route stands in `ROUTES`; nothing else is mounted.

use actix_web::http::Method;

use engine::customer::Scope;

use super::access::Access;
use super::actions::creating;
use super::{
    actions, clients, clouds, customers, definitions, devices, docs, health, import, logs,
    messages, metrics, openapi, psk, settings, tokens,
};

/// One route: what it is called by, who may call it, what is told of it, and what answers.
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) access: Access,
    pub(super) describe: Describe,
    pub(super) answer: Answer,
}

use Access::{Customer, Open, Operator};
use Scope::{
    ActionsRead, ActionsWrite, DevicesRead, DevicesWrite, IntegrationsRead, IntegrationsWrite,
    LogsRead, SettingsRead, SettingsWrite,
};

/// Every route. Paths that could match the same text stand with the literal one first.
pub(super) const ROUTES: &[Route] = &[
    // Health and metrics, for whoever watches the service.
    get("/livez", Open, health::described::livez, |it| {
        it.to(health::livez)
    }),
    get("/readyz", Open, health::described::readyz, |it| {
        it.to(health::readyz)
    }),
    get("/openapi.json", Open, openapi::described::show, |it| {
        it.to(openapi::show)
    }),
    get("/docs", Open, docs::described::page, |it| it.to(docs::page)),
    get("/docs/style.css", Open, docs::described::style, |it| {
        it.to(docs::style)
    }),
    get("/docs/script.js", Open, docs::described::script, |it| {
        it.to(docs::script)
    }),
    get("/metrics", Open, metrics::described::show, |it| {
        it.to(metrics::show)
    }),
    // Access tokens.
    post("/oauth/token", Open, tokens::described::issue, |it| {
        it.to(tokens::issue)
    }),
    post(
        "/management-api/oauth/token",
        Open,
        tokens::described::issue_for_management,
        |it| it.to(tokens::issue),
    ),
    // The operator's customers and their API clients.
    post(
        "/operator-api/v1/customers",
        Operator,
        customers::described::create,
        |it| it.to(customers::create),
    ),
    get(
        "/operator-api/v1/customers",
        Operator,
        customers::described::list,
        |it| it.to(customers::list),
    ),
    delete(
        "/operator-api/v1/customers/{customer}",
        Operator,
        customers::described::delete,
        |it| it.to(customers::delete),
    ),
    post(
        "/operator-api/v1/customers/{customer}/clients",
        Operator,
        clients::described::create,
        |it| it.to(clients::create),
    ),
    get(
        "/operator-api/v1/customers/{customer}/clients",
        Operator,
        clients::described::list,
        |it| it.to(clients::list),
    ),
    delete(
        "/operator-api/v1/customers/{customer}/clients/{client}",
        Operator,
        clients::described::delete,
        |it| it.to(clients::delete),
    ),
    // Devices.
    post(
        "/management-api/v1/devices",
        Customer(DevicesWrite),
        devices::described::create,
        |it| it.to(devices::create),
    ),
    get(
        "/management-api/v1/devices",
        Customer(DevicesRead),
        devices::described::list,
        |it| it.to(devices::list),
    ),
    post(
        "/management-api/v1/devices/import",
        Customer(DevicesWrite),
        import::described::create,
        |it| it.to(import::create),
    ),
    get(
        "/management-api/v1/devices/{device}",
        Customer(DevicesRead),
        devices::described::inspect,
        |it| it.to(devices::inspect),
    ),
    patch(
        "/management-api/v1/devices/{device}",
        Customer(DevicesWrite),
        devices::described::amend,
        |it| it.to(devices::amending::amend),
    ),
    delete(
        "/management-api/v1/devices/{device}",
        Customer(DevicesWrite),
        devices::described::delete,
        |it| it.to(devices::delete),
    ),
    post(
        "/management-api/v1/devices/{device}/psk",
        Customer(DevicesWrite),
        psk::described::give,
        |it| it.to(psk::give),
    ),
    get(
        "/management-api/v1/devices/{device}/messages",
        Customer(DevicesRead),
        messages::described::list,
        |it| it.to(messages::list),
    ),
    // Action requests (seed 4.2 to 4.7).
    get(
        "/management-api/v1/integrate/devices/actions/requests",
        Customer(ActionsRead),
        actions::described::list,
        |it| it.to(actions::list),
    ),
    get(
        "/management-api/v1/integrate/devices/actions/requests/active",
        Customer(ActionsRead),
        actions::described::active,
        |it| it.to(actions::active),
    ),
    get(
        "/management-api/v1/integrate/devices/actions/requests/archived",
        Customer(ActionsRead),
        actions::described::archived,
        |it| it.to(actions::archived),
    ),
    get(
        "/management-api/v1/integrate/devices/actions/requests/{request}",
        Customer(ActionsRead),
        actions::described::show,
        |it| it.to(actions::show),
    ),
    delete(
        "/management-api/v1/integrate/devices/actions/requests/{request}",
        Customer(ActionsWrite),
        actions::described::cancel,
        |it| it.to(actions::cancel),
    ),
    delete(
        "/management-api/v1/integrate/devices/{device}/actions/requests",
        Customer(ActionsWrite),
        actions::described::cancel_all,
        |it| it.to(actions::cancel_all),
    ),
    post(
        "/management-api/v1/integrate/devices/{device}/actions/UDP",
        Customer(ActionsWrite),
        actions::described::udp::create,
        |it| it.to(creating::create::<creating::Udp>),
    ),
    post(
        "/management-api/v1/integrate/devices/{device}/actions/COAP",
        Customer(ActionsWrite),
        actions::described::coap::create,
        |it| it.to(creating::create::<creating::Coap>),
    ),
    post(
        "/management-api/v1/integrate/devices/{device}/actions/LWM2M",
        Customer(ActionsWrite),
        actions::described::lwm2m::create,
        |it| it.to(creating::create::<creating::Lwm2m>),
    ),
    post(
        "/management-api/v1/integrate/devices/actions/UDP",
        Customer(ActionsWrite),
        actions::described::udp::create_many,
        |it| it.to(creating::create_many::<creating::Udp>),
    ),
    post(
        "/management-api/v1/integrate/devices/actions/COAP",
        Customer(ActionsWrite),
        actions::described::coap::create_many,
        |it| it.to(creating::create_many::<creating::Coap>),
    ),
    post(
        "/management-api/v1/integrate/devices/actions/LWM2M",
        Customer(ActionsWrite),
        actions::described::lwm2m::create_many,
        |it| it.to(creating::create_many::<creating::Lwm2m>),
    ),
    // Cloud integrations.
    post(
        "/management-api/v1/integrate/clouds/webhooks",
        Customer(IntegrationsWrite),
        clouds::described::create,
        |it| it.to(clouds::create),
    ),
    get(
        "/management-api/v1/integrate/clouds/webhooks",
        Customer(IntegrationsRead),
        clouds::described::list,
        |it| it.to(clouds::list),
    ),
    get(
        "/management-api/v1/integrate/clouds/webhooks/{webhook}",
        Customer(IntegrationsRead),
        clouds::described::show,
        |it| it.to(clouds::show),
    ),
    patch(
        "/management-api/v1/integrate/clouds/webhooks/{webhook}",
        Customer(IntegrationsWrite),
        clouds::described::amend,
        |it| it.to(clouds::amend),
    ),
    delete(
        "/management-api/v1/integrate/clouds/webhooks/{webhook}",
        Customer(IntegrationsWrite),
        clouds::described::delete,
        |it| it.to(clouds::delete),
    ),
    post(
        "/management-api/v1/integrate/clouds/webhooks/{webhook}/test",
        Customer(IntegrationsWrite),
        clouds::described::test,
        |it| it.to(clouds::test),
    ),
    post(
        "/management-api/v1/integrate/clouds/webhooks/{webhook}/restart",
        Customer(IntegrationsWrite),
        clouds::described::restart,
        |it| it.to(clouds::restart),
    ),
    get(
        "/management-api/v1/integrate/clouds/webhooks/{webhook}/deadletters",
        Customer(IntegrationsRead),
        clouds::described::letters,
        |it| it.to(clouds::letters::list),
    ),
    delete(
        "/management-api/v1/integrate/clouds/webhooks/{webhook}/deadletters",
        Customer(IntegrationsWrite),
        clouds::described::discard_all,
        |it| it.to(clouds::letters::discard_all),
    ),
    post(
        "/management-api/v1/integrate/clouds/webhooks/{webhook}/deadletters/replay",
        Customer(IntegrationsWrite),
        clouds::described::replay,
        |it| it.to(clouds::letters::replay),
    ),
    delete(
        "/management-api/v1/integrate/clouds/webhooks/{webhook}/deadletters/{event}",
        Customer(IntegrationsWrite),
        clouds::described::discard,
        |it| it.to(clouds::letters::discard),
    ),
    // Settings (seed 4.1).
    get(
        "/management-api/v1/settings/{platform}",
        Customer(SettingsRead),
        settings::described::list,
        |it| it.to(settings::list),
    ),
    patch(
        "/management-api/v1/settings/{platform}/{setting}",
        Customer(SettingsWrite),
        settings::described::change,
        |it| it.to(settings::change),
    ),
    // Customers' own objects.
    put(
        "/management-api/v1/lwm2m/objects",
        Customer(SettingsWrite),
        definitions::described::put,
        |it| it.to(definitions::put),
    ),
    get(
        "/management-api/v1/lwm2m/objects",
        Customer(SettingsRead),
        definitions::described::list,
        |it| it.to(definitions::list),
    ),
    get(
        "/management-api/v1/lwm2m/objects/{object}/{version}",
        Customer(SettingsRead),
        definitions::described::show,
        |it| it.to(definitions::show),
    ),
    delete(
        "/management-api/v1/lwm2m/objects/{object}/{version}",
        Customer(SettingsWrite),
        definitions::described::delete,
        |it| it.to(definitions::delete),
    ),
    // Administration log (seed 4.8, 4.9).
    get(
        "/management-api/v1/administrationLogs",
        Customer(LogsRead),
        logs::described::list,
        |it| it.to(logs::list),
    ),
    get(
        "/management-api/v1/administrationLogs/stats",
        Customer(LogsRead),
        logs::described::statistics,
        |it| it.to(logs::statistics::show),
    ),
    get(
        "/management-api/v1/administrationLogs/{entry}/payload",
        Customer(LogsRead),
        logs::described::payload,
        |it| it.to(logs::payload),
    ),
];

/// What the document of the API says of a route.
type Describe = fn() -> openapi::Operation;

/// How a route is given what answers it.
type Answer = fn(actix_web::Route) -> actix_web::Route;

const fn get(path: &'static str, access: Access, describe: Describe, answer: Answer) -> Route {
    routed(Method::GET, path, access, (describe, answer))
}

const fn post(path: &'static str, access: Access, describe: Describe, answer: Answer) -> Route {
    routed(Method::POST, path, access, (describe, answer))
}

const fn put(path: &'static str, access: Access, describe: Describe, answer: Answer) -> Route {
    routed(Method::PUT, path, access, (describe, answer))
}

const fn patch(path: &'static str, access: Access, describe: Describe, answer: Answer) -> Route {
    routed(Method::PATCH, path, access, (describe, answer))
}

const fn delete(path: &'static str, access: Access, describe: Describe, answer: Answer) -> Route {
    routed(Method::DELETE, path, access, (describe, answer))
}

const fn routed(
    method: Method,
    path: &'static str,
    access: Access,
    (describe, answer): (Describe, Answer),
) -> Route {
    Route {
        method,
        path,
        access,
        describe,
        answer,
    }
}
