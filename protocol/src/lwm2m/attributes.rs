//! Under which conditions does a device notify? The attributes of a path, as a server writes them
//! (LwM2M Core 1.2 section 7.3).

use std::fmt;

use thiserror::Error;

use super::path::Path;
use super::version::EnablerVersion;

/// Bounds the form of a number on the wire, which has no exponent: a Uri-Query option has 255 bytes
/// at most (RFC 7252 section 5.10), and no sensor measures that finely.
pub const NUMBER_BYTES_MAX: usize = 64;

/// An attribute that a server may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttributeName {
    /// The fewest seconds between two notifications.
    MinimumPeriod,
    /// The most seconds between two notifications.
    MaximumPeriod,
    /// The fewest seconds between two evaluations of the conditions.
    MinimumEvaluationPeriod,
    /// The most seconds between two evaluations of the conditions.
    MaximumEvaluationPeriod,
    /// Notify when the value crosses this upper bound.
    GreaterThan,
    /// Notify when the value crosses this lower bound.
    LessThan,
    /// Notify when the value changed by this much.
    Step,
    /// Notify when the value becomes false (0) or true (1).
    Edge,
    /// Whether notifications are Confirmable.
    Confirmable,
    /// How many values a device that cannot notify keeps.
    MaximumHistoricalQueue,
}

/// Attributes to write, each at most once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(Box<[Attribute]>);

/// An attribute to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: AttributeName,
    /// Its value as it is sent; none to remove the attribute.
    pub value: Option<Box<str>>,
}

/// A fault in the attributes of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeFault {
    /// The attribute as the caller named it.
    pub name: Box<str>,
    /// What is wrong with it.
    pub reason: InvalidAttribute,
}

/// Why an attribute is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidAttribute {
    /// The name is unknown.
    #[error("is no attribute: pmin, pmax, epmin, epmax, gt, lt, st, edge, con and hqmax are")]
    Unknown,
    /// The attribute is given twice.
    #[error("must be given only once")]
    Repeated,
    /// The value is no whole number.
    #[error("must be an integer from 0 to {}", u32::MAX)]
    NoInteger,
    /// The value is no number.
    #[error("must be a finite number")]
    NoNumber,
    /// The number is too long without an exponent.
    #[error("must have at most {NUMBER_BYTES_MAX} digits when it is written without an exponent")]
    NumberTooLong,
    /// The step is negative or zero.
    #[error("must be greater than 0")]
    NoStep,
    /// The value is neither 0 nor 1.
    #[error("must be 0 or 1")]
    NoBit,
    /// The shorter period is longer than the longer one.
    #[error("must not be greater than {0}")]
    Above(AttributeName),
    /// The bounds and the step leave no room (section 7.3.2).
    #[error("must be less than gt, by more than twice st")]
    Narrow,
}

