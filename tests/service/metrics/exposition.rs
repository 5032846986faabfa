//! Does a text follow the Prometheus text format 0.0.4, and what does it contain?
//!
//! The check is stricter than Prometheus: the samples of a family are together, after its help and
//! type, names follow the conventions, and histograms add up.

use std::collections::{BTreeMap, BTreeSet};

/// The content of one scrape.
#[derive(Debug, Default)]
pub(crate) struct Exposition(BTreeMap<String, Family>);

/// The samples of one metric.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    pub(crate) help: String,
    pub(crate) kind: String,
    pub(crate) samples: Vec<Sample>,
}

/// One sample.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

impl Exposition {
    /// Reads a text and fails on anything that another reader might reject.
    pub(crate) fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line ends");
        let mut exposition = Self::default();
        let mut lines = text.lines().filter(|line| !line.is_empty()).peekable();
        while let Some(line) = lines.next() {
            let help = line.strip_prefix("# HELP ");
            let (name, help) = help.and_then(|rest| rest.split_once(' ')).expect(line);
            let line = lines.next().expect("a type behind the help");
            let kind = line.strip_prefix(&format!("# TYPE {name} ")).expect(line);
            let mut samples = Vec::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
                samples.push(Sample::read(line));
            }
            let family = Family {
                help: help.to_owned(),
                kind: kind.to_owned(),
                samples,
            };
            family.check(name);
            let earlier = exposition.0.insert(name.to_owned(), family);
            assert!(earlier.is_none(), "{name} stands in one place");
        }
        exposition
    }

    /// The samples of a metric.
    pub(crate) fn family(&self, name: &str) -> Family {
        let family = self.0.get(name);
        family.unwrap_or_else(|| panic!("no {name}")).clone()
    }

    /// Every metric with its family.
    pub(crate) fn families(&self) -> impl Iterator<Item = (&str, &Family)> {
        self.0.iter().map(|(name, family)| (name.as_str(), family))
    }

    /// The sum of the samples of a metric or a part of a histogram that have these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let samples = self.0.values().flat_map(|family| &family.samples);
        let of_name: Vec<&Sample> = samples.filter(|sample| sample.name == name).collect();
        assert!(!of_name.is_empty(), "no {name}");
        let wanted = of_name.iter().filter(|sample| sample.has(labels));
        wanted.map(|sample| sample.value).sum()
    }

    /// The values of a label in the samples of a metric.
    pub(crate) fn values_of(&self, name: &str, label: &str) -> BTreeSet<String> {
        let samples = self.family(name).samples.into_iter();
        samples
            .filter_map(|mut sample| sample.labels.remove(label))
            .collect()
    }
}

impl Family {
    /// The label names of its samples, except that of buckets.
    pub(crate) fn labels(&self) -> BTreeSet<&str> {
        let samples = self.samples.iter();
        let labels = samples.flat_map(|sample| sample.labels.keys().map(String::as_str));
        labels.filter(|label| *label != "le").collect()
    }

    fn check(&self, name: &str) {
        assert!(is_name(name), "{name}");
        let is_ours = name.starts_with("signalbox_") || name.starts_with("process_");
        assert!(is_ours, "{name} says whose figure it is");
        assert_eq!(
            name.ends_with("_total"),
            self.kind == "counter",
            "{name} is a {}",
            self.kind
        );
        let mut labels_seen = BTreeSet::new();
        for sample in &self.samples {
            let series = (&sample.name, &sample.labels);
            assert!(labels_seen.insert(series), "{series:?} is listed once");
            let part = sample.name.strip_prefix(name);
            let parts: &[&str] = match self.kind.as_str() {
                "counter" | "gauge" => &[""],
                "histogram" => &["_bucket", "_sum", "_count"],
                other => panic!("{name} is a {other}"),
            };
            assert!(part.is_some_and(|part| parts.contains(&part)), "{sample:?}");
            let may_fall = self.kind == "gauge";
            assert!(may_fall || sample.value >= 0.0, "{sample:?}");
        }
        if self.kind == "histogram" {
            let all = self.samples.iter().map(Sample::labels_but_bucket);
            for labels in all.collect::<BTreeSet<_>>() {
                self.check_buckets(name, &labels);
            }
        }
    }

    /// Checks that each bucket contains those below it, and that the last contains all.
    fn check_buckets(&self, name: &str, labels: &BTreeMap<&str, &str>) {
        let part = |part: &str| {
            let name = format!("{name}{part}");
            let samples = self.samples.iter();
            let samples = samples.filter(move |sample| sample.name == name);
            samples.filter(|sample| sample.labels_but_bucket() == *labels)
        };
        let buckets: Vec<(f64, f64)> = part("_bucket")
            .map(|sample| (number(&sample.labels["le"]), sample.value))
            .collect();
        let rises =
            |(lower, upper): (&(f64, f64), &(f64, f64))| lower.0 < upper.0 && lower.1 <= upper.1;
        assert!(buckets.iter().zip(buckets.iter().skip(1)).all(rises));
        let count = part("_count").map(|sample| sample.value).next();
        let last = buckets.last().copied();
        assert_eq!(last, count.map(|count| (f64::INFINITY, count)), "{name}");
        assert_eq!(part("_sum").count(), 1, "{name}");
    }
}

impl Sample {
    fn read(line: &str) -> Self {
        let (series, value) = line.rsplit_once(' ').expect(line);
        let (name, labels) = match series.split_once('{') {
            Some((name, rest)) => (name, read_labels(rest.strip_suffix('}').expect(line))),
            None => (series, BTreeMap::new()),
        };
        assert!(is_name(name), "{line}");
        Self {
            name: name.to_owned(),
            labels,
            value: number(value),
        }
    }

    fn labels_but_bucket(&self) -> BTreeMap<&str, &str> {
        let labels = self.labels.iter();
        let labels = labels.map(|(name, value)| (name.as_str(), value.as_str()));
        labels.filter(|(name, _)| *name != "le").collect()
    }

    fn has(&self, labels: &[(&str, &str)]) -> bool {
        labels
            .iter()
            .all(|(name, value)| self.labels.get(*name).is_some_and(|found| found == value))
    }
}

/// Reads `a="1",b="2"`; no value here contains escapes.
fn read_labels(text: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for label in text.split(',') {
        let (name, value) = label.split_once('=').expect(label);
        let value = value.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        let value = value.expect(label);
        assert!(is_name(name) && !value.contains(['"', '\\']), "{label}");
        assert!(labels.insert(name.to_owned(), value.to_owned()).is_none());
    }
    labels
}

fn number(text: &str) -> f64 {
    match text {
        "+Inf" => f64::INFINITY,
        text => text.parse().expect(text),
    }
}

fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(is_part)
}
