//! What does `signalbox demo` do? It runs the service on a temporary store with simulated devices:
//! they register, a request waits for a sleeping device, the device wakes up and answers.
//!
//! Everything it prints comes from the API over HTTP or from the simulated devices; the demo has no
//! other access to the service.

mod api;
mod devices;
mod endpoint;
mod handout;
mod network;
mod output;
mod role;
mod setup;
mod walkthrough;

use std::convert::Infallible;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use actix_rt::System;
use tokio::task::{JoinHandle, yield_now};

use self::api::DemoCaller;
use self::devices::{DemoDevices, DeviceSpec, ServerAddresses};
use self::endpoint::WebhookEndpoint;
use self::handout::{ConsoleAccess, Handout};
use self::network::DemoNetwork;
use self::output::{Colour, DemoOutput, LineSource};
use self::setup::{DemoSetup, DemoSetupError};
use self::walkthrough::{StepError, Walkthrough, create_devices};
use crate::api::console::is_built;
use crate::config::{self, Config, Layers};
use crate::rest_client::{ClientCredentials, RestClient};
use crate::service::{Service, StartError, wait_for_signal};

const CUSTOMER: &str = "demo";
const CUSTOMER_NAME: &str = "Harbour Town Works";

/// Why the demo ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The demo could not be set up or cleaned up.
    #[error(transparent)]
    Setup(#[from] DemoSetupError),
    /// The service did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A step of the story failed.
    #[error("the demo failed while {step}: {why}")]
    Step {
        /// The step.
        step: &'static str,
        /// The cause, as text.
        why: String,
    },
}

/// Runs the demo until the process is asked to stop.
pub fn run(config: &Config, layers: &Layers) -> Result<(), DemoError> {
    let ink = Colour::for_stdout(config::no_color().as_deref());
    let mut output = DemoOutput::new(Box::new(io::stdout()), ink);
    let system = System::new();
    let (setup, outcome) = system.block_on(async {
        // From here on a signal stops the demo in order, whatever has started by then.
        let stop = actix_rt::spawn(wait_for_signal());
        yield_now().await;
        let setup = DemoSetup::set(config, layers)?;
        let outcome = play(&setup, &mut output, stop).await;
        Ok::<_, DemoSetupError>((setup, outcome))
    })?;
    // The store closes before its directory is removed.
    drop(system);
    let left = setup.strike();
    outcome.and(left.map_err(DemoError::from))
}

async fn play(
    setup: &DemoSetup,
    output: &mut DemoOutput,
    stop: JoinHandle<()>,
) -> Result<(), DemoError> {
    // The endpoint exists before the first event is posted to it, and closes last.
    let opened = async { WebhookEndpoint::open().map_err(StepError::Socket) };
    let mut endpoint = step("starting the webhook endpoint", opened).await?;
    let service = Service::start(&setup.config).await?;
    let outcome = tokio::select! {
        ended = perform(setup, &service, &mut endpoint, output) => {
            ended.map(|never| match never {})
        }
        _ = stop => Ok(()),
    };
    if outcome.is_ok() {
        let goodbye = async { Ok(output.print(LineSource::Service, "stopping")?) };
        step("stopping", goodbye).await?;
    }
    service.stop().await;
    endpoint.close().await;
    outcome
}

/// Runs the steps in order, then prints events without end.
async fn perform(
    setup: &DemoSetup,
    service: &Service,
    endpoint: &mut WebhookEndpoint,
    output: &mut DemoOutput,
) -> Result<Infallible, DemoError> {
    let base = format!("http://{}", reachable(service.http));
    let servers = ServerAddresses {
        coap: reachable(service.coap),
        udp: reachable(service.udp),
    };
    step("starting", async { open(setup, &base, servers, output) }).await?;
    let admission = admit(setup, service, &base, output);
    let (caller, network) = step("creating a customer and API clients", admission).await?;
    let chosen = choose(&caller, &setup.config.platform, endpoint, output);
    let webhook = step("creating the webhook", chosen).await?;
    let parts = devices::parts(servers);
    let created = create_devices(output, &caller, &parts);
    step("creating the devices", created).await?;
    let devices = step("starting the devices", switch_on(parts, servers)).await?;

    let mut walkthrough = Walkthrough::new(output, caller, devices, endpoint);
    let queued = run_steps(&mut walkthrough, &network).await?;

    let handout = async |walkthrough: &mut Walkthrough<'_>| {
        let (output, caller, sensor) = walkthrough.for_handout();
        let console = match is_built() {
            true => {
                let code = caller.sign_in_code().await;
                code.map_or(ConsoleAccess::Refused, ConsoleAccess::Code)
            }
            false => ConsoleAccess::NotBuilt,
        };
        let handout = Handout {
            base: &base,
            servers,
            sensor,
            operator_token: service.operator_token_path.as_deref(),
            temporary: setup.temporary(),
            console,
            caller,
            request: &queued,
            webhook: &webhook,
        };
        Ok(handout.print(output)?)
    };
    step("printing the commands", handout(&mut walkthrough)).await?;
    step("running", walkthrough.live_on()).await
}

