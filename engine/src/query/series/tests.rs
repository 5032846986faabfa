//! Do the buckets of a series equal those of a naive computation?

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};

use super::*;
use crate::ids::DeviceId;

const FROM_MS: i64 = 1_795_521_600_000;

#[test]
fn numbers_of_64_bits_keep_their_order_and_their_digits() {
    let numbers = [
        SampleNumber::Float(f64::MIN),
        SampleNumber::Integer(i64::MIN.into()),
        SampleNumber::Float(-0.5),
        SampleNumber::Integer(0),
        SampleNumber::Float(0.5),
        SampleNumber::Integer(9_007_199_254_740_992),
        SampleNumber::Integer(9_007_199_254_740_993),
        SampleNumber::Integer(i64::MAX.into()),
        SampleNumber::Integer(u64::MAX.into()),
        SampleNumber::Float(f64::MAX),
    ];
    for (place, one) in numbers.iter().enumerate() {
        for (other_place, other) in numbers.iter().enumerate() {
            let expected = place.cmp(&other_place);
            assert_eq!(one.order(*other), expected, "{one:?} {other:?}");
        }
    }
    let equal = SampleNumber::Float(0.0).order(SampleNumber::Integer(0));
    assert_eq!(equal, Ordering::Equal);
}

#[test]
fn what_is_no_finite_number_is_no_sample() {
    let one = |number: i128| Some(SampleNumber::Integer(number));
    let cases = [
        (Value::Boolean(true), one(1)),
        (Value::Boolean(false), one(0)),
        (Value::Integer(i64::MIN), one(i64::MIN.into())),
        (Value::UnsignedInteger(u64::MAX), one(u64::MAX.into())),
        (Value::Float(21.5), Some(SampleNumber::Float(21.5))),
        (Value::Float(f64::NAN), None),
        (Value::Float(f64::INFINITY), None),
        (Value::String("21.5".into()), None),
        (Value::Time(1), None),
        (Value::Opaque(vec![1]), None),
    ];
    for (value, expected) in cases {
        assert_eq!(SampleNumber::of(&value), expected, "{value:?}");
    }
}

#[test]
fn the_mean_of_the_largest_numbers_is_finite() {
    let largest = [f64::MAX, f64::MAX, f64::MIN, f64::MIN];
    let samples = largest.map(|number| sample(1, SampleNumber::Float(number)));
    let series = series_of(&query(10, 1), &samples, 4);
    let (_, bucket) = series.buckets[0];
    assert!(bucket.mean.is_finite(), "{bucket:?}");
    assert_eq!(bucket.min, SampleNumber::Float(f64::MIN));
    assert_eq!(bucket.max, SampleNumber::Float(f64::MAX));
}

#[test]
fn buckets_without_samples_are_left_out_and_the_last_one_has_its_end() {
    let samples = [10, 9, 0].map(|ms| sample(ms, SampleNumber::Integer(ms.into())));
    let series = series_of(&query(10, 5), &samples, 10);
    let shown = series.buckets.iter();
    let shown = shown.map(|(at, bucket)| (at.as_ms() - FROM_MS, bucket.count, bucket.last.number));
    let last = SampleNumber::Integer;
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [(0, 1, last(0)), (8, 2, last(10))]
    );
}

#[test]
fn a_walk_ends_at_its_bound_and_says_where_the_next_one_begins() {
    let mut walk = SeriesWalk::of(query(10, 1));
    let mut pages = 0;
    while let Some((_, max)) = walk.next_page() {
        pages += 1;
        walk.handle_page(&SamplePage {
            samples: Vec::new(),
            examined: max,
            next: Some(Sequence(1_000_000 - pages)),
        });
    }
    assert_eq!(pages, u64::from(SERIES_EVENTS_MAX / SERIES_EVENTS_AT_ONCE));
    assert_eq!(walk.finish().next, Some(Sequence(1_000_000 - pages)));
}

