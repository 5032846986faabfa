//! What does `signalbox demo` do? It runs the service on a temporary store with simulated devices:
//! they register, a request waits for a sleeping device, the device wakes up and answers.
//!
//! Everything it prints comes from the API over HTTP or from the simulated devices; the demo has no
//! other access to the service.

mod by_hand;
mod caller;
mod cast;
mod endpoint;
mod narrator;
mod role;
mod stage;
mod story;

use std::convert::Infallible;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use actix_rt::System;
use tokio::task::{JoinHandle, yield_now};

use self::by_hand::Handout;
use self::caller::Caller;
use self::cast::{Cast, Part, Servers};
use self::endpoint::Endpoint;
use self::narrator::{Ink, Narrator, Voice};
use self::stage::{Stage, StageError};
use self::story::{Story, Why, create_devices};
use crate::api_client::{ApiClient, Credentials};
use crate::config::{self, Config, Layers};
use crate::service::{Service, StartError, wait_for_signal};

const CUSTOMER: &str = "demo";
const CUSTOMER_NAME: &str = "Harbour Town Works";

/// Why the demo ended before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// There is no place for it.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The service did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A step of the story failed.
    #[error("the demo failed while {step}: {why}")]
    Step {
        /// What was to be done.
        step: &'static str,
        /// What came in the way, for a person.
        why: String,
    },
}

/// Shows the service at work until the process is asked to stop.
pub fn run(config: &Config, layers: &Layers) -> Result<(), DemoError> {
    let ink = Ink::for_stdout(config::no_color().as_deref());
    let mut narrator = Narrator::new(Box::new(io::stdout()), ink);
    let system = System::new();
    let (stage, outcome) = system.block_on(async {
        // From here on a signal ends the demo in order, whatever was made until then.
        let stop = actix_rt::spawn(wait_for_signal());
        yield_now().await;
        let stage = Stage::set(config, layers)?;
        let outcome = play(&stage, &mut narrator, stop).await;
        Ok::<_, StageError>((stage, outcome))
    })?;
    // The store is closed before the directory it is in goes.
    drop(system);
    let left = stage.strike();
    outcome.and(left.map_err(DemoError::from))
}

async fn play(
    stage: &Stage,
    narrator: &mut Narrator,
    stop: JoinHandle<()>,
) -> Result<(), DemoError> {
    // The endpoint is there before anything is posted to it, and goes last.
    let opened = async { Endpoint::open().map_err(Why::Socket) };
    let mut endpoint = step("opening the customer's endpoint", opened).await?;
    let service = Service::start(&stage.config).await?;
    let outcome = tokio::select! {
        ended = perform(stage, &service, &mut endpoint, narrator) => {
            ended.map(|never| match never {})
        }
        _ = stop => Ok(()),
    };
    if outcome.is_ok() {
        let goodbye = async { Ok(narrator.tell(Voice::Service, "stopping")?) };
        step("stopping", goodbye).await?;
    }
    service.stop().await;
    endpoint.close().await;
    outcome
}

/// The story in its order; it has no end of its own.
async fn perform(
    stage: &Stage,
    service: &Service,
    endpoint: &mut Endpoint,
    narrator: &mut Narrator,
) -> Result<Infallible, DemoError> {
    let base = format!("http://{}", reachable(service.http));
    let servers = Servers {
        coap: reachable(service.coap),
        udp: reachable(service.udp),
    };
    step("starting", async { open(stage, &base, servers, narrator) }).await?;
    let admission = admit(stage, service, &base, narrator);
    let caller = step("creating a customer and an API client", admission).await?;
    let chosen = choose(&caller, &stage.config.platform, endpoint, narrator);
    let webhook = step("creating the webhook", chosen).await?;
    let parts = cast::parts(servers);
    let created = create_devices(narrator, &caller, &parts);
    step("creating the devices", created).await?;
    let cast = step("starting the devices", switch_on(parts, servers)).await?;

    let mut story = Story::new(narrator, caller, cast, endpoint);
    let queued = tell(&mut story).await?;

    let handout = async |story: &mut Story<'_>| {
        let (narrator, caller, sensor) = story.for_handout();
        let handout = Handout {
            base: &base,
            servers,
            sensor,
            operator_token: service.operator_token_path.as_deref(),
            temporary: stage.temporary(),
            caller,
            request: &queued,
            webhook: &webhook,
        };
        Ok(handout.tell(narrator)?)
    };
    step("printing the commands", handout(&mut story)).await?;
    step("running", story.live_on()).await
}

