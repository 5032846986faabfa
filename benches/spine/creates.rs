//! How many action requests are created per second, each durable before its 202?
//!
//! Rounds alternate between the endpoint, the same endpoint over a store that keeps nothing, and
//! the store alone with the batches the endpoint would commit.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Instant;

use actix_web::web::ServiceConfig;
use actors::broker::BrokerConnector;
use actors::campaigns::{CampaignParts, Campaigns};
use actors::delivery::{
    BrokerConnections, Deliveries, DeliveryParts, DeliveryShare, command_queue,
};
use actors::image_files::ImageFiles;
use actors::jobs::selection::DeviceSelection;
use actors::jobs::{JobParts, Jobs};
use actors::sms::network::SmsNetwork;
use actors::web::{self, Listening, Web};
use engine::action::{Lwm2mRequest, Mode, NewAction, Request};
use engine::associations::server_key::ServerKey;
use engine::change::{Batch, Change, Owner};
use engine::customer::{AccessToken, ApiClient, ClientOwner, Customer, Scopes, SecretDigest};
use engine::device::Device;
use engine::device::record::{DeviceRecord, RestoredDevice};
use engine::effect::Effects;
use engine::firmware::delivery::DownloadUris;
use engine::ids::{ClientId, TraceId};
use engine::policy::CustomerPolicy;
use harness::load::figures::Figures;
use signalbox::api::networks::Networks;
use signalbox::api::{self, ApiParts, ApiState, ServedRoutes};
use signalbox::coaps_key::ShownServerKey;
use signalbox::config::{self, Config};
use signalbox::deliveries;
use signalbox::operator::OperatorToken;
use signalbox::telemetry;
use store::Commit;
use store::sealed::MasterKey;

use crate::callers::{Api, CALLERS, Called, Shown, create};
use crate::line::{self, ApiLessService};
use crate::shelf::TempStore;
use crate::unwritten::NullStore;

/// The devices of the requests.
pub(crate) const DEVICES: u32 = 20_000;

/// Requests per round: a few for each device.
const REQUESTS: usize = 40_000;

/// Measured rounds, an odd number.
const ROUNDS: u32 = 5;

const TOKEN: &str = "bench-bench-bench-bench-bench-bench-bench-1";

/// Measures and prints.
pub(crate) async fn run() {
    measure(ROUNDS).await.show();
}

/// Measures in so many rounds.
pub(crate) async fn measure(count: u32) -> Rounds {
    let config = config();
    // Logging costs as much as in the service.
    telemetry::start(&config.log, config.log_format).expect("the process has no log yet");
    let shelf = TempStore::with_devices(DEVICES).await;
    shelf.commit(credentials(&shelf)).await;
    let service = ApiLessService::start(&shelf, shelf.store.clone()).await;
    let unwritten = Arc::new(NullStore);
    let unkept = ApiLessService::start(&shelf, unwritten.clone()).await;
    let endpoint = serve(&config, &shelf, shelf.store.clone(), &service);
    let without = serve(&config, &shelf, unwritten, &unkept);
    for api in [&endpoint, &without] {
        create(api, DEVICES as usize, DEVICES).await;
    }
    let mut rounds = Rounds::default();
    for _ in 0..count {
        rounds
            .endpoint
            .push(create(&endpoint, REQUESTS, DEVICES).await);
        rounds
            .without
            .push(create(&without, REQUESTS, DEVICES).await);
        rounds.alone.push(write(&shelf).await);
    }
    service.stop().await;
    unkept.stop().await;
    rounds
}

/// The results of the rounds.
#[derive(Default)]
pub(crate) struct Rounds {
    endpoint: Vec<Called>,
    without: Vec<Called>,
    alone: Vec<Called>,
}

impl Rounds {
    /// Requests created per second.
    pub(crate) fn rates(&self) -> Figures {
        Shown::of(&self.endpoint).rate
    }

    /// The rate, of that of the same endpoint without its commit.
    pub(crate) fn of_http(&self) -> Figures {
        self.rates().over(&Shown::of(&self.without).rate)
    }

    /// The rate, of that of the store alone.
    pub(crate) fn of_store(&self) -> Figures {
        self.rates().over(&Shown::of(&self.alone).rate)
    }

    fn show(&self) {
        println!("## Action requests created, {CALLERS} callers\n");
        println!("| | per second | p50, ms | p99, ms |");
        println!("|---|---|---|---|");
        Shown::of(&self.endpoint).print("endpoint");
        Shown::of(&self.without).print("endpoint without its commit");
        Shown::of(&self.alone).print("store alone");
        for (name, ratio) in [
            ("endpoint without its commit", self.of_http()),
            ("store alone", self.of_store()),
        ] {
            println!("| endpoint : {name} | {} | | |", ratio.shown(2));
        }
        println!();
    }
}

/// The default configuration.
pub(crate) fn config() -> Config {
    println!("the rate limit of the API is off");
    let flags = vec![
        ("http", "127.0.0.1:0".to_owned()),
        ("rate_limit", "0".to_owned()),
    ];
    let (config, _) = config::load(&[], None, flags).expect("the defaults are a configuration");
    config
}

