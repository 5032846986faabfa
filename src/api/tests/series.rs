//! Does the response to a query for a series match its golden file?

use engine::Path;
use engine::delivery::backlog::Sequence;
use engine::ids::{CustomerId, DeviceId, DeviceKey};
use engine::moment::Timestamp;
use engine::query::series::{
    Sample, SampleFilter, SampleNumber, SamplePage, SeriesQuery, SeriesWalk,
};

use super::golden;
use crate::api::series::SeriesBody;

#[test]
fn a_series() {
    let samples = [
        (50, SampleNumber::Float(21.0)),
        (40, SampleNumber::Float(22.5)),
        (0, SampleNumber::Integer(u64::MAX.into())),
    ];
    let samples = samples.map(|(second, number)| Sample::new(at(second), number));
    golden::check("series", &body_of(&samples, None));
}

#[test]
fn a_series_that_is_not_complete() {
    golden::check("series_truncated", &body_of(&[], Some(Sequence(17_000))));
}

fn body_of(samples: &[Sample], next: Option<Sequence>) -> SeriesBody {
    let customer = CustomerId::parse("acme").unwrap();
    let device = DeviceKey::of(&customer, &DeviceId::parse("meter-7").unwrap());
    let query = SeriesQuery {
        filter: SampleFilter {
            customer,
            device,
            path: Path::resource(3303, 0, 5700),
            from: at(0),
            at: None,
        },
        to: at(60),
        points: 3,
    };
    let mut walk = SeriesWalk::of(query.clone());
    while let Some((_, max)) = walk.next_page() {
        walk.handle_page(&SamplePage {
            samples: samples.to_vec(),
            examined: max,
            next,
        });
    }
    SeriesBody::of(&query, walk.finish())
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_ms(1_795_780_800_000).plus_s(second)
}