/// What happens, chapter by chapter; returns the request that waited for the meter.
async fn tell(story: &mut Story<'_>) -> Result<String, DemoError> {
    step(
        "waiting for the devices to register",
        story.meet_the_devices(),
    )
    .await?;
    step("reading the lamp's brightness", story.read_the_lamp()).await?;
    step("observing the lamp", story.observe_the_lamp()).await?;
    step(
        "waiting for the tracker to send values",
        story.see_the_tracker_send(),
    )
    .await?;
    let queued = step(
        "queueing a request for the meter",
        story.queue_for_the_meter(),
    )
    .await?;
    step(
        "writing a value of the wrong type",
        story.write_what_does_not_fit(),
    )
    .await?;
    step("cancelling a request", story.take_a_request_back()).await?;
    step(
        "waiting for the meter to wake and answer",
        story.see_the_meter_wake(&queued),
    )
    .await?;
    step(
        "waiting for the sensor to send a datagram",
        story.hear_the_sensor(),
    )
    .await?;
    step(
        "waiting for the sensor to send data over CoAP",
        story.see_the_sensor_post(),
    )
    .await?;
    Ok(queued)
}

async fn step<T>(
    step: &'static str,
    work: impl Future<Output = Result<T, Why>>,
) -> Result<T, DemoError> {
    work.await.map_err(|why| DemoError::Step {
        step,
        why: why.to_string(),
    })
}

fn open(stage: &Stage, base: &str, servers: Servers, narrator: &mut Narrator) -> Result<(), Why> {
    let place = match stage.temporary() {
        Some(_) => "a temporary store".to_owned(),
        None => stage.config.data_dir.display().to_string(),
    };
    narrator.head(format!(
        "signalbox demo on {place}, with simulated devices on real sockets"
    ))?;
    narrator.pause()?;
    for change in &stage.changes {
        narrator.tell(Voice::Service, change)?;
    }
    let Servers { coap, udp } = servers;
    let listens = format!("listening: API {base}, devices coap://{coap} and udp://{udp}");
    Ok(narrator.tell(Voice::Service, listens)?)
}

async fn admit(
    stage: &Stage,
    service: &Service,
    base: &str,
    narrator: &mut Narrator,
) -> Result<Caller, Why> {
    let token = operator_token(&stage.config, service)?;
    let operator = ApiClient::new(base, Credentials::Bearer(token))?;
    operator.ensure_customer(CUSTOMER, CUSTOMER_NAME).await?;
    narrator.tell(
        Voice::Operator,
        format!("uses the customer {CUSTOMER} ({CUSTOMER_NAME})"),
    )?;
    let key = operator.create_key(CUSTOMER, "demo").await?;
    narrator.tell(
        Voice::Operator,
        format!("creates the API client {}", key.id),
    )?;
    let caller = Caller::with_key(base, key).await?;
    let lasts = format!(
        "gets an access token, valid for {} s",
        caller.token().lifetime_s
    );
    narrator.tell(Voice::Caller, lasts)?;
    Ok(caller)
}

/// What the customer wants to be told, and where; returns the id of its webhook.
async fn choose(
    caller: &Caller,
    platform: &str,
    endpoint: &Endpoint,
    narrator: &mut Narrator,
) -> Result<String, Why> {
    caller.enable_passive_reporting(platform).await?;
    let read = "enables LWM2M_PASSIVE_REPORTING: devices are read when they register or update";
    narrator.tell(Voice::Caller, read)?;
    let webhook = caller
        .make_webhook(&endpoint.url(), endpoint.secret())
        .await?;
    let posted = format!("creates a signed webhook to {}", endpoint.url());
    narrator.tell(Voice::Caller, posted)?;
    Ok(webhook)
}

fn operator_token(config: &Config, service: &Service) -> Result<String, Why> {
    if let Some(token) = &config.operator_token {
        return Ok(token.expose().to_owned());
    }
    let path = service.operator_token_path.clone().unwrap_or_default();
    let read = fs::read_to_string(&path);
    let token = read.map_err(|source| Why::File { path, source })?;
    Ok(token.trim().to_owned())
}

async fn switch_on(parts: Vec<Part>, servers: Servers) -> Result<Cast, Why> {
    Cast::enter(parts, servers).await.map_err(Why::Socket)
}

/// Where somebody on this machine reaches what listens there.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_listens_everywhere_is_reached_at_home() {
        for (bound, reached) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("192.0.2.7:80", "192.0.2.7:80"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(reachable(bound.parse().unwrap()), reached.parse().unwrap());
        }
    }
}
