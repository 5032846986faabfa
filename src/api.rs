//! The HTTP API: the state of its handlers, and how its routes are mounted.
//!
//! An unknown path is answered with 404, an unsupported method with 405, both in the format of
//! every other error.

mod access;
mod action;
mod actions;
mod activity;
mod backup;
mod body;
mod body_budget;
mod bootstrap;
pub mod broker_commands;
mod brokers;
mod call;
mod clients;
pub(crate) mod console;
mod customers;
mod definitions;
mod destinations;
mod device;
mod devices;
mod docs;
mod dtls;
mod error;
mod events;
mod fields;
mod firmware;
mod health;
mod idempotency;
mod import;
mod integrations;
mod jobs;
mod logs;
mod messages;
mod meters;
mod metrics;
pub mod networks;
mod nodes;
mod oidc;
mod openapi;
mod pace;
mod page;
mod plugins;
mod presence;
mod psk;
mod public_key;
mod rate_limit;
mod records;
pub mod relayed;
mod routes;
mod schedules;
mod secret;
mod segment;
mod series;
mod session;
mod settings;
mod sms;
mod strangers;
mod tokens;
pub mod waiting;
pub(crate) mod words;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_web::http::Method;
use actix_web::{HttpRequest, HttpResponse, Scope, web};

use actors::campaigns::Campaigns;
use actors::clock::Clock;
use actors::delivery::Deliveries;
use actors::delivery::stream::{EventStreams, StreamParts};
use actors::devices::Devices;
use actors::image_files::ImageFiles;
use actors::jobs::Jobs;
use actors::smpp::Smpp;
use actors::sms::network::SmsNetwork;
use engine::delivery::address::policy::AddressPolicy;
use engine::firmware::delivery::DownloadUris;
use engine::ids::CustomerId;
use engine::limits::SmsRules;
use store::sealed::MasterKey;
use store::{Backup, Commit, Loss, Nodes, Reads};

use crate::coaps_key::ShownServerKey;
use crate::config::Config;
use crate::node::nodes_of;
use crate::oidc::IdentityProviderOptions;
use crate::operator::OperatorToken;

use access::Access;
use body::BodyLimit;
use body_budget::BodyBudget;
use call::{CallCredentials, RouteGuard};
use error::ApiError;
use firmware::ImageStore;
use health::{Readiness, ServicePhase};
use networks::Networks;
use oidc::IdentityProvider;
use oidc::attempts::AttemptTable;
use rate_limit::RateLimit;
use routes::{ROUTES, Route};
use session::table::{SessionLifetime, SessionTable};

/// The maximum size of a body from callers without a token, who ask for one: anybody can make the
/// service hold it. A larger one is answered with 413.
const OPEN_BODY_BYTES_MAX: usize = 8 * 1_024;

/// The state of the API; clones share it.
#[derive(Clone)]
pub struct ApiState(web::Data<Api>);

/// The parts of the API that do not come from the configuration.
pub struct ApiParts {
    /// Commits the changes of callers.
    pub commits: Arc<dyn Commit>,
    /// Reads what is stored.
    pub store: Arc<dyn Reads>,
    /// Sends calls to the actors of devices.
    pub devices: Devices,
    /// Sends calls to the forwarders of destinations.
    pub deliveries: Deliveries,
    /// Creates and cancels jobs, creates and changes schedules.
    pub jobs: Jobs,
    /// Runs firmware campaigns.
    pub campaigns: Campaigns,
    /// The bytes of firmware images.
    pub image_files: ImageFiles,
    /// Where devices download images.
    pub downloads: DownloadUris,
    /// The time, and the randomness for ids.
    pub clock: Clock,
    /// Encrypts the secrets of devices and destinations.
    pub master_key: Arc<MasterKey>,
    /// Authorises calls of the operator API.
    pub operator: OperatorToken,
    /// What the store lost before it was opened.
    pub lost: Option<Loss>,
    /// The networks of customers.
    pub networks: Networks,
    /// The key of the service for DTLS.
    pub server_key: Arc<ShownServerKey>,
    /// Copies the store.
    pub backups: Arc<dyn Backup>,
    /// Lists and drains nodes; none if this one is the only one.
    pub nodes: Option<Arc<dyn Nodes>>,
    /// Does with SMS what the network says.
    pub sms_network: SmsNetwork,
    /// The link to an SMS centre, if there is one.
    pub smpp: Option<Smpp>,
    /// The identity provider that people sign in with, if there is one.
    pub identity_provider: Option<IdentityProviderOptions>,
}

