//! How fast does a firmware campaign give its image to many devices, and what do other devices
//! notice of it? Beside the same devices and a peer without a store.

mod bare;
mod devices;
mod running;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum, value_parser};
use harness::load::figures::Figures;
use serde_json::json;
use signalbox::load::{Load, import_lines};
use signalbox::rest_client::{CAMPAIGNS, ClientCredentials, IMAGES, RestClient};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::time::interval;

use self::running::RunningDevices;
use crate::service::{CACHE_MIB, MIB, PROGRAM, Service};
use crate::{device_link, load};

/// The other devices, and their customer's names for them.
const OTHERS: [&str; 4] = [
    "--bind",
    "127.128.0.0/10",
    "--endpoint-pattern",
    "other-{:09}",
];

/// The timeout of an import.
const IMPORT_TIMEOUT: Duration = Duration::from_secs(300);

/// How often the memory of the service is looked at during a campaign.
const LOOK: Duration = Duration::from_millis(50);

/// The looks between two at the state of the campaign.
const LOOKS_PER_CALL: u32 = 4;

/// Measurements of the other devices' updates before a campaign.
const ROUNDS: usize = 5;

/// Measures firmware campaigns
#[derive(Parser)]
#[command(name = "cargo xtask bench campaign")]
struct Options {
    /// Number of devices of a campaign
    #[arg(long, default_value_t = 10_000, value_parser = value_parser!(u32).range(1..))]
    devices: u32,
    /// Size of the image, in KiB
    #[arg(long, default_value_t = 256, value_parser = value_parser!(u32).range(1..=65_536))]
    image_kib: u32,
    /// Devices that are under way at a time
    #[arg(long, default_value_t = 1_000, value_parser = value_parser!(u32).range(1..=10_000))]
    concurrency: u32,
    /// How devices get the image
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Method::Pull])]
    methods: Vec<Method>,
    /// Number of other devices, which update their registrations meanwhile
    #[arg(long, default_value_t = 10_000, value_parser = value_parser!(u32).range(1..))]
    others: u32,
    /// Updates of the other devices per second
    #[arg(long, default_value_t = 1_000, value_parser = value_parser!(u32).range(1..))]
    rate: u32,
    /// Program to measure instead of the one of this tree
    #[arg(long, default_value = PROGRAM)]
    program: PathBuf,
}

/// How devices get the image.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Method {
    /// They download it over HTTP
    Pull,
    /// The server writes it, block by block
    Push,
}

/// Measures the transfers without a store, then a campaign of each method; prints the tables.
pub(crate) fn run(words: &[&str]) {
    let options = Options::parse_from([&["cargo xtask bench campaign"], words].concat());
    let image = image(options.image_kib);
    let (devices, concurrency) = (options.devices, options.concurrency);
    println!(
        "## An image of {} KiB for {devices} devices, {concurrency} at a time\n",
        options.image_kib
    );
    println!(
        "| transfer | MiB/s | of bare blocks | of bare HTTP | memory at rest, MiB | most, MiB |"
    );
    println!("|---|---|---|---|---|---|");
    let blocks = bare::write_blocks(devices, concurrency, &image) / MIB;
    let http = bare::serve_http(devices, concurrency, &image) / MIB;
    println!("| bare blocks | {blocks:.1} | 1 | | | |");
    println!("| bare HTTP | {http:.1} | | 1 | | |");
    let mut noticed = Vec::new();
    for method in &options.methods {
        let mut measured = MeasuredService::start(&options, &image);
        let alone = measured.campaign(*method, |_| {});
        println!(
            "| {} | {:.1} | {:.2} | {:.2} | {:.0} | {:.0} |",
            method.word(),
            alone.mib_per_s,
            alone.mib_per_s / blocks,
            alone.mib_per_s / http,
            alone.rest_mib,
            alone.most_mib,
        );
        noticed.push((*method, measured.beside(*method, &alone)));
        measured.stop();
    }
    let (others, rate) = (options.others, options.rate);
    println!("\n## Updates of {others} other devices, {rate} a second\n");
    println!("| campaign | | answered per second | p50, ms | p99, ms | processor time each, µs |");
    println!("|---|---|---|---|---|---|");
    for (method, [alone, beside]) in &noticed {
        alone.show(method.word(), "before it");
        beside.show(method.word(), "beside it");
        let slower = |of: fn(&Updates) -> &Figures| {
            let (alone, beside) = (of(alone).median(), of(beside).median());
            let ratio = beside.zip(alone).map(|(beside, alone)| beside / alone);
            ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"))
        };
        println!(
            "| {} | ratio | {} | {} | {} | {} |",
            method.word(),
            slower(|it| &it.rate),
            slower(|it| &it.p50_ms),
            slower(|it| &it.p99_ms),
            slower(|it| &it.processor_us),
        );
    }
    println!();
}

impl Method {
    fn word(self) -> &'static str {
        match self {
            Self::Pull => "PULL",
            Self::Push => "PUSH",
        }
    }
}

/// The result of a campaign.
struct CampaignFigures {
    mib_per_s: f64,
    rest_mib: f64,
    most_mib: f64,
    /// The processor time of the service.
    processor_s: f64,
}

/// The updates of the other devices.
#[derive(Default)]
struct Updates {
    rate: Figures,
    p50_ms: Figures,
    p99_ms: Figures,
    answered: u64,
    /// The processor time of an update; beside a campaign, of all of them together, without what
    /// the campaign took.
    processor_us: Figures,
}

