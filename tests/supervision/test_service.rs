//! The inside of the service without its API: a registry on an arbiter, and devices that are
//! sockets.

use std::future::Future;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use actix::Actor as _;
use actix_rt::System;
use actors::arbiters::Arbiters;
use actors::broker::BrokerConnector;
use actors::clock::Clock;
use actors::delivery::{
    BrokerConnections, Deliveries, DeliveryParts, DeliveryShare, command_queue,
};
use actors::devices::Devices;
use actors::http::{HttpClient, HttpOptions};
use actors::image_files::ImageFiles;
use actors::jobs::selection::DeviceSelection;
use actors::jobs::{JobParts, Jobs};
use actors::logging::Logging;
use actors::policy::PolicyCache;
use actors::registry::context::ArbiterParts;
use actors::socket::{Open, open_shared};
use engine::action::{Lwm2mRequest, Mode, NewAction, Request};
use engine::arbiter::ArbiterLimits;
use engine::associations::server_key::ServerKey;
use engine::associations::{AssociationLimits, AssociationSecrets};
use engine::change::{Batch, Change};
use engine::credentials::DeviceCredentials;
use engine::customer::Customer;
use engine::delivery::address::policy::AddressPolicy;
use engine::delivery::forwarding::DeliveryRules;
use engine::device::queue::Accepted;
use engine::device::refusal::SubmitRefusal;
use engine::device::snapshot::Snapshot;
use engine::ids::{CustomerId, DeviceId, DeviceKey, Endpoint, Iccid, TraceId};
use engine::job::runner::JobLimits;
use engine::limits::Limits;
use engine::profile::{Profile, SecurityRequirement};
use engine::rules::{EndpointTrust, Rules, TransmissionRules};
use engine::supervision::Unserved;
use engine::tags::Tags;
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::lwm2m::path::Path;
use store::sealed::MasterKey;
use store::{Commit as _, Options, SledStore};
use tempfile::TempDir;
use tracing::error_span;

use crate::faulty::FaultyStore;

/// How long anything may take before it counts as broken.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// After this time a device repeats an unanswered message.
const REPEAT: Duration = Duration::from_millis(300);

/// A running registry with its store.
pub(crate) struct TestService {
    pub(crate) store: Arc<SledStore>,
    /// The commits of all actors.
    pub(crate) commits: Arc<FaultyStore>,
    pub(crate) clock: Clock,
    pub(crate) deliveries: Deliveries,
    pub(crate) jobs: Jobs,
    devices: Devices,
    coap: SocketAddr,
    /// The address for bare datagrams.
    pub(crate) udp: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _dir: TempDir,
}

impl TestService {
    /// A service with one customer and these devices, none of them registered.
    pub(crate) fn new<const N: usize>(names: [&str; N]) -> Self {
        Self::with(names, None)
    }

    /// A service whose devices all have this address.
    pub(crate) fn at<const N: usize>(address: IpAddr, names: [&str; N]) -> Self {
        Self::with(names, Some(address))
    }

    fn with<const N: usize>(names: [&str; N], ip: Option<IpAddr>) -> Self {
        let dir = TempDir::new().unwrap();
        let store = SledStore::open(Options::at(dir.path().join("store"))).unwrap();
        let store = Arc::new(store);
        let commits = Arc::new(FaultyStore::new(Arc::clone(&store)));
        let clock = Clock::new();
        let devices = names.iter().map(|name| put_device(&clock, name, ip));
        wait_for(commits.commit(Batch {
            changes: devices.chain([put_customer(&clock)]).collect(),
            ..Batch::default()
        }))
        .unwrap();
        let (started, starting) = channel();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let doors = (Arc::clone(&commits), Arc::clone(&store));
        let parts = (doors, clock.clone());
        let thread = std::thread::spawn(move || run(parts, &started, stopped));
        let (devices, post, jobs, [coap, udp]) = starting.recv_timeout(DEADLINE).unwrap();
        Self {
            store,
            commits,
            clock,
            deliveries: post,
            jobs,
            devices,
            coap,
            udp,
            stop: Some(stop),
            thread: Some(thread),
            _dir: dir,
        }
    }