/// The state of the handlers; all threads share one value.
struct Api {
    /// Commits the changes of callers.
    commits: Arc<dyn Commit>,
    /// Reads what is stored.
    store: Arc<dyn Reads>,
    /// Sends calls to the actors of devices.
    devices: Devices,
    /// Sends calls to the forwarders of destinations.
    deliveries: Deliveries,
    /// The streams of events that are read.
    streams: EventStreams,
    /// Creates and cancels jobs, creates and changes schedules.
    jobs: Jobs,
    /// Runs firmware campaigns.
    campaigns: Campaigns,
    /// Firmware images.
    images: ImageStore,
    /// Which addresses destinations may have.
    policy: AddressPolicy,
    /// Held while a destination is made or changed.
    changing_destinations: tokio::sync::Mutex<()>,
    /// Held while an object definition is stored, so that the maximum per customer holds.
    changing_definitions: tokio::sync::Mutex<()>,
    /// Does with SMS what the network says.
    sms_network: SmsNetwork,
    /// The link to an SMS centre, if there is one.
    smpp: Option<Smpp>,
    /// The rules of SMS to devices.
    sms_rules: SmsRules,
    /// Held while a job is created: its devices are read once for all jobs at a time.
    creating_jobs: tokio::sync::Mutex<()>,
    /// The time, and the randomness for ids.
    clock: Clock,
    /// Encrypts the secrets of devices and destinations.
    master_key: Arc<MasterKey>,
    /// Authorises calls of the operator API.
    operator: OperatorToken,
    /// What the store lost before it was opened.
    lost: Option<Loss>,
    /// The networks of customers.
    networks: Networks,
    /// The key of the service for DTLS.
    server_key: Arc<ShownServerKey>,
    /// Copies the store.
    backups: Arc<dyn Backup>,
    /// Lists and drains nodes.
    nodes: Arc<dyn Nodes>,
    /// Held while the networks of a customer are set.
    changing_networks: tokio::sync::Mutex<()>,
    /// The `{platform}` path segment of the settings API.
    platform: String,
    /// Whether the service is starting, ready or draining.
    readiness: Readiness,
    /// The rate limit of each customer.
    rate: RateLimit<CustomerId>,
    /// The rate limit of token requests and of calls with wrong credentials of each address.
    address_rate: RateLimit<IpAddr>,
    /// The maximum size of a JSON body.
    json_body_bytes_max: usize,
    /// What the bodies of all calls in progress take.
    bodies: BodyBudget,
    /// The lifetime of access tokens, in seconds.
    token_lifetime_s: u32,
    /// The idempotency keys of the calls in progress.
    idempotency_locks: idempotency::IdempotencyLocks,
    /// The maximum number of devices in a bulk call.
    bulk_devices_max: u32,
    /// The least period of a schedule, in seconds.
    schedule_every_min_s: u32,
    /// The expiry of requests that set none of their own.
    action_expiry_ms: i64,
    /// How long a device in queue mode listens after its last message.
    awake_window_ms: i64,
    /// The maximum payload of a UDP request.
    udp_payload_bytes_max: usize,
    /// The maximum length of `data`, and of `payload` over CoAP, of a request.
    action_data_bytes_max: usize,
    /// The imports in progress.
    imports: import::RunningImports,
    /// The maximum number of lines of an import.
    import_lines_max: u32,
    /// How far the body of an import may be behind the least rate.
    import_behind_max: Duration,
    /// The OpenAPI document.
    openapi: web::Bytes,
    /// The documentation page.
    docs: web::Bytes,
    /// Who is signed in to the console.
    sessions: Mutex<SessionTable>,
    /// The identity provider that people sign in with, if there is one.
    identity_provider: Option<IdentityProvider>,
    /// Who is on the way there and back.
    sign_in_attempts: Mutex<AttemptTable>,
}