/// Runs the steps, chapter by chapter; returns the request that waited for the meter.
async fn run_steps(
    walkthrough: &mut Walkthrough<'_>,
    network: &DemoNetwork,
) -> Result<String, DemoError> {
    step(
        "waiting for the devices to register",
        walkthrough.show_the_devices(),
    )
    .await?;
    step("reading the lamp's brightness", walkthrough.read_the_lamp()).await?;
    step("observing the lamp", walkthrough.observe_the_lamp()).await?;
    step(
        "waiting for the tracker to send values",
        walkthrough.see_the_tracker_send(),
    )
    .await?;
    let queued = step(
        "queueing a request for the meter",
        walkthrough.queue_for_the_meter(),
    )
    .await?;
    step(
        "writing a value of the wrong type",
        walkthrough.write_what_does_not_fit(),
    )
    .await?;
    step("cancelling a request", walkthrough.take_a_request_back()).await?;
    step(
        "waiting for the meter to wake and answer",
        walkthrough.see_the_meter_wake(&queued),
    )
    .await?;
    step(
        "waiting for the sensor to send a datagram",
        walkthrough.release_by_datagram(),
    )
    .await?;
    step(
        "waiting for the sensor to send data over CoAP",
        walkthrough.see_the_sensor_post(),
    )
    .await?;
    step("exchanging SMS", walkthrough.exchange_sms(network)).await?;
    step("installing a plugin", walkthrough.install_a_plugin()).await?;
    Ok(queued)
}

async fn step<T>(
    step: &'static str,
    work: impl Future<Output = Result<T, StepError>>,
) -> Result<T, DemoError> {
    work.await.map_err(|why| DemoError::Step {
        step,
        why: why.to_string(),
    })
}

fn open(
    setup: &DemoSetup,
    base: &str,
    servers: ServerAddresses,
    output: &mut DemoOutput,
) -> Result<(), StepError> {
    let place = match setup.temporary() {
        Some(_) => "a temporary store".to_owned(),
        None => setup.config.data_dir.display().to_string(),
    };
    output.head(format!(
        "signalbox demo on {place}, with simulated devices on real sockets"
    ))?;
    output.pause()?;
    for change in &setup.changes {
        output.print(LineSource::Service, change)?;
    }
    let ServerAddresses { coap, udp } = servers;
    let listens = format!("listening: API {base}, devices coap://{coap} and udp://{udp}");
    Ok(output.print(LineSource::Service, listens)?)
}

async fn admit(
    setup: &DemoSetup,
    service: &Service,
    base: &str,
    output: &mut DemoOutput,
) -> Result<(DemoCaller, DemoNetwork), StepError> {
    let token = operator_token(&setup.config, service)?;
    let operator = RestClient::new(base, ClientCredentials::Bearer(token))?;
    operator.ensure_customer(CUSTOMER, CUSTOMER_NAME).await?;
    output.print(
        LineSource::Operator,
        format!("uses the customer {CUSTOMER} ({CUSTOMER_NAME})"),
    )?;
    let key = operator.create_key(CUSTOMER, "demo").await?;
    output.print(
        LineSource::Operator,
        format!("creates the API client {}", key.id),
    )?;
    let (network, id) = DemoNetwork::admitted(base, operator).await?;
    let of_network = format!("creates the API client {id} of the network");
    output.print(LineSource::Operator, of_network)?;
    let caller = DemoCaller::with_key(base, key).await?;
    let lasts = format!(
        "gets an access token, valid for {} s",
        caller.token().lifetime_s
    );
    output.print(LineSource::Caller, lasts)?;
    Ok((caller, network))
}

/// Configures passive reporting and the webhook; returns the id of the webhook.
async fn choose(
    caller: &DemoCaller,
    platform: &str,
    endpoint: &WebhookEndpoint,
    output: &mut DemoOutput,
) -> Result<String, StepError> {
    caller.enable_passive_reporting(platform).await?;
    let read = "enables LWM2M_PASSIVE_REPORTING: devices are read when they register or update";
    output.print(LineSource::Caller, read)?;
    let webhook = caller
        .make_webhook(&endpoint.url(), endpoint.secret())
        .await?;
    let posted = format!("creates a signed webhook to {}", endpoint.url());
    output.print(LineSource::Caller, posted)?;
    Ok(webhook)
}

fn operator_token(config: &Config, service: &Service) -> Result<String, StepError> {
    if let Some(token) = &config.operator_token {
        return Ok(token.expose().to_owned());
    }
    let path = service.operator_token_path.clone().unwrap_or_default();
    let read = fs::read_to_string(&path);
    let token = read.map_err(|source| StepError::File { path, source })?;
    Ok(token.trim().to_owned())
}

async fn switch_on(
    parts: Vec<DeviceSpec>,
    servers: ServerAddresses,
) -> Result<DemoDevices, StepError> {
    DemoDevices::enter(parts, servers)
        .await
        .map_err(StepError::Socket)
}

/// The address at which this machine reaches the listener.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        // `[::]` is every address of both families, and a host may have no IPv6.
        ip if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_all_addresses_is_reached_on_loopback() {
        for (bound, reached) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "127.0.0.1:80"),
            ("192.0.2.7:80", "192.0.2.7:80"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(reachable(bound.parse().unwrap()), reached.parse().unwrap());
        }
    }
}