impl Updates {
    fn measure(&mut self, load: &mut Load) {
        let report = load.measure().expect("the load can be applied");
        let tally = &report.measurement.tally;
        let latency_ms = |percent| tally.latencies.percentile_ns(percent) as f64 / 1e6;
        self.rate.push(report.measurement.rate());
        self.p50_ms.push(latency_ms(50.0));
        self.p99_ms.push(latency_ms(99.0));
        self.answered += tally.answered;
    }

    /// Divides the processor time of the service among all updates.
    fn charge(&mut self, processor_s: f64) {
        self.processor_us
            .push(processor_s * 1e6 / self.answered as f64);
    }

    fn show(&self, method: &str, when: &str) {
        println!(
            "| {method} | {when} | {} | {} | {} | {} |",
            self.rate.shown(0),
            self.p50_ms.shown(2),
            self.p99_ms.shown(2),
            self.processor_us.shown(1),
        );
    }
}

/// The service, with the devices of its campaigns and an image of them.
struct MeasuredService<'o> {
    options: &'o Options,
    service: Service,
    runtime: Runtime,
    api: RestClient,
    image_id: String,
    image_bytes: f64,
    devices: RunningDevices,
    _data: TempDir,
}

impl<'o> MeasuredService<'o> {
    fn start(options: &'o Options, image: &Arc<[u8]>) -> Self {
        let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"));
        let data = data.expect("the build's directory takes another");
        let mut service = Service::start(&options.program, data.path(), CACHE_MIB, &[]);
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime can be had");
        let [_, network, _, pattern] = OTHERS;
        let pattern = pattern.parse().expect("a pattern");
        let network = network.parse().expect("a network");
        let others = import_lines(&pattern, network, None, 0..options.others);
        let lines = device_link::lines(options.devices, None) + &others;
        let (api, image_id) = runtime.block_on(async {
            service.ready().await;
            let token = service.token_of("campaign").await;
            let api = service.api(ClientCredentials::Bearer(token));
            let imported = api.import(lines, IMPORT_TIMEOUT).await;
            let created = imported.and_then(|answer| answer.number("/created"));
            let all = u64::from(options.devices) + u64::from(options.others);
            assert_eq!(created.expect("all are imported"), all);
            let stored = api.upload(IMAGES, image.to_vec()).await;
            let id = stored.and_then(|answer| answer.text("/id"));
            (api, id.expect("the image is stored"))
        });
        let devices = RunningDevices::start(service.coap(), options.devices, image);
        let mut looks = runtime.block_on(async { interval(LOOK) });
        while devices.registered() < options.devices {
            runtime.block_on(looks.tick());
        }
        Self {
            options,
            service,
            runtime,
            api,
            image_id,
            image_bytes: image.len() as f64,
            devices,
            _data: data,
        }
    }

    /// Runs a campaign to its end, while `beside` is called again and again.
    fn campaign(&mut self, method: Method, mut beside: impl FnMut(&Self)) -> CampaignFigures {
        let rest_mib = self.service.resident_mib();
        let mut most_mib = rest_mib;
        let complete = self.devices.complete();
        let before_s = self.service.processor_s();
        let begun_at = Instant::now();
        let body = json!({
            "imageId": self.image_id,
            "filter": { "q": "urn:dev:" },
            "method": method.word(),
            "concurrency": self.options.concurrency,
        });
        let created = self.runtime.block_on(self.api.post(CAMPAIGNS, &body));
        let id = created.and_then(|campaign| campaign.text("/id"));
        let path = format!("{CAMPAIGNS}/{}", id.expect("the campaign is created"));
        let mut looks = self.runtime.block_on(async { interval(LOOK) });
        let ended = loop {
            for _ in 0..LOOKS_PER_CALL {
                self.runtime.block_on(looks.tick());
                most_mib = most_mib.max(self.service.resident_mib());
            }
            beside(self);
            let shown = self.runtime.block_on(self.api.read(&path));
            let shown = shown.expect("a campaign is shown");
            if shown.text("/state").is_ok_and(|state| state != "RUNNING") {
                break shown;
            }
        };
        let took_s = begun_at.elapsed().as_secs_f64();
        let succeeded = ended.number("/counts/SUCCEEDED").expect("a count");
        assert_eq!(
            succeeded,
            u64::from(self.options.devices),
            "every device runs the image: {:?}",
            ended.at("/counts")
        );
        let received = self.devices.complete() - complete;
        CampaignFigures {
            mib_per_s: f64::from(received) * self.image_bytes / MIB / took_s,
            rest_mib,
            most_mib,
            processor_s: self.service.processor_s() - before_s,
        }
    }

    /// The updates of the other devices before a campaign and beside one; another ran without them.
    fn beside(&mut self, method: Method, without: &CampaignFigures) -> [Updates; 2] {
        let rate = self.options.rate.to_string();
        let words = [&["--duration", "1s", "--rate", &rate][..], &OTHERS].concat();
        let mut load = load::begin(self.service.coap(), self.options.others, "update", &words);
        let [mut alone, mut beside] = [Updates::default(), Updates::default()];
        let before_s = self.service.processor_s();
        for _ in 0..ROUNDS {
            alone.measure(&mut load);
        }
        alone.charge(self.service.processor_s() - before_s);
        let with = self.campaign(method, |_| beside.measure(&mut load));
        beside.charge(with.processor_s - without.processor_s);
        [alone, beside]
    }

    fn stop(self) {
        self.devices.stop();
        self.service.stop();
    }
}

/// An image that does not compress, and of which no two blocks are equal.
fn image(kib: u32) -> Arc<[u8]> {
    let mut rng = harness::rng::Rng::from_seed(1);
    let numbers = (0..kib * 128).flat_map(|_| rng.number().to_be_bytes());
    numbers.collect()
}