impl ApiState {
    /// The state of a service that is starting.
    pub fn new(config: &Config, parts: ApiParts) -> Self {
        meters::describe();
        let clock = parts.clock.clone();
        let provider = parts.identity_provider;
        let settings = openapi::ShownSettings::of(config);
        let document = openapi::document(ROUTES, &config.platform, &settings);
        let streams = EventStreams::new(StreamParts {
            clock: parts.clock.clone(),
            events: parts.store.clone(),
            devices: parts.store.clone(),
            rules: config.stream_rules(),
        });
        Self(web::Data::new(Api {
            commits: parts.commits,
            store: parts.store,
            devices: parts.devices,
            deliveries: parts.deliveries,
            streams,
            jobs: parts.jobs,
            campaigns: parts.campaigns,
            images: ImageStore {
                files: parts.image_files,
                bytes_max: config.image_bytes_max,
                quota_bytes: config.images_bytes_max,
                downloads: parts.downloads,
                receiving: tokio::sync::Semaphore::new(firmware::RECEIVED_AT_ONCE),
                changing: tokio::sync::Mutex::default(),
            },
            policy: config.policy(),
            changing_destinations: tokio::sync::Mutex::default(),
            changing_definitions: tokio::sync::Mutex::default(),
            sms_network: parts.sms_network,
            smpp: parts.smpp,
            sms_rules: config.sms_rules(),
            creating_jobs: tokio::sync::Mutex::default(),
            clock: parts.clock,
            master_key: parts.master_key,
            operator: parts.operator,
            lost: parts.lost,
            networks: parts.networks,
            server_key: parts.server_key,
            backups: parts.backups,
            nodes: nodes_of(config, &clock, parts.nodes),
            changing_networks: tokio::sync::Mutex::default(),
            platform: config.platform.clone(),
            readiness: Readiness::starting(),
            rate: RateLimit::new(config.rate_limit),
            address_rate: RateLimit::new(config.address_rate_limit),
            json_body_bytes_max: config.json_body_bytes_max,
            bodies: BodyBudget::new(config.bodies_bytes_max, config.json_body_bytes_max),
            token_lifetime_s: config.token_lifetime_s,
            idempotency_locks: idempotency::IdempotencyLocks::default(),
            bulk_devices_max: config.bulk_devices_max,
            schedule_every_min_s: config.schedule_every_min_s,
            action_expiry_ms: config.limits().action_expiry_ms,
            awake_window_ms: config.limits().awake_window_ms,
            udp_payload_bytes_max: config.udp_payload_bytes_max,
            action_data_bytes_max: config.action_data_bytes_max,
            imports: import::RunningImports::none(),
            import_lines_max: config.import_lines_max,
            import_behind_max: Duration::from_millis(config.import_behind_max_ms.into()),
            openapi: document.to_json(),
            docs: docs::page_of(&document, &settings),
            sessions: Mutex::new(SessionTable::new(SessionLifetime {
                idle_s: config.console_idle_s,
                total_s: config.console_session_s,
            })),
            identity_provider: provider.map(|options| IdentityProvider::new(options, clock)),
            sign_in_attempts: Mutex::default(),
        }))
    }

    /// From now on the service accepts calls.
    pub fn set_ready(&self) {
        self.0.readiness.enter(ServicePhase::Ready);
    }

    /// From now on `/readyz` answers 503, and each answer ends its connection, so that callers turn
    /// to another node.
    pub fn set_leaving(&self) {
        self.0.readiness.enter(ServicePhase::Leaving);
    }

    /// From now on the service only completes accepted calls, and `/readyz` answers 503. Streams of
    /// events are never complete, and end.
    pub fn set_draining(&self) {
        self.0.readiness.enter(ServicePhase::Draining);
        self.0.streams.end_all();
    }
}

/// The routes that an address serves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServedRoutes {
    /// Every route.
    All,
    /// Every route but those of the operator API.
    WithoutOperator,
    /// The operator API, access tokens, health, metrics and documentation.
    Operator,
}

impl ServedRoutes {
    /// All of them, each with the word by which nodes name it.
    const WORDS: [(Self, &'static str); 3] = [
        (Self::All, "all"),
        (Self::WithoutOperator, "without-operator"),
        (Self::Operator, "operator"),
    ];

    /// What the API serves at its address with this configuration.
    pub fn at_api(config: &Config) -> Self {
        match config.operator_http {
            None => Self::All,
            Some(_) => Self::WithoutOperator,
        }
    }

    fn word(self) -> &'static str {
        let word = Self::WORDS.iter().find(|(it, _)| *it == self);
        word.map_or("", |(_, word)| word)
    }

    fn routes(self) -> impl Iterator<Item = &'static Route> {
        ROUTES.iter().filter(move |route| match self {
            Self::All => true,
            Self::WithoutOperator => !matches!(route.access, Access::Operator | Access::Network),
            Self::Operator => !matches!(route.access, Access::Customer(_)),
        })
    }

    /// The paths in the order they are tried.
    fn paths(self) -> Vec<&'static str> {
        let mut paths = Vec::new();
        for route in self.routes() {
            if !paths.contains(&route.path) {
                paths.push(route.path);
            }
        }
        paths
    }
}

