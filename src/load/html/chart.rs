//! How is a chart drawn? Lines over two axes, as SVG that scales with the page.

use std::fmt::Write as _;

use harness::load::figures::number;

use super::{Points, push, text};

/// The size of the drawing; a page of 390 pixels shows it at about this size.
const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 210.0;

/// The place of the lines within the drawing.
const LEFT: f64 = 52.0;
const RIGHT: f64 = 390.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 186.0;

/// About this many ticks fit an axis.
const TICKS: f64 = 5.0;

/// A chart.
pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<Series>,
}

/// A line.
pub(super) struct Series {
    name: String,
    class: &'static str,
    points: Points,
}

/// An axis: its ends, and its ticks with their labels.
pub(super) struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
    ticks: Vec<(f64, String)>,
}

#[derive(Clone, Copy)]
enum Scale {
    Linear,
    Logarithmic,
}

impl Axis {
    /// The end of the axis of percentiles: 99.99 %.
    pub(super) const PERCENTILES_MAX: f64 = 4.0;

    /// Seconds from 0 on.
    pub(super) fn seconds(length_s: f64) -> Self {
        let mut axis = Self::up_to(length_s);
        axis.high = length_s;
        axis.ticks.retain(|(at, _)| *at <= length_s);
        for (_, label) in &mut axis.ticks {
            label.push_str(" s");
        }
        axis
    }

    /// From 0 to the highest value.
    pub(super) fn linear(lines: &[&Points]) -> Self {
        Self::up_to(values(lines).fold(0.0, f64::max).max(1.0))
    }

    /// Whole powers of ten around all values.
    pub(super) fn logarithmic(lines: &[&Points]) -> Self {
        let least = values(lines).fold(f64::INFINITY, f64::min);
        let most = values(lines).fold(f64::NEG_INFINITY, f64::max);
        let (least, most) = match least.is_finite() {
            true => (least.max(0.001), most.max(0.001)),
            false => (1.0, 10.0),
        };
        let (low, high) = (least.log10().floor(), most.log10().ceil());
        let high = high.max(low + 1.0);
        let powers = (low as i32)..=(high as i32);
        let tick = |power: i32| {
            let decimals = usize::try_from(-power).unwrap_or_default();
            let at = 10_f64.powi(power);
            (at, number(at, decimals))
        };
        Self {
            low: 10_f64.powf(low),
            high: 10_f64.powf(high),
            scale: Scale::Logarithmic,
            ticks: powers.map(tick).collect(),
        }
    }

    /// Percentiles, of which the last few need the most room.
    pub(super) fn percentiles() -> Self {
        let ticks = [
            (0.301, "50 %"),
            (1.0, "90 %"),
            (2.0, "99 %"),
            (3.0, "99.9 %"),
            (4.0, "99.99 %"),
        ];
        Self {
            low: 0.0,
            high: Self::PERCENTILES_MAX,
            scale: Scale::Linear,
            ticks: ticks.map(|(at, label)| (at, label.to_owned())).into(),
        }
    }

    fn up_to(most: f64) -> Self {
        let rough = most / TICKS;
        let power = 10_f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
        let step = steps.into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let count = (most / step).ceil() as u32;
        let decimals = usize::from(step < 1.0) + usize::from(step < 0.1);
        let tick = |index| {
            let at = f64::from(index) * step;
            (at, number(at, decimals))
        };
        Self {
            low: 0.0,
            high: f64::from(count) * step,
            scale: Scale::Linear,
            ticks: (0..=count).map(tick).collect(),
        }
    }

    /// The place of a value, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        let measure = |value: f64| match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => value.max(self.low).log10(),
        };
        let (low, high) = (measure(self.low), measure(self.high));
        (measure(value) - low) / (high - low)
    }
}

impl Series {
    /// A line with a name, in the color of a class.
    pub(super) fn new(name: &str, class: &'static str, points: Points) -> Self {
        Self {
            name: name.to_owned(),
            class,
            points,
        }
    }
}

