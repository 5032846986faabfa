//! What are the results of several rounds of a measurement, and how are they printed?

use std::fmt;

/// One figure per round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures(Vec<f64>);

impl Figures {
    /// Adds the figure of a round.
    pub fn push(&mut self, figure: f64) {
        self.0.push(figure);
    }

    /// The figures in the order of their rounds.
    pub fn rounds(&self) -> &[f64] {
        &self.0
    }

    /// The median: a disturbed round does not move it. None without a round.
    pub fn median(&self) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let upper = sorted.get(sorted.len() / 2)?;
        let lower = sorted.get((sorted.len() - 1) / 2)?;
        Some((lower + upper) / 2.0)
    }

    /// The minimum.
    pub fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The maximum.
    pub fn most(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// The ratio to the other's figure, round by round.
    pub fn over(&self, other: &Self) -> Self {
        let pairs = self.0.iter().zip(&other.0);
        pairs.map(|(ours, theirs)| ours / theirs).collect()
    }

    /// Prints the median and, of several rounds, the extremes, with this many decimals.
    pub fn shown(&self, decimals: usize) -> impl fmt::Display + use<> {
        let shown = |figure| number(figure, decimals);
        match (self.median(), self.0.as_slice()) {
            (None, _) => "–".to_owned(),
            (Some(median), [_]) => shown(median),
            (Some(median), _) => {
                let (least, most) = (shown(self.least()), shown(self.most()));
                format!("{} ({least}–{most})", shown(median))
            }
        }
    }
}

impl FromIterator<f64> for Figures {
    fn from_iter<T: IntoIterator<Item = f64>>(figures: T) -> Self {
        Self(figures.into_iter().collect())
    }
}

/// Prints a number with thousands separators and this many decimals.
pub fn number(number: f64, decimals: usize) -> String {
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

    fn figures(of: &[f64]) -> Figures {
        of.iter().copied().collect()
    }

    #[test]
    fn the_median_is_printed_with_its_spread() {
        let shown = |of: &[f64], decimals| figures(of).shown(decimals).to_string();
        assert_eq!(shown(&[3.0, 1.0, 20_000.0], 0), "3 (1–20,000)");
        assert_eq!(shown(&[1.0, 2.0], 1), "1.5 (1.0–2.0)");
        assert_eq!(shown(&[0.254], 2), "0.25");
        assert_eq!(shown(&[], 2), "–");
    }

    #[test]
    fn a_ratio_compares_round_by_round() {
        let ratio = figures(&[1.0, 6.0]).over(&figures(&[2.0, 3.0]));
        assert_eq!(ratio.rounds(), [0.5, 2.0]);
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