impl AttributeName {
    /// Every attribute.
    pub const ALL: [Self; 10] = [
        Self::MinimumPeriod,
        Self::MaximumPeriod,
        Self::MinimumEvaluationPeriod,
        Self::MaximumEvaluationPeriod,
        Self::GreaterThan,
        Self::LessThan,
        Self::Step,
        Self::Edge,
        Self::Confirmable,
        Self::MaximumHistoricalQueue,
    ];

    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MinimumPeriod => "pmin",
            Self::MaximumPeriod => "pmax",
            Self::MinimumEvaluationPeriod => "epmin",
            Self::MaximumEvaluationPeriod => "epmax",
            Self::GreaterThan => "gt",
            Self::LessThan => "lt",
            Self::Step => "st",
            Self::Edge => "edge",
            Self::Confirmable => "con",
            Self::MaximumHistoricalQueue => "hqmax",
        }
    }

    /// Returns the first release that has the attribute.
    pub const fn since(self) -> EnablerVersion {
        match self {
            Self::MinimumPeriod
            | Self::MaximumPeriod
            | Self::GreaterThan
            | Self::LessThan
            | Self::Step => EnablerVersion::V1_0,
            Self::MinimumEvaluationPeriod | Self::MaximumEvaluationPeriod => EnablerVersion::V1_1,
            Self::Edge | Self::Confirmable | Self::MaximumHistoricalQueue => EnablerVersion::V1_2,
        }
    }

    /// Returns whether it is a condition on the value of one resource.
    pub const fn is_about_value(self) -> bool {
        match self {
            Self::GreaterThan | Self::LessThan | Self::Step | Self::Edge => true,
            Self::MinimumPeriod
            | Self::MaximumPeriod
            | Self::MinimumEvaluationPeriod
            | Self::MaximumEvaluationPeriod
            | Self::Confirmable
            | Self::MaximumHistoricalQueue => false,
        }
    }

    /// Returns whether the path may have it: a condition on a value needs a resource.
    pub fn suits(self, path: Path) -> bool {
        !self.is_about_value() || path.to_resource().is_some()
    }

    fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }

    fn parse_value(self, text: &str) -> Result<Box<str>, InvalidAttribute> {
        match self {
            Self::MinimumPeriod
            | Self::MaximumPeriod
            | Self::MinimumEvaluationPeriod
            | Self::MaximumEvaluationPeriod
            | Self::MaximumHistoricalQueue => {
                let number: u32 = text.parse().map_err(|_| InvalidAttribute::NoInteger)?;
                Ok(number.to_string().into())
            }
            Self::GreaterThan | Self::LessThan | Self::Step => {
                let number = text.parse().ok().filter(|number: &f64| number.is_finite());
                let number = number.ok_or(InvalidAttribute::NoNumber)?;
                if self == Self::Step && number <= 0.0 {
                    return Err(InvalidAttribute::NoStep);
                }
                let written = format!("{number}");
                match written.len() <= NUMBER_BYTES_MAX {
                    true => Ok(written.into()),
                    false => Err(InvalidAttribute::NumberTooLong),
                }
            }
            Self::Edge | Self::Confirmable => match text {
                "0" | "false" => Ok("0".into()),
                "1" | "true" => Ok("1".into()),
                _ => Err(InvalidAttribute::NoBit),
            },
        }
    }
}