proptest! {
    #[test]
    fn buckets_equal_those_of_a_naive_computation(
        length_ms in 1_i64..5_000,
        points in 1_u32..50,
        page in 1_usize..20,
        samples in vec((-100_i64..5_200, number()), 0..200),
    ) {
        let query = query(length_ms, points);
        let samples: Vec<_> = samples.into_iter().map(|(ms, number)| sample(ms, number)).collect();
        let series = series_of(&query, &samples, page);
        let mut counted = 0;
        for (number, expected) in naive(&query, &samples) {
            let at = query.beginning_of(number);
            let bucket = series.buckets.iter().find(|(beginning, bucket)| {
                *beginning == at && query.bucket_of(bucket.last.at) == Some(number)
            });
            let (_, bucket) = bucket.expect("a bucket with samples");
            counted += bucket.count;
            assert_eq!(bucket.count, expected.count);
            assert_eq!(bucket.min.order(expected.min), Ordering::Equal);
            assert_eq!(bucket.max.order(expected.max), Ordering::Equal);
            assert_eq!(bucket.last, expected.last);
            let tolerance = 1e-9 * bucket.min.as_f64().abs().max(bucket.max.as_f64().abs());
            assert!((bucket.mean - expected.mean).abs() <= tolerance, "{bucket:?} {expected:?}");
            assert!(bucket.last.at >= at);
        }
        let total: u64 = series.buckets.iter().map(|(_, bucket)| bucket.count).sum();
        assert_eq!(total, counted);
        assert_eq!(series.next, None);
    }
}

/// The buckets of samples, received last first, that all are in memory.
fn naive(query: &SeriesQuery, samples: &[Sample]) -> BTreeMap<u32, SeriesBucket> {
    let mut of_bucket: BTreeMap<u32, Vec<Sample>> = BTreeMap::new();
    for sample in samples {
        if let Some(bucket) = query.bucket_of(sample.at) {
            of_bucket.entry(bucket).or_default().push(*sample);
        }
    }
    let reduced = of_bucket.into_iter().map(|(number, samples)| {
        let mut sorted = samples.clone();
        sorted.sort_by(|one, other| one.number.order(other.number));
        // The first of those with the latest time was received last.
        let last_at = samples.iter().map(|sample| sample.at).max();
        let last = samples.iter().find(|sample| Some(sample.at) == last_at);
        let count = samples.len() as f64;
        let bucket = SeriesBucket {
            count: samples.len() as u64,
            min: sorted[0].number,
            max: sorted[sorted.len() - 1].number,
            mean: samples
                .iter()
                .map(|sample| sample.number.as_f64() / count)
                .sum(),
            last: *last.expect("there are samples"),
        };
        (number, bucket)
    });
    reduced.collect()
}

/// The series of samples, the last received first, read in pages.
fn series_of(query: &SeriesQuery, samples: &[Sample], page: usize) -> Series {
    let mut walk = SeriesWalk::of(query.clone());
    let mut pages = samples.chunks(page).zip(1..).peekable();
    while walk.next_page().is_some() {
        let Some((samples, _)) = pages.next() else {
            walk.handle_page(&SamplePage::default());
            continue;
        };
        walk.handle_page(&SamplePage {
            samples: samples.to_vec(),
            examined: u32::try_from(samples.len()).unwrap(),
            next: pages.peek().map(|(_, number)| Sequence(*number)),
        });
    }
    walk.finish()
}

fn number() -> impl Strategy<Value = SampleNumber> {
    prop_oneof![
        any::<i64>().prop_map(|number| SampleNumber::Integer(number.into())),
        any::<u64>().prop_map(|number| SampleNumber::Integer(number.into())),
        (-1e6_f64..1e6).prop_map(SampleNumber::Float),
        (-10_i128..10).prop_map(SampleNumber::Integer),
    ]
}

fn sample(ms: i64, number: SampleNumber) -> Sample {
    Sample::new(Timestamp::from_ms(FROM_MS + ms), number)
}

fn query(length_ms: i64, points: u32) -> SeriesQuery {
    let customer = CustomerId::parse("acme").unwrap();
    let device = DeviceKey::of(&customer, &DeviceId::parse("meter").unwrap());
    SeriesQuery {
        filter: SampleFilter {
            customer,
            device,
            path: Path::resource(3303, 0, 5700),
            from: Timestamp::from_ms(FROM_MS),
            at: None,
        },
        to: Timestamp::from_ms(FROM_MS + length_ms),
        points,
    }
}
