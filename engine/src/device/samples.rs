//! When were the values of a payload measured? Values of one time are published together, the
//! oldest first.

use std::collections::BTreeMap;

use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{Measured, Reading, Sample, UnreadableValue};

use crate::event::known_at;
use crate::moment::Timestamp;

/// Values of one time.
#[derive(Debug, PartialEq)]
pub(super) struct Measurement {
    /// When they were measured, if the device states it.
    pub(super) measured_at: Option<Timestamp>,
    /// The values, one for each path.
    pub(super) values: Reading,
}

/// What was read of a payload.
#[derive(Debug, Default)]
pub(super) struct ReadValues {
    /// The values that can be read, oldest first.
    pub(super) measurements: Vec<Measurement>,
    /// The others.
    pub(super) unreadable: Vec<UnreadableValue>,
}

impl ReadValues {
    /// How many values can be read.
    pub(super) fn count(&self) -> usize {
        self.measurements.iter().map(|it| it.values.len()).sum()
    }

    /// Leaves out the values of other paths.
    pub(super) fn retain(&mut self, is_wanted: impl Fn(&Path) -> bool) {
        for measurement in &mut self.measurements {
            measurement.values.retain(|path, _| is_wanted(path));
        }
        self.measurements.retain(|it| !it.values.is_empty());
    }
}

/// Groups samples by the time of their measurement, oldest first.
///
/// Unspecified (a path twice at one time): each value is published, in the order of the payload.
/// Times are in whole milliseconds here, and a device may measure more often.
pub(super) fn by_time(received_at: Timestamp, samples: Vec<Sample>) -> Vec<Measurement> {
    let mut by_time = BTreeMap::<_, Vec<Reading>>::new();
    for Sample {
        path,
        value,
        measured,
    } in samples
    {
        let measured_at = measured.and_then(|measured| time_of(measured, received_at));
        let time = (known_at(measured_at, received_at), measured_at);
        let readings = by_time.entry(time).or_default();
        match readings.last_mut().filter(|last| !last.contains_key(&path)) {
            Some(last) => {
                last.insert(path, value);
            }
            None => readings.push(Reading::from([(path, value)])),
        }
    }
    let of_time = by_time
        .into_iter()
        .flat_map(|((_, measured_at), readings)| {
            readings.into_iter().map(move |values| Measurement {
                measured_at,
                values,
            })
        });
    of_time.collect()
}

/// The newest value of each path.
pub(super) fn newest(measurements: &[Measurement]) -> Reading {
    let values = measurements.iter().flat_map(|it| &it.values);
    values.map(|(path, value)| (*path, value.clone())).collect()
}

/// The time of a measurement. A relative time of zero counts as none: it means about now (RFC 8428
/// section 4.5.3).
fn time_of(measured: Measured, received_at: Timestamp) -> Option<Timestamp> {
    match measured {
        Measured::Relative(0) => None,
        Measured::Relative(after_ms) => Some(received_at.plus_ms(after_ms)),
        Measured::Absolute(at_ms) => Some(Timestamp::from_ms(at_ms)),
    }
}

#[cfg(test)]
mod tests {
    use protocol::lwm2m::path::Path;
    use protocol::lwm2m::value::Value;

    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_700_000_000_000);

    const ONE: Path = Path::resource(3303, 0, 5700);

    const OTHER: Path = Path::resource(3304, 0, 5700);

    #[test]
    fn values_of_one_time_are_together_and_the_oldest_come_first() {
        let measurements = by_time(
            NOW,
            vec![
                sample(ONE, 1, None),
                sample(ONE, 2, Some(Measured::Relative(-5_000))),
                sample(OTHER, 3, None),
                sample(OTHER, 4, Some(Measured::Absolute(NOW.as_ms() - 5_000))),
                sample(ONE, 5, Some(Measured::Absolute(7))),
            ],
        );
        let expected = [
            (Some(Timestamp::from_ms(7)), vec![(ONE, 5)]),
            (Some(NOW.plus_ms(-5_000)), vec![(ONE, 2), (OTHER, 4)]),
            (None, vec![(ONE, 1), (OTHER, 3)]),
        ];
        assert_eq!(measurements, expected.map(measurement));
        assert_eq!(newest(&measurements), reading(vec![(ONE, 1), (OTHER, 3)]));
    }

    #[test]
    fn several_values_of_a_path_at_one_time_are_published_one_after_the_other() {
        let measurements = by_time(
            NOW,
            vec![
                sample(ONE, 1, None),
                sample(OTHER, 2, None),
                sample(ONE, 3, None),
                sample(OTHER, 4, None),
            ],
        );
        let expected = [
            (None, vec![(ONE, 1), (OTHER, 2)]),
            (None, vec![(ONE, 3), (OTHER, 4)]),
        ];
        assert_eq!(measurements, expected.map(measurement));
        assert_eq!(newest(&measurements), reading(vec![(ONE, 3), (OTHER, 4)]));
    }

    #[test]
    fn a_time_of_zero_is_about_now() {
        let zero = Some(Measured::Relative(0));
        let measurements = by_time(NOW, vec![sample(ONE, 1, zero), sample(OTHER, 2, None)]);
        assert_eq!(
            measurements,
            [measurement((None, vec![(ONE, 1), (OTHER, 2)]))]
        );
    }

    #[test]
    fn extreme_times_are_accepted() {
        for measured in [
            Measured::Relative(i64::MAX),
            Measured::Relative(i64::MIN),
            Measured::Absolute(i64::MAX),
            Measured::Absolute(i64::MIN),
        ] {
            let measurements = by_time(NOW, vec![sample(ONE, 1, Some(measured))]);
            assert!(measurements[0].measured_at.is_some(), "{measured:?}");
        }
    }

    #[test]
    fn a_value_from_the_future_comes_after_one_measured_now() {
        let ahead = Some(Measured::Relative(60_000));
        let further = Some(Measured::Relative(61_000));
        let measurements = by_time(
            NOW,
            vec![
                sample(ONE, 3, further),
                sample(ONE, 2, ahead),
                sample(ONE, 1, None),
            ],
        );
        let order: Vec<_> = measurements
            .iter()
            .map(|it| it.values[&ONE].clone())
            .collect();
        assert_eq!(order, [1, 2, 3].map(Value::Integer));
    }

    fn sample(path: Path, value: i64, measured: Option<Measured>) -> Sample {
        Sample {
            path,
            value: Value::Integer(value),
            measured,
        }
    }

    fn measurement((measured_at, values): (Option<Timestamp>, Vec<(Path, i64)>)) -> Measurement {
        Measurement {
            measured_at,
            values: reading(values),
        }
    }

    fn reading(values: Vec<(Path, i64)>) -> Reading {
        let values = values.into_iter();
        values
            .map(|(path, value)| (path, Value::Integer(value)))
            .collect()
    }
}
