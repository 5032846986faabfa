//! A fixture to call the API in: an embedded store, a customer with a client, and the operator.

use std::sync::Arc;

use actix::Actor as _;
use actix_web::App;
use actix_web::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use actix_web::web::{Bytes, ServiceConfig};
use serde_json::{Value, json};
use tempfile::TempDir;

use actors::arbiters::Arbiters;
use actors::broker::BrokerConnector;
use actors::campaigns::{CampaignParts, Campaigns};
use actors::clock::Clock;
use actors::delivery::{
    BrokerConnections, Deliveries, DeliveryParts, DeliveryShare, command_queue,
};
use actors::image_files::ImageFiles;
use actors::jobs::selection::DeviceSelection;
use actors::jobs::{JobParts, Jobs};
use actors::logging::Logging;
use actors::policy::PolicyCache;
use actors::registry::context::ArbiterParts;
use actors::sms::network::SmsNetwork;
use engine::arbiter::ArbiterLimits;
use engine::associations::server_key::ServerKey;
use engine::associations::{AssociationLimits, AssociationSecrets};
use engine::customer::SecretDigest;
use engine::firmware::delivery::DownloadUris;
use store::sealed::MasterKey;
use store::{Commit, Options, SledStore, Store};

use crate::api::networks::Networks;
use crate::api::{ApiParts, ApiState, ServedRoutes, configure, relayed};
use crate::coaps_key::ShownServerKey;
use crate::config::Config;
use crate::deliveries;
use crate::member::rules;
use crate::operator::OperatorToken;

pub(super) const OPERATOR: &str = "Bearer the-operator";

/// The API with a store of its own.
pub(super) struct TestService {
    pub(super) state: ApiState,
    pub(super) store: Arc<dyn Store>,
    _folder: TempDir,
}

/// The response to a call.
pub(super) struct CallAnswer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) bytes: Bytes,
}

/// A client and one of its tokens.
pub(super) struct TestCredentials {
    pub(super) id: String,
    pub(super) secret: String,
    /// The value of the Authorization header.
    pub(super) bearer: String,
}

impl TestService {
    pub(super) fn new() -> Self {
        Self::with(Config::of_defaults())
    }

    pub(super) fn with(config: Config) -> Self {
        Self::made(config, |store| store)
    }