/// Mounts routes.
pub fn configure(app: &mut web::ServiceConfig, state: ApiState, served: ServedRoutes) {
    let body_bytes_max = state.0.json_body_bytes_max;
    let open_body = BodyLimit(OPEN_BODY_BYTES_MAX.min(body_bytes_max));
    app.app_data(BodyLimit(body_bytes_max));
    app.app_data(served);
    app.app_data(web::Data::from(Arc::clone(&state.0.nodes)));
    app.app_data(state.0);
    Mounting {
        served,
        credentials: CallCredentials::Bearer,
        open_body,
    }
    .mount(app);
    console::mount(app, served, open_body);
    app.default_service(other_path(served));
}

/// Which routes are mounted, and for whom.
struct Mounting {
    served: ServedRoutes,
    credentials: CallCredentials,
    /// The longest body from a caller without credentials.
    open_body: BodyLimit,
}

impl Mounting {
    fn mount(&self, app: &mut web::ServiceConfig) {
        let mut scopes: BTreeMap<&'static str, Scope> = BTreeMap::new();
        for path in self.served.paths() {
            let (literal, parameters) = split_at_parameters(path);
            let all = || ROUTES.iter().filter(|route| route.path == path);
            let mut resource = web::resource(parameters.unwrap_or(path));
            if all().all(|route| route.access == Access::Open) {
                resource = resource.app_data(self.open_body);
            }
            let served = self.served.routes().filter(|route| route.path == path);
            let mut served = served
                .filter(|route| self.credentials.suit(route.access))
                .peekable();
            if served.peek().is_none() {
                continue;
            }
            for route in served {
                for method in methods(&route.method) {
                    resource = resource.route(mounted(route, self.credentials, method));
                }
            }
            let resource = resource.default_service(other_method(path));
            if parameters.is_none() {
                app.service(resource);
                continue;
            }
            let scope = scopes.remove(literal);
            let scope = scope.unwrap_or_else(|| web::scope(literal));
            scopes.insert(literal, scope.service(resource));
        }
        // Of two scopes that a path begins with, the longer one has it: it is the later one.
        for scope in scopes.into_values().rev() {
            app.service(scope);
        }
    }
}

/// The segments of a path before its first parameter, and the rest, if it has a parameter. A path
/// with parameters is matched by a regular expression; its scope keeps it from being tried for
/// every call.
fn split_at_parameters(path: &'static str) -> (&'static str, Option<&'static str>) {
    match path.find("/{") {
        Some(at) => (&path[..at], Some(&path[at..])),
        None => (path, None),
    }
}

/// The methods of a route: GET includes HEAD (RFC 9110 section 9.1), for which the server leaves
/// out the body.
fn methods(method: &Method) -> Vec<Method> {
    match *method {
        Method::GET => vec![Method::GET, Method::HEAD],
        ref other => vec![other.clone()],
    }
}

fn mounted(
    route: &'static Route,
    credentials: CallCredentials,
    method: Method,
) -> actix_web::Route {
    let guard = RouteGuard {
        access: route.access,
        credentials,
        route: route.path,
    };
    guard.before((route.answer)(web::method(method)))
}

fn other_method(path: &'static str) -> actix_web::Route {
    let routes = ROUTES.iter().filter(|route| route.path == path);
    let known: Vec<_> = routes.flat_map(|route| methods(&route.method)).collect();
    let known: Vec<_> = known.iter().map(Method::as_str).collect();
    let allowed = known.join(", ");
    let refuse = move || {
        let failure = ApiError::method_not_allowed(&allowed);
        async move { Err::<HttpResponse, _>(failure) }
    };
    RouteGuard::open(path).before(web::route().to(refuse))
}

fn other_path(served: ServedRoutes) -> actix_web::Route {
    let refused = web::route().to(move |request: HttpRequest| {
        let is_it = |path: &&str| is_in_other_case(request.path(), path);
        let known = served.paths().into_iter().find(is_it);
        let failure = known.map_or_else(ApiError::path_unknown, ApiError::path_in_other_case);
        async move { Err::<HttpResponse, _>(failure) }
    });
    RouteGuard::open("other").before(refused)
}

/// Whether a path would match that of a route if upper and lower case did not count.
fn is_in_other_case(path: &str, route: &str) -> bool {
    let mut segments = path.split('/');
    let mut matches = |known: &str| {
        let segment = segments.next();
        segment.is_some_and(|it| known.starts_with('{') || it.eq_ignore_ascii_case(known))
    };
    route.split('/').all(&mut matches) && segments.next().is_none()
}

#[cfg(test)]
mod tests;