impl Chart {
    /// The chart with its title and legend.
    pub(super) fn svg(&self) -> String {
        let title = self.title;
        let mut out = format!("<figure>\n<figcaption>{title}</figcaption>\n");
        out.push_str("<div class=\"legend\">");
        for Series { name, class, .. } in &self.series {
            let name = text(name);
            push(
                &mut out,
                format_args!("<span class=\"{class}\"><b>{name}</b></span>"),
            );
        }
        push(
            &mut out,
            format_args!(
                "</div>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
                 aria-label=\"{title}\">\n"
            ),
        );
        self.axes(&mut out);
        for Series { class, points, .. } in &self.series {
            let path = self.path(points);
            push(
                &mut out,
                format_args!("<path class=\"line {class}\" d=\"{path}\"/>\n"),
            );
        }
        out.push_str("</svg>\n</figure>\n");
        out
    }

    fn axes(&self, out: &mut String) {
        for (at, label) in &self.y.ticks {
            let y = self.y_of(*at);
            let (text_x, text_y) = (LEFT - 6.0, y + 4.0);
            push(
                out,
                format_args!(
                    "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>\
                     <text x=\"{text_x}\" y=\"{text_y:.1}\" text-anchor=\"end\">{label}</text>\n"
                ),
            );
        }
        for (at, label) in &self.x.ticks {
            let x = self.x_of(*at);
            let anchor = match x {
                x if x > RIGHT - 20.0 => "end",
                _ => "middle",
            };
            let y = BOTTOM + 16.0;
            push(
                out,
                format_args!(
                    "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"{anchor}\">{label}</text>\n"
                ),
            );
        }
    }

    /// A line with its gaps; a point between two gaps is a dot.
    fn path(&self, points: &Points) -> String {
        let mut path = String::new();
        let mut command = 'M';
        for (x, y) in points {
            let Some(y) = y else {
                command = 'M';
                continue;
            };
            let (x, y) = (self.x_of(*x), self.y_of(*y));
            let dot = if command == 'M' { "h0" } else { "" };
            write!(path, "{command}{x:.1} {y:.1}{dot}").expect("a string takes any text");
            command = 'L';
        }
        path
    }

    fn x_of(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (RIGHT - LEFT)
    }

    fn y_of(&self, value: f64) -> f64 {
        BOTTOM - self.y.place(value) * (BOTTOM - TOP)
    }
}

fn values<'a>(lines: &'a [&Points]) -> impl Iterator<Item = f64> + 'a {
    let points = lines.iter().flat_map(|points| points.iter());
    points.filter_map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        let axis = |most| Axis::linear(&[&vec![(0.0, Some(most))]]);
        assert_eq!(
            labels(&axis(4_321.0)),
            ["0", "1,000", "2,000", "3,000", "4,000", "5,000"]
        );
        assert_eq!(
            labels(&axis(0.0)),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(
            labels(&Axis::seconds(2.3)),
            ["0.0 s", "0.5 s", "1.0 s", "1.5 s", "2.0 s"]
        );
        let latencies = vec![(0.0, Some(0.4)), (1.0, None), (2.0, Some(35.0))];
        assert_eq!(
            labels(&Axis::logarithmic(&[&latencies])),
            ["0.1", "1", "10", "100"]
        );
        assert_eq!(labels(&Axis::logarithmic(&[])), ["1", "10"]);
    }

    #[test]
    fn a_gap_interrupts_a_line() {
        let points = vec![
            (0.0, Some(0.0)),
            (1.0, Some(5.0)),
            (2.0, None),
            (3.0, Some(10.0)),
        ];
        let chart = Chart {
            title: "Example",
            x: Axis::seconds(4.0),
            y: Axis::linear(&[&points]),
            series: vec![Series::new("a & b", "one", points.clone())],
        };
        assert_eq!(chart.path(&points), "M52.0 186.0h0L136.5 98.0M305.5 10.0h0");
        assert!(chart.svg().contains("a &amp; b"));
    }
}
