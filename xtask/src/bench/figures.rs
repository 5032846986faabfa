//! What came out of the rounds, and how is it shown?

use std::fmt;

use serde_json::{Value, json};

/// One figure of every round.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures(Vec<f64>);

impl Figures {
    /// Takes the figure of one more round.
    pub(crate) fn push(&mut self, figure: f64) {
        self.0.push(figure);
    }

    /// The one in the middle: a disturbed round does not move it. None without a round.
    pub(crate) fn median(&self) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let upper = sorted.get(sorted.len() / 2)?;
        let lower = sorted.get((sorted.len() - 1) / 2)?;
        Some((lower + upper) / 2.0)
    }

    /// The median and, of several rounds, the extremes, with so many decimals.
    pub(crate) fn shown(&self, decimals: usize) -> impl fmt::Display {
        let Some(median) = self.median() else {
            return "–".to_owned();
        };
        let median = number(median, decimals);
        match self.0.as_slice() {
            [_] => median,
            _ => format!(
                "{median} ({}–{})",
                number(self.least(), decimals),
                number(self.most(), decimals)
            ),
        }
    }

    /// All rounds together.
    pub(crate) fn sum(&self) -> f64 {
        self.0.iter().fold(0.0, |sum, figure| sum + figure)
    }

    /// For a program that reads the report.
    pub(crate) fn json(&self) -> Value {
        json!({
            "median": self.median(),
            "least": self.least(),
            "most": self.most(),
            "rounds": self.0,
        })
    }

    fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn most(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

impl FromIterator<f64> for Figures {
    fn from_iter<T: IntoIterator<Item = f64>>(figures: T) -> Self {
        Self(figures.into_iter().collect())
    }
}

/// A number with a comma before every three digits, and so many decimals.
pub(crate) fn number(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let whole = text.split('.').next().unwrap_or_default().len();
    let mut shown = String::new();
    for (at, digit) in text.chars().enumerate() {
        let is_after_digit = shown.ends_with(|last: char| last.is_ascii_digit());
        if is_after_digit && at < whole && (whole - at) % 3 == 0 {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::{Figures, number};

    #[test]
    fn the_median_stands_with_its_spread() {
        let shown = |figures: &[f64], decimals| {
            let figures: Figures = figures.iter().copied().collect();
            figures.shown(decimals).to_string()
        };
        assert_eq!(shown(&[3.0, 1.0, 20_000.0], 0), "3 (1–20,000)");
        assert_eq!(shown(&[1.0, 2.0], 1), "1.5 (1.0–2.0)");
        assert_eq!(shown(&[0.254], 2), "0.25");
        assert_eq!(shown(&[], 2), "–");
    }

    #[test]
    fn long_numbers_are_grouped() {
        for (value, decimals, text) in [
            (0.0, 0, "0"),
            (999.0, 0, "999"),
            (1_000.0, 0, "1,000"),
            (1_234_567.891, 2, "1,234,567.89"),
            (-1_234.5, 1, "-1,234.5"),
            (-123.0, 0, "-123"),
        ] {
            assert_eq!(number(value, decimals), text);
        }
    }
}