    /// A device: a socket that sends to the registry.
    pub(crate) fn device(&self) -> Socket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(self.coap).unwrap();
        Socket(socket)
    }

    /// A device with an address of its own: a socket that sends CoAP to the registry.
    pub(crate) fn device_at(&self, address: IpAddr) -> Socket {
        let socket = UdpSocket::bind((address, 0)).unwrap();
        socket.connect(self.coap).unwrap();
        Socket(socket)
    }

    /// The key of a device.
    pub(crate) fn key(&self, name: &str) -> DeviceKey {
        DeviceKey::of(&customer(), &DeviceId::parse(name).unwrap())
    }

    pub(crate) fn inspect(&self, name: &str) -> Result<Snapshot, Unserved> {
        wait_for(self.devices.inspect(self.key(name)))
    }

    pub(crate) fn retire(&self, name: &str) -> Result<(), Unserved> {
        wait_for(self.devices.retire(self.key(name)))
    }

    /// Removes a device from the store without notifying any actor.
    pub(crate) fn remove_in_store(&self, name: &str) {
        let removed = self.commits.commit(Batch {
            changes: vec![Change::RemoveDevice(self.key(name))],
            ..Batch::default()
        });
        wait_for(removed).unwrap();
    }

    /// Asks a device to read its changed profile.
    pub(crate) fn read_profile(&self, name: &str) -> Result<(), Unserved> {
        wait_for(self.devices.take_identity(self.key(name)))
    }

    /// Submits a read that waits for the device.
    pub(crate) fn submit(&self, name: &str) -> Result<Result<Accepted, SubmitRefusal>, Unserved> {
        let trace = TraceId::new(self.clock.moment().uuid());
        self.submit_under(trace, name)
    }

    /// The same in a call with this trace.
    pub(crate) fn submit_under(
        &self,
        trace: TraceId,
        name: &str,
    ) -> Result<Result<Accepted, SubmitRefusal>, Unserved> {
        let request = Request::Lwm2m(Lwm2mRequest::Read(Path::resource(3, 0, 0)));
        let call = error_span!("call", %trace);
        call.in_scope(|| self.ask(name, request, Mode::SendWhenActive, trace))
    }

    /// Submits a request to be sent at once.
    pub(crate) fn submit_now(
        &self,
        name: &str,
        request: Request,
    ) -> Result<Result<Accepted, SubmitRefusal>, Unserved> {
        let trace = TraceId::new(self.clock.moment().uuid());
        self.ask(name, request, Mode::SendNow, trace)
    }

    fn ask(
        &self,
        name: &str,
        request: Request,
        mode: Mode,
        trace: TraceId,
    ) -> Result<Result<Accepted, SubmitRefusal>, Unserved> {
        let action = NewAction {
            request,
            mode,
            attempts_permitted: 1,
            expires_in_s: None,
            not_before: None,
            wake_up: None,
            trace,
            idempotent_call: None,
        };
        wait_for(self.devices.submit(self.key(name), action))
    }

    /// Tries until a condition holds.
    pub(crate) fn until(&self, mut holds: impl FnMut() -> bool) {
        let started = Instant::now();
        while !holds() {
            assert!(started.elapsed() < DEADLINE, "it never came to hold");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}

impl Drop for TestService {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(
                ended.is_ok() || std::thread::panicking(),
                "the system did not end well"
            );
        }
    }
}

type Started = Sender<(Devices, Deliveries, Jobs, [SocketAddr; 2])>;