/// Serves the API over the devices of an arbiter; returns its address.
pub(crate) fn serve(
    config: &Config,
    shelf: &TempStore,
    commits: Arc<dyn Commit>,
    line: &ApiLessService,
) -> Api {
    let operator = OperatorToken {
        digest: SecretDigest::of(TOKEN),
        path: None,
    };
    let master_key = Arc::new(MasterKey::from_bytes(&[7; 32]));
    let http = deliveries::http(config).expect("the defaults can be delivered with");
    let delivering = DeliveryParts {
        clock: shelf.clock.clone(),
        commits: Arc::clone(&commits),
        store: shelf.store.clone(),
        brokers: BrokerConnector::beside(&http),
        connections: BrokerConnections::default(),
        http,
        commands: command_queue().0,
        policy: config.policy(),
        master_key: Arc::clone(&master_key),
        rules: Arc::new(config.delivery_rules()),
    };
    let job_parts = JobParts {
        clock: shelf.clock.clone(),
        commits: Arc::clone(&commits),
        selection: DeviceSelection {
            store: shelf.store.clone(),
            devices_max: config.job_devices_max,
        },
        devices: line.devices.clone(),
        limits: config.job_limits(),
    };
    let sms_network = SmsNetwork::new(
        shelf.clock.clone(),
        Arc::clone(&commits),
        shelf.store.clone(),
    );
    let campaign_parts = CampaignParts {
        clock: shelf.clock.clone(),
        commits: Arc::clone(&commits),
        store: shelf.store.clone(),
        devices: line.devices.clone(),
    };
    let parts = ApiParts {
        commits,
        store: shelf.store.clone(),
        devices: line.devices.clone(),
        deliveries: Deliveries::start(delivering, DeliveryShare::All, Vec::new(), &line.logging),
        jobs: Jobs::start(job_parts, Vec::new(), Vec::new()),
        campaigns: Campaigns::start(campaign_parts, Vec::new()),
        image_files: ImageFiles::at(""),
        downloads: DownloadUris::default(),
        clock: shelf.clock.clone(),
        master_key,
        operator,
        lost: None,
        networks: Networks::default(),
        server_key: Arc::new(ShownServerKey::new(
            ServerKey::from_scalar(&[3; 32]).expect("a key"),
        )),
        backups: shelf.store.clone(),
        nodes: None,
        sms_network,
        smpp: None,
        identity_provider: None,
    };
    let state = ApiState::new(config, parts);
    state.set_ready();
    let listener = web::open(config.http).expect("a port is free");
    let address = listener.local_addr().expect("a listener has an address");
    let workers = available_parallelism().map_or(1, usize::from);
    let listening = Listening {
        listener,
        tls: None,
        workers,
        limits: config.connection_limits(),
        drain_max: web::DRAIN_MAX,
    };
    let routes =
        move |app: &mut ServiceConfig| api::configure(app, state.clone(), ServedRoutes::All);
    Web::start_serving(listening, Arc::new(routes)).expect("the API is served");
    Api {
        address,
        token: TOKEN,
    }
}

/// Commits with as many writers as there are callers; each waits for its receipt.
async fn write(shelf: &TempStore) -> Called {
    let batches: Vec<Batch> = (0..REQUESTS).map(|number| batch(shelf, number)).collect();
    let begun_at = Instant::now();
    let waits = shelf.commit_all(batches, CALLERS).await;
    Called {
        took: begun_at.elapsed(),
        waits,
    }
}

/// The batch that the machine of a device commits for a new request.
pub(crate) fn batch(shelf: &TempStore, number: usize) -> Batch {
    let number = u32::try_from(number).expect("a round is small") % DEVICES;
    let restored = RestoredDevice {
        profile: crate::fleet::profile(number),
        record: DeviceRecord::default(),
        pending: Vec::new(),
        recent_events: Box::default(),
    };
    let mut m = shelf.clock.moment();
    let terms = Arc::new(CustomerPolicy::of_rules(Arc::new(line::rules())));
    let mut device = Device::restore(&mut m, terms, restored);
    let mut out = Effects::new();
    let trace = TraceId::new(m.uuid());
    device
        .submit(&mut m, read_when_active(trace), &mut out)
        .expect("the device takes it");
    let owner = Owner::Shard {
        shard: device.key().shard(),
        epoch: shelf.epoch,
    };
    out.settle(owner).0
}

/// The request of the callers, parsed.
fn read_when_active(trace: TraceId) -> NewAction {
    NewAction {
        request: Request::Lwm2m(Lwm2mRequest::Read(
            "/3303/0/5700".parse().expect("three numbers are a path"),
        )),
        mode: Mode::SendWhenActive,
        attempts_permitted: 1,
        expires_in_s: None,
        not_before: None,
        wake_up: None,
        trace,
        idempotent_call: None,
    }
}

/// A customer, an API client, and a token for it.
pub(crate) fn credentials(shelf: &TempStore) -> Batch {
    let now = shelf.clock.now();
    let customer = crate::fleet::customer();
    let id = ClientId::parse("bench").expect("letters are an id");
    let client = ApiClient {
        id: id.clone(),
        owner: ClientOwner::Customer(customer.clone()),
        name: "bench".into(),
        secrets: Vec::new(),
        scopes: Scopes::ALL,
        created_at: now,
    };
    let token = AccessToken {
        digest: SecretDigest::of(TOKEN),
        client: id,
        expires_at: now.plus_s(86_400),
        scopes: Scopes::ALL,
    };
    let customer = Customer {
        networks: Box::default(),
        wake_up: None,
        offline_after_s: None,
        authorities: None,
        id: customer,
        number: 1,
        name: "bench".into(),
        created_at: now,
    };
    Batch {
        changes: vec![
            Change::PutCustomer(customer),
            Change::PutClient(client),
            Change::PutToken(token),
        ],
        ..Batch::default()
    }
}
