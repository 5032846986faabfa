//! How many events per second get from an acknowledged Send to a subscriber of a broker, and how
//! many would a bare publisher bring there in that time?
//!
//! Rounds alternate between the program an operator runs, whose devices send as fast as they are
//! answered, and a publisher alone, which publishes the same message with the same window. Load,
//! program, broker and subscriber share the machine.

use std::time::{Duration, Instant};

use engine::MqttVersion;
use engine::delivery::destination::{Broker as BrokerTarget, BrokerCommands, JsonPayload, Target};
use harness::load::figures::Figures;

use crate::broker::{Broker, PREFIX};
use crate::load::{Senders, aside};
use crate::outage::start;
use crate::service::CACHE_MIB;
use crate::shelf::TempStore;
use crate::webhook::destination_of;

/// The default numbers of registered devices.
pub(crate) const FLEETS: [u32; 1] = [10_000];

/// Measured rounds, an odd number.
const ROUNDS: usize = 3;

/// The duration of a round.
const ROUND: Duration = Duration::from_secs(5);

/// The interval at which the subscriber's count is polled.
const LOOK: Duration = Duration::from_millis(5);

/// If no event arrives for this long, some are lost.
const PATIENCE: Duration = Duration::from_secs(20);

/// Measures and prints.
pub(crate) async fn run(fleets: &[u32]) {
    println!("## From an acknowledged Send to a subscriber of Mosquitto\n");
    println!("| devices | | per second |");
    println!("|---|---|---|");
    for &devices in fleets {
        let (service, bare) = measure(devices).await;
        let figures = |of: fn(&Round) -> f64| -> Figures { service.iter().map(of).collect() };
        let publisher: Figures = bare.iter().copied().collect();
        let (sends, whole) = (figures(|round| round.sends), figures(|round| round.whole));
        let ratio = whole.over(&publisher);
        let row = |what: &str, figures: &Figures, decimals| {
            println!("| {devices} | {what} | {} |", figures.shown(decimals));
        };
        row("Sends", &sends, 0);
        row("events, first Send to last message", &whole, 0);
        row("bare publisher", &publisher, 0);
        row("ratio", &ratio, 2);
    }
    println!();
}

/// The result of a round of the service, per second.
struct Round {
    sends: f64,
    whole: f64,
}

async fn measure(devices: u32) -> (Vec<Round>, Vec<f64>) {
    let broker = Broker::start();
    let shelf = TempStore::with_devices(devices).await;
    let target = Target::Broker(Box::new(BrokerTarget {
        url: format!("mqtt://{}", broker.address).into(),
        topic_prefix: PREFIX.into(),
        version: MqttVersion::V5,
        username: None,
        password: None,
        ca: None,
        certificate: None,
        commands: BrokerCommands::Off,
        json: JsonPayload::AsText,
    }));
    shelf.commit(destination_of(&shelf, target)).await;
    let directory = shelf.close();
    let mut service = start(directory.path(), CACHE_MIB);
    let mut senders = Senders::register(devices, service.coap(), ROUND).await;
    await_messages(&broker, u64::from(devices)).await;
    deliver(&mut senders, &broker).await;
    let (mut rounds, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        rounds.push(deliver(&mut senders, &broker).await);
        let publisher = broker.bare_publisher();
        bare.push(aside(move || publisher.publish(ROUND)).await);
        catch_up(&broker).await;
    }
    (rounds, bare)
}

async fn deliver(senders: &mut Senders, broker: &Broker) -> Round {
    let before = broker.messages();
    let begun_at = Instant::now();
    let tally = senders.send().await;
    await_messages(broker, before + tally.answered).await;
    let took = begun_at.elapsed();
    Round {
        sends: tally.in_time as f64 / ROUND.as_secs_f64(),
        whole: tally.answered as f64 / took.as_secs_f64(),
    }
}

/// Waits until the subscriber has received what was published: nothing comes for a while.
async fn catch_up(broker: &Broker) {
    let (mut last, mut moved_at) = (broker.messages(), Instant::now());
    let mut looks = tokio::time::interval(LOOK);
    while moved_at.elapsed() < 50 * LOOK {
        looks.tick().await;
        if broker.messages() > last {
            (last, moved_at) = (broker.messages(), Instant::now());
        }
    }
}

/// Waits until the subscriber received this many messages.
async fn await_messages(broker: &Broker, messages: u64) {
    let (mut last, mut moved_at) = (broker.messages(), Instant::now());
    let mut looks = tokio::time::interval(LOOK);
    while broker.messages() < messages {
        looks.tick().await;
        if broker.messages() > last {
            (last, moved_at) = (broker.messages(), Instant::now());
        }
        assert!(
            moved_at.elapsed() < PATIENCE,
            "{last} of {messages} events came"
        );
    }
}