fn run(
    (doors, clock): ((Arc<FaultyStore>, Arc<SledStore>), Clock),
    started: &Started,
    stopped: tokio::sync::oneshot::Receiver<()>,
) {
    System::new().block_on(async {
        let (commits, store) = doors.clone();
        let logging = Logging::new(clock.clone(), commits.clone(), store.clone()).start();
        // Two sockets, so that a datagram may reach the other one.
        let two = || open_shared("127.0.0.1:0".parse().unwrap(), 2).unwrap();
        let open = |((coap, coaps), udp)| Open { coap, coaps, udp };
        let sockets: Vec<Open> = two().into_iter().zip(two()).zip(two()).map(open).collect();
        let listening = [&sockets[0].coap, &sockets[0].udp];
        let listening = listening.map(|socket| socket.local_addr().unwrap());
        let patience = TransmissionRules {
            ack_timeout_ms: 2_000,
            max_retransmit: 4,
            response_timeout_ms: 93_000,
        };
        let rules = Rules {
            addresses: AddressPolicy::PrivateAllowed,
            ..Rules::new(Limits::default(), patience, EndpointTrust::NameSuffices)
        };
        let (job_commits, job_clock) = (doors.0.clone(), clock.clone());
        let selection = DeviceSelection {
            store: doors.1.clone(),
            devices_max: 100,
        };
        let delivering = delivering(doors, clock.clone());
        let post = Deliveries::start(delivering, DeliveryShare::All, Vec::new(), &logging);
        let parts = ArbiterParts {
            clock,
            commits,
            store,
            policies: PolicyCache::of(&Arc::new(rules), &[]),
            epoch: 1,
            limits: ArbiterLimits::default(),
            association_limits: AssociationLimits::default(),
            secrets: AssociationSecrets {
                cookies: [1; 32],
                tickets: [2; 32],
                server_key: ServerKey::from_scalar(&[3; 32]).expect("a key"),
            },
            kept_sessions: None,
            master_key: Arc::new(MasterKey::from_bytes(&[3; 32])),
            images: ImageFiles::at(""),
        };
        let arbiters = Arbiters::start(parts.clone(), sockets, &logging).await;
        let job_parts = JobParts {
            clock: job_clock,
            commits: job_commits,
            devices: arbiters.devices(&parts),
            selection,
            limits: JobLimits {
                running_max: 10,
                schedules_max: 10,
            },
        };
        let jobs = Jobs::start(job_parts, Vec::new(), Vec::new());
        let handles = (arbiters.devices(&parts), post, jobs, listening);
        started.send(handles).unwrap();
        let _ = stopped.await;
        arbiters.stop(&*parts.commits).await;
    });
}

fn delivering((commits, store): (Arc<FaultyStore>, Arc<SledStore>), clock: Clock) -> DeliveryParts {
    let policy = AddressPolicy::PrivateAllowed;
    let http = HttpClient::new(HttpOptions::under(policy)).unwrap();
    DeliveryParts {
        clock,
        commits,
        store,
        brokers: BrokerConnector::beside(&http),
        connections: BrokerConnections::default(),
        http,
        commands: command_queue().0,
        policy,
        master_key: Arc::new(MasterKey::from_bytes(&[7; 32])),
        rules: Arc::new(DeliveryRules {
            retry_delays_ms: [50; 4].into(),
            sms_retry_delays_ms: [50; 4].into(),
            parallel_max: 64,
            backlog_max: 5_000_000,
        }),
    }
}

/// A device's socket.
pub(crate) struct Socket(UdpSocket);

/// The answer to a device.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Code,
    pub(crate) max_age_s: Option<u32>,
    location: Vec<String>,
}

impl Answer {
    /// The location of the registration that was created.
    pub(crate) fn location(&self) -> String {
        assert_eq!(self.code, Code::CREATED);
        assert_eq!(self.location.first().map(String::as_str), Some("rd"));
        self.location.get(1).unwrap().clone()
    }
}

impl Socket {
    /// Sends a request once.
    pub(crate) fn send(&mut self, request: &Message) {
        self.0.send(&request.encode()).unwrap();
    }