    /// The API with a wrapped store.
    pub(super) fn over<C: Commit + 'static>(wrap: impl FnOnce(Arc<SledStore>) -> Arc<C>) -> Self {
        Self::made(Config::of_defaults(), |store| wrap(store))
    }

    fn made(config: Config, wrap: impl FnOnce(Arc<SledStore>) -> Arc<dyn Commit>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SledStore::open(Options::at(folder.path().join("store"))).unwrap();
        let store = Arc::new(store);
        let commits = wrap(Arc::clone(&store));
        let clock = Clock::new();
        let master_key = Arc::new(MasterKey::from_bytes(&[7; 32]));
        let image_files = ImageFiles::at(folder.path().join("firmware"));
        let home = ArbiterParts {
            clock: clock.clone(),
            commits: Arc::clone(&commits),
            store: store.clone(),
            policies: PolicyCache::of(&Arc::new(rules(&config, Vec::new())), &[]),
            epoch: 1,
            limits: ArbiterLimits::default(),
            association_limits: AssociationLimits::default(),
            secrets: AssociationSecrets {
                cookies: [1; 32],
                tickets: [2; 32],
                server_key: server_key(),
            },
            kept_sessions: None,
            master_key: Arc::clone(&master_key),
            images: image_files.clone(),
        };
        let devices = Arbiters::open_alone(vec![]).devices(&home);
        let operator = OperatorToken {
            digest: SecretDigest::of("the-operator"),
            path: None,
        };
        let http = deliveries::http(&config).unwrap();
        let delivering = DeliveryParts {
            clock: clock.clone(),
            commits: Arc::clone(&commits),
            store: store.clone(),
            brokers: BrokerConnector::beside(&http),
            connections: BrokerConnections::default(),
            http,
            commands: command_queue().0,
            policy: config.policy(),
            master_key: Arc::clone(&master_key),
            rules: Arc::new(config.delivery_rules()),
        };
        let logging = (clock.clone(), Arc::clone(&commits), store.clone());
        let logging = Logging::new(logging.0, logging.1, logging.2).start();
        let post = Deliveries::start(delivering, DeliveryShare::All, Vec::new(), &logging);
        let job_parts = JobParts {
            clock: clock.clone(),
            commits: Arc::clone(&commits),
            devices: devices.clone(),
            selection: DeviceSelection {
                store: store.clone(),
                devices_max: config.job_devices_max,
            },
            limits: config.job_limits(),
        };
        let jobs = Jobs::start(job_parts, Vec::new(), Vec::new());
        let campaign_parts = CampaignParts {
            clock: clock.clone(),
            commits: Arc::clone(&commits),
            store: store.clone(),
            devices: devices.clone(),
        };
        let sms_network = SmsNetwork::new(clock.clone(), commits.clone(), store.clone());
        let parts = ApiParts {
            commits,
            store: store.clone(),
            devices,
            deliveries: post,
            jobs,
            campaigns: Campaigns::start(campaign_parts, Vec::new()),
            image_files,
            downloads: DownloadUris::default(),
            clock,
            master_key,
            operator,
            lost: None,
            networks: Networks::default(),
            server_key: Arc::new(ShownServerKey::new(server_key())),
            backups: store.clone(),
            nodes: None,
            sms_network,
            smpp: None,
            identity_provider: None,
        };
        let state = ApiState::new(&config, parts);
        Self {
            state,
            store,
            _folder: folder,
        }
    }

    /// Creates a customer and an API client with these scopes.
    pub(super) async fn customer(&self, id: &str, scopes: &[&str]) -> TestCredentials {
        let customer = json!({"id": id, "name": id});
        let path = "/operator-api/v1/customers";
        assert_eq!(
            self.post(path, OPERATOR, customer).await.status,
            StatusCode::CREATED
        );
        self.client(id, scopes).await
    }

    /// Creates an API client of a customer and a token for it.
    pub(super) async fn client(&self, customer: &str, scopes: &[&str]) -> TestCredentials {
        let path = format!("/operator-api/v1/customers/{customer}/clients");
        let body = json!({"name": "test", "scopes": scopes});
        self.credentials(&path, body).await
    }

    /// Creates an API client of the network, and returns the Authorization header of its token.
    pub(super) async fn network_client(&self) -> String {
        let path = "/operator-api/v1/network/clients";
        let made = self.credentials(path, json!({"name": "test"})).await;
        made.bearer
    }

    async fn credentials(&self, path: &str, body: Value) -> TestCredentials {
        let made = self.post(path, OPERATOR, body).await;
        assert_eq!(made.status, StatusCode::CREATED);
        let text = |name: &str| made.json()[name].as_str().unwrap().to_owned();
        let (id, secret) = (text("clientId"), text("clientSecret"));
        let form = format!("grant_type=client_credentials&client_id={id}&client_secret={secret}");
        let issued = self.call(
            Self::request("POST", "/oauth/token")
                .set_payload(form)
                .insert_header((CONTENT_TYPE, "application/x-www-form-urlencoded")),
        );
        let token = issued.await.json()["access_token"]
            .as_str()
            .unwrap()
            .to_owned();
        TestCredentials {
            id,
            secret,
            bearer: format!("Bearer {token}"),
        }
    }

    pub(super) async fn get(&self, path: &str, bearer: &str) -> CallAnswer {
        self.call(Self::request("GET", path).insert_header((AUTHORIZATION, bearer)))
            .await
    }

    pub(super) async fn delete(&self, path: &str, bearer: &str) -> CallAnswer {
        self.call(Self::request("DELETE", path).insert_header((AUTHORIZATION, bearer)))
            .await
    }

    pub(super) async fn post(&self, path: &str, bearer: &str, body: Value) -> CallAnswer {
        let request = Self::request("POST", path).insert_header((AUTHORIZATION, bearer));
        self.call(request.set_json(body)).await
    }

    pub(super) async fn patch(&self, path: &str, bearer: &str, body: Value) -> CallAnswer {
        let request = Self::request("PATCH", path).insert_header((AUTHORIZATION, bearer));
        self.call(request.set_json(body)).await
    }

    pub(super) async fn call(&self, request: TestRequest) -> CallAnswer {
        let state = self.state.clone();
        let mounted = |app: &mut ServiceConfig| configure(app, state, ServedRoutes::All);
        Self::call_of(mounted, request).await
    }

    /// A call at the address for other nodes.
    pub(super) async fn call_of_node(&self, request: TestRequest) -> CallAnswer {
        let mounted = |app: &mut ServiceConfig| relayed::mount(app, &self.state);
        Self::call_of(mounted, request).await
    }

    async fn call_of(mounted: impl FnOnce(&mut ServiceConfig), request: TestRequest) -> CallAnswer {
        let app = init_service(App::new().configure(mounted)).await;
        let response = call_service(&app, request.to_request()).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let media_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let bytes = match media_type {
            // It has no end.
            Some(b"text/event-stream") => Bytes::new(),
            Some(_) | None => read_body(response).await,
        };
        CallAnswer {
            status,
            headers,
            bytes,
        }
    }

    pub(super) fn request(method: &str, path: &str) -> TestRequest {
        TestRequest::with_uri(path).method(Method::from_bytes(method.as_bytes()).unwrap())
    }
}

impl CallAnswer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The code and field of every fault.
    pub(super) fn faults(&self) -> Vec<(String, String)> {
        let text = |fault: &Value, name: &str| fault[name].as_str().unwrap_or("").to_owned();
        let faults = self.json()["errors"].as_array().cloned().unwrap();
        faults
            .iter()
            .map(|fault| (text(fault, "code"), text(fault, "field")))
            .collect()
    }
}

fn server_key() -> ServerKey {
    ServerKey::from_scalar(&[3; 32]).unwrap()
}
