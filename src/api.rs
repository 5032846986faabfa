//! The whole HTTP API on one page: method, path, who may call, and what answers.
//!
//! Every route stands in `ROUTES` with its access; nothing else is mounted. A path that is not
//! here is 404, a method that is not here 405, both in the shape of every other error.

mod access;
mod action;
mod actions;
mod body;
mod call;
mod clients;
mod customers;
mod device;
mod devices;
mod docs;
mod error;
mod fields;
mod health;
mod import;
mod logs;
mod messages;
mod meters;
mod metrics;
mod once;
mod openapi;
mod page;
mod psk;
mod rate;
mod records;
mod secret;
mod segment;
mod settings;
mod tokens;
mod value;
mod words;
mod zone;

use std::sync::Arc;

use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::{HttpResponse, web};

use actors::clock::Clock;
use actors::devices::Devices;
use engine::customer::Scope;
use store::Store;
use store::sealed::MasterKey;

use crate::config::Config;
use crate::operator::OperatorToken;

use access::Access;
use call::Door;
use error::Failure;
use health::{Phase, Readiness};
use rate::RateLimit;

/// What the API works with; clones share it.
#[derive(Clone)]
pub struct State(web::Data<Api>);

/// What the handlers work with; one value serves every thread.
struct Api {
    /// What is kept.
    store: Arc<dyn Store>,
    /// The door to the devices.
    devices: Devices,
    /// The time, and the chance that makes ids.
    clock: Clock,
    /// What seals the secrets of devices.
    master_key: MasterKey,
    /// What opens the operator API.
    operator: OperatorToken,
    /// The `{platform}` segment of the settings' paths.
    platform: String,
    /// Whether the service is starting, ready or draining.
    readiness: Readiness,
    /// How often a customer may call.
    rate: RateLimit,
    /// The longest JSON body read.
    json_body_bytes_max: usize,
    /// The calls under way that are to happen only once.
    turns: once::Turns,
    /// The devices that one call may ask something of.
    bulk_devices_max: u32,
    /// The imports under way.
    imports: import::Imports,
    /// The lines an import may have.
    import_lines_max: u32,
    /// What is told of the API to programs.
    openapi: web::Bytes,
    /// What is told of it to people.
    docs: web::Bytes,
}

impl State {
    /// The state of a service that is starting.
    pub fn new(
        config: &Config,
        store: Arc<dyn Store>,
        devices: Devices,
        clock: Clock,
        master_key: MasterKey,
        operator: OperatorToken,
    ) -> Self {
        meters::describe();
        let document = openapi::document(ROUTES, &config.platform);
        Self(web::Data::new(Api {
            store,
            devices,
            clock,
            master_key,
            operator,
            platform: config.platform.clone(),
            readiness: Readiness::starting(),
            rate: RateLimit::new(config.rate_limit),
            json_body_bytes_max: config.json_body_bytes_max,
            turns: once::Turns::default(),
            bulk_devices_max: config.bulk_devices_max,
            imports: import::Imports::default(),
            import_lines_max: config.import_lines_max,
            openapi: document.to_json(),
            docs: docs::page_of(&document),
        }))
    }

    /// From now on the service takes calls.
    pub fn set_ready(&self) {
        self.0.readiness.enter(Phase::Ready);
    }

    /// From now on the service finishes what it took, and tells who asks to send nobody more.
    pub fn set_draining(&self) {
        self.0.readiness.enter(Phase::Draining);
    }
}

/// One route: what it is called by, who may call it, what is told of it, and what answers.
struct Route {
    method: Method,
    path: &'static str,
    access: Access,
    describe: fn() -> openapi::Operation,
    answer: fn(actix_web::Route) -> actix_web::Route,
}

use Access::{Customer, Open, Operator};
use Scope::{
    ActionsRead, ActionsWrite, DevicesRead, DevicesWrite, LogsRead, SettingsRead, SettingsWrite,
};

/// Every route. Paths that could match the same text stand with the literal one first.
const ROUTES: &[Route] = &[
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
        "/management-api/v1/integrate/devices/{device}/actions/{protocol}",
        Customer(ActionsWrite),
        actions::described::create,
        |it| it.to(actions::creating::create),
    ),
    post(
        "/management-api/v1/integrate/devices/actions/{protocol}",
        Customer(ActionsWrite),
        actions::described::create_many,
        |it| it.to(actions::creating::create_many),
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

/// Mounts every route.
pub fn configure(app: &mut web::ServiceConfig, state: State) {
    app.app_data(web::PayloadConfig::new(state.0.json_body_bytes_max));
    app.app_data(state.0);
    for path in paths() {
        let mut resource = web::resource(path);
        for route in ROUTES.iter().filter(|route| route.path == path) {
            resource = resource.route(mounted(route));
        }
        app.service(resource.default_service(other_method(path)));
    }
    app.default_service(other_path());
}

/// The paths in the order they are tried.
fn paths() -> Vec<&'static str> {
    let mut paths = Vec::new();
    for route in ROUTES {
        if !paths.contains(&route.path) {
            paths.push(route.path);
        }
    }
    paths
}

fn mounted(route: &'static Route) -> actix_web::Route {
    let door = Door {
        access: route.access,
        route: route.path,
    };
    let answered = (route.answer)(web::method(route.method.clone()));
    answered.wrap(from_fn(move |request, next| {
        call::serve(door, request, next)
    }))
}

fn other_method(path: &'static str) -> actix_web::Route {
    let methods = ROUTES
        .iter()
        .filter(|route| route.path == path)
        .map(|it| it.method.as_str());
    let allowed = methods.collect::<Vec<_>>().join(", ");
    let refuse = move || {
        let failure = Failure::method_not_allowed(&allowed);
        async move { Err::<HttpResponse, _>(failure) }
    };
    let refused = web::route().to(refuse);
    let door = Door {
        access: Open,
        route: path,
    };
    refused.wrap(from_fn(move |request, next| {
        call::serve(door, request, next)
    }))
}

fn other_path() -> actix_web::Route {
    let refused = web::route().to(async || Err::<HttpResponse, _>(Failure::path_unknown()));
    let door = Door {
        access: Open,
        route: "other",
    };
    refused.wrap(from_fn(move |request, next| {
        call::serve(door, request, next)
    }))
}

const fn get(
    path: &'static str,
    access: Access,
    describe: fn() -> openapi::Operation,
    answer: fn(actix_web::Route) -> actix_web::Route,
) -> Route {
    Route {
        method: Method::GET,
        path,
        access,
        describe,
        answer,
    }
}

const fn post(
    path: &'static str,
    access: Access,
    describe: fn() -> openapi::Operation,
    answer: fn(actix_web::Route) -> actix_web::Route,
) -> Route {
    Route {
        method: Method::POST,
        path,
        access,
        describe,
        answer,
    }
}

const fn patch(
    path: &'static str,
    access: Access,
    describe: fn() -> openapi::Operation,
    answer: fn(actix_web::Route) -> actix_web::Route,
) -> Route {
    Route {
        method: Method::PATCH,
        path,
        access,
        describe,
        answer,
    }
}

const fn delete(
    path: &'static str,
    access: Access,
    describe: fn() -> openapi::Operation,
    answer: fn(actix_web::Route) -> actix_web::Route,
) -> Route {
    Route {
        method: Method::DELETE,
        path,
        access,
        describe,
        answer,
    }
}

#[cfg(test)]
mod tests;