    /// Sends a request once and waits for its answer.
    pub(crate) fn ask(&mut self, request: &Message) -> Answer {
        self.send(request);
        self.answer_to(request, DEADLINE)
            .expect("the request is answered")
    }

    /// Repeats a request, as the message layer would, until it is answered.
    pub(crate) fn ask_until_answered(&mut self, request: &Message) -> Answer {
        let started = Instant::now();
        loop {
            self.send(request);
            if let Some(answer) = self.answer_to(request, REPEAT) {
                return answer;
            }
            assert!(
                started.elapsed() < DEADLINE,
                "the request was never answered"
            );
        }
    }

    /// The address of the socket.
    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// The next message that arrives.
    pub(crate) fn next(&mut self) -> Message {
        let mut buffer = [0; 2_048];
        self.0.set_read_timeout(Some(DEADLINE)).unwrap();
        let length = self.0.recv(&mut buffer).expect("a message arrives");
        Message::decode(&buffer[..length]).unwrap()
    }

    /// Whether nothing arrives before the Reset that answers a ping.
    pub(crate) fn receives_nothing_before_a_pong(&mut self) -> bool {
        let ping = Message::ping(MessageId(0xFFF0));
        self.send(&ping);
        self.next() == Message::reset(ping.message_id)
    }

    fn answer_to(&mut self, request: &Message, wait: Duration) -> Option<Answer> {
        self.0.set_read_timeout(Some(wait)).unwrap();
        let mut buffer = [0; 2_048];
        loop {
            let length = self.0.recv(&mut buffer).ok()?;
            let message = Message::decode(&buffer[..length]).unwrap();
            if message.message_id == request.message_id {
                return Some(Answer {
                    code: message.code,
                    max_age_s: message.max_age(),
                    location: message.location_path().map(str::to_owned).collect(),
                });
            }
        }
    }
}

/// A registration with a name.
pub(crate) fn register(name: &str) -> Message {
    request(0x0101)
        .with_uri_path(["rd"])
        .with_uri_query([&format!("ep={name}"), "lt=300", "lwm2m=1.1"])
        .with_payload("</1/0>,</3/0>")
}

/// An update that changes the lifetime.
pub(crate) fn changing_update(location: &str, lifetime_s: u32) -> Message {
    request(0x0102)
        .with_uri_path(["rd", location])
        .with_uri_query([format!("lt={lifetime_s}")])
}

fn request(message_id: u16) -> Message {
    let token = Token::new(&message_id.to_be_bytes()).unwrap();
    Message::request(
        MessageKind::Confirmable,
        Code::POST,
        MessageId(message_id),
        token,
    )
}

/// The customer of every device here.
pub(crate) fn customer() -> CustomerId {
    CustomerId::parse("acme").unwrap()
}

fn put_customer(clock: &Clock) -> Change {
    Change::PutCustomer(Customer {
        networks: Box::default(),
        wake_up: None,
        offline_after_s: None,
        authorities: None,
        id: customer(),
        number: 1,
        name: "Acme".into(),
        created_at: clock.now(),
    })
}

fn put_device(clock: &Clock, name: &str, ip: Option<IpAddr>) -> Change {
    let profile = Profile {
        customer: customer(),
        device: DeviceId::parse(name).unwrap(),
        number: clock.moment().next_u64() >> 11,
        iccid: Iccid::parse(name).unwrap(),
        imsi: None,
        msisdn: None,
        ip,
        endpoint: Endpoint::parse(name).unwrap(),
        name: None,
        credentials: DeviceCredentials::default(),
        security: SecurityRequirement::Any,
        created_at: clock.now(),
        tags: Tags::default(),
        wake_up: None,
        offline_after_s: None,
    };
    Change::PutDevice {
        was: None,
        profile: Box::new(profile),
    }
}

/// Waits for a future without a runtime of its own.
pub(crate) fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(future)
}