impl fmt::Display for AttributeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Attributes {
    /// Reads the attributes of a caller, each a name and its value; one without a value is to be
    /// removed. The error has every fault.
    pub fn parse<'t>(
        given: impl IntoIterator<Item = (&'t str, Option<&'t str>)>,
    ) -> Result<Self, Vec<AttributeFault>> {
        let mut read: Vec<Attribute> = Vec::new();
        let mut faults = Vec::new();
        for (name, value) in given {
            let attribute = parse_one(name, value).and_then(|attribute| {
                match read.iter().any(|it| it.name == attribute.name) {
                    true => Err(InvalidAttribute::Repeated),
                    false => Ok(attribute),
                }
            });
            match attribute {
                Ok(attribute) => read.push(attribute),
                Err(reason) => faults.push(fault(name, reason)),
            }
        }
        read.sort_by_key(|attribute| attribute.name);
        let read = Self(read.into());
        faults.extend(read.contradictions());
        match faults.is_empty() {
            true => Ok(read),
            false => Err(faults),
        }
    }

    /// Reads what [`Attributes::query`] writes.
    pub fn from_query(text: &str) -> Result<Self, Vec<AttributeFault>> {
        let parts = text.split('&').filter(|part| !part.is_empty());
        Self::parse(parts.map(|part| match part.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (part, None),
        }))
    }

    /// Returns the attributes as a query.
    pub fn query(&self) -> String {
        let parts: Vec<String> = self.iter().map(ToString::to_string).collect();
        parts.join("&")
    }

    /// Iterates over the attributes, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Attribute> {
        self.0.iter()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn contradictions(&self) -> Vec<AttributeFault> {
        use AttributeName as Name;
        let number = |name: Name| {
            let mut found = self.iter().filter(|it| it.name == name);
            found.find_map(|it| it.value.as_ref()?.parse::<f64>().ok())
        };
        let above = |low: Name, high: Name| {
            let pair = number(low).zip(number(high));
            let is_above = pair.is_some_and(|(low, high)| low > high);
            is_above.then(|| fault(low.as_str(), InvalidAttribute::Above(high)))
        };
        let bounds = number(Name::LessThan).zip(number(Name::GreaterThan));
        let step = number(Name::Step).unwrap_or(0.0);
        let is_narrow = bounds.is_some_and(|(low, high)| low + 2.0 * step >= high);
        let narrow = || fault(Name::LessThan.as_str(), InvalidAttribute::Narrow);
        let periods = [
            above(Name::MinimumPeriod, Name::MaximumPeriod),
            above(Name::MinimumEvaluationPeriod, Name::MaximumEvaluationPeriod),
        ];
        let narrow = is_narrow.then(narrow);
        periods.into_iter().flatten().chain(narrow).collect()
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

fn parse_one(name: &str, value: Option<&str>) -> Result<Attribute, InvalidAttribute> {
    let name = AttributeName::find(name).ok_or(InvalidAttribute::Unknown)?;
    let value = value.map(|text| name.parse_value(text)).transpose()?;
    Ok(Attribute { name, value })
}

fn fault(name: &str, reason: InvalidAttribute) -> AttributeFault {
    AttributeFault {
        name: name.into(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_written_in_one_order_and_read_back() {
        let given = [
            ("st", Some("0.5")),
            ("pmin", Some("010")),
            ("gt", Some("1e3")),
            ("con", Some("true")),
            ("pmax", None),
            ("hqmax", Some("7")),
        ];
        let read = Attributes::parse(given).unwrap();
        assert_eq!(read.query(), "pmin=10&pmax&gt=1000&st=0.5&con=1&hqmax=7");
        assert_eq!(Attributes::from_query(&read.query()), Ok(read));
        assert_eq!(Attributes::from_query(""), Ok(Attributes::default()));
    }

    #[test]
    fn every_fault_is_reported_at_once() {
        let given = [
            ("pmin", Some("60")),
            ("pmax", Some("10")),
            ("gt", Some("NaN")),
            ("st", Some("0")),
            ("edge", Some("2")),
            ("epmin", Some("-1")),
            ("speed", Some("1")),
            ("pmin", Some("1")),
            ("lt", Some("1e300")),
        ];
        let faults = Attributes::parse(given).unwrap_err();
        let faults: Vec<_> = faults.iter().map(|it| (&*it.name, it.reason)).collect();
        let expected = [
            ("gt", InvalidAttribute::NoNumber),
            ("st", InvalidAttribute::NoStep),
            ("edge", InvalidAttribute::NoBit),
            ("epmin", InvalidAttribute::NoInteger),
            ("speed", InvalidAttribute::Unknown),
            ("pmin", InvalidAttribute::Repeated),
            ("lt", InvalidAttribute::NumberTooLong),
            (
                "pmin",
                InvalidAttribute::Above(AttributeName::MaximumPeriod),
            ),
        ];
        assert_eq!(faults, expected);
    }

    #[test]
    fn bounds_leave_room_for_two_steps() {
        let of =
            |lt, st, gt| Attributes::parse([("lt", Some(lt)), ("st", Some(st)), ("gt", Some(gt))]);
        assert!(of("10", "2", "15").is_ok());
        assert!(of("10", "2", "14").is_err());
        assert!(Attributes::parse([("lt", Some("5")), ("gt", Some("5"))]).is_err());
    }

    #[test]
    fn conditions_on_a_value_need_a_resource() {
        let resource = Path::resource(3303, 0, 5700);
        let instance = Path::instance(3303, 0);
        for name in AttributeName::ALL {
            assert!(name.suits(resource), "{name}");
            assert_eq!(name.suits(instance), !name.is_about_value(), "{name}");
        }
    }
}
