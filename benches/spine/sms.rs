//! How many SMS per second go either way over a link, and how many would a session carry that
//! stores nothing?
//!
//! Rounds alternate between the program an operator runs and a session of the codec alone, with the
//! same SMS centre and window. A message of a device is counted when it is acknowledged, one to a
//! device when it is submitted; both are durable by then.

use std::time::Duration;

use engine::change::{Batch, Change};
use engine::directory::sms::{NewSms, submit};
use engine::ids::Msisdn;
use engine::limits::SmsRules;
use engine::profile::Profile;
use engine::sms::SmsPurpose;
use engine::sms::address::AddressType;
use harness::load::figures::Figures;

use crate::centre::{Centre, Session, TEXT};
use crate::fleet;
use crate::load::aside;
use crate::service::{self, CACHE_MIB, Service};
use crate::shelf::{BATCHES_OPEN, TempStore};

/// The default numbers of SMS to devices.
pub(crate) const MESSAGES: [u32; 1] = [20_000];

/// The devices that they are from and to.
const DEVICES: u32 = 1_000;

/// Measured rounds, an odd number.
const ROUNDS: usize = 3;

/// The duration of a round of messages of devices.
const ROUND: Duration = Duration::from_secs(5);

/// Measures and prints.
pub(crate) async fn run(messages: &[u32]) {
    println!("## SMS over a link, {DEVICES} devices\n");
    println!("| messages | | per second |");
    println!("|---|---|---|");
    for &count in messages {
        let mut figures: [Figures; 4] = std::array::from_fn(|_| Figures::default());
        for _ in 0..ROUNDS {
            for (figures, rate) in figures.iter_mut().zip(measure(count).await) {
                figures.push(rate);
            }
        }
        let [to, bare_to, of, bare_of] = &figures;
        let row = |what: &str, figures: &Figures, decimals| {
            println!("| {count} | {what} | {} |", figures.shown(decimals));
        };
        row("to devices", to, 0);
        row("to devices, codec alone", bare_to, 0);
        row("ratio", &to.over(bare_to), 2);
        row("of devices", of, 0);
        row("of devices, codec alone", bare_of, 0);
        row("ratio", &of.over(bare_of), 2);
    }
    println!();
}

/// The rates of a round: to devices, with the codec alone, and of devices likewise.
async fn measure(count: u32) -> [f64; 4] {
    let shelf = TempStore::with_devices(0).await;
    shelf.commit(crate::creates::credentials(&shelf)).await;
    shelf.commit_all((0..DEVICES).map(created), 1).await;
    let waiting: Vec<Batch> = (0..count).map(|number| waiting(&shelf, number)).collect();
    shelf.commit_all(waiting, BATCHES_OPEN).await;
    let directory = shelf.close();
    let centre = Centre::open();
    let url = format!("smpp://{}", centre.address);
    let settings = [
        ("SIGNALBOX_SMPP_URL", &*url),
        ("SIGNALBOX_SMPP_SYSTEM_ID", "bench"),
        ("SIGNALBOX_SMPP_PASSWORD", "bench"),
    ];
    let program = service::PROGRAM.as_ref();
    let service = Service::start(program, directory.path(), CACHE_MIB, &settings);
    let messages = usize::try_from(count).expect("a number of messages");
    let numbers: Vec<String> = (0..DEVICES).map(number_of).collect();
    let rates = aside(move || {
        let mut session = centre.bound();
        let to = session.accept(messages);
        let of = session.deliver(&numbers, ROUND);
        drop(session);
        let [bare_to, bare_of] = with_codec_alone(messages, &numbers);
        [to, bare_to, of, bare_of]
    })
    .await;
    drop(service);
    rates
}

fn with_codec_alone(messages: usize, numbers: &[String]) -> [f64; 2] {
    let centre = Centre::open();
    let address = centre.address;
    let client = std::thread::spawn(move || {
        let mut session = Session::bare(address);
        session.submit(messages);
        session.respond();
    });
    let mut session = centre.bound();
    let to = session.accept(messages);
    let of = session.deliver(numbers, ROUND);
    drop(session);
    client.join().expect("the session ends");
    [to, of]
}

fn number_of(number: u32) -> String {
    format!("8822851{number:08}")
}

/// A device of the fleet with a number.
fn device(number: u32) -> Profile {
    Profile {
        msisdn: Some(Msisdn::parse(&number_of(number)).expect("digits are a number")),
        ..fleet::profile(number)
    }
}

fn created(number: u32) -> Batch {
    Batch {
        changes: vec![Change::PutDevice {
            was: None,
            profile: Box::new(device(number)),
        }],
        ..Batch::default()
    }
}

/// Stores an SMS to a device.
fn waiting(shelf: &TempStore, number: u32) -> Batch {
    let new = NewSms {
        source: "1234".into(),
        source_type: AddressType::National,
        payload: TEXT.into(),
        dcs: 0,
        udh: None,
        expires_at: None,
        purpose: SmsPurpose::Message,
    };
    let rules = SmsRules {
        validity_ms: 86_400_000,
        open_max: u32::MAX,
        wake_ups_max: 0,
    };
    let step = u16::try_from(number % 4_096).expect("it is less than 4,096");
    let mut m = shelf.clock.moment().at_step(step);
    let submitted = submit(&mut m, &device(number % DEVICES), new, 0, rules);
    submitted.expect("nothing else waits").batch
}
