//! What came out of the rounds, and how is it shown?

use std::fmt;

/// One figure of every round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures(Vec<f64>);

impl Figures {
    /// The one in the middle: a disturbed round does not move it.
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }

    /// Round by round, how many times the other's figure.
    pub(crate) fn over(&self, other: &Self) -> Self {
        self.0
            .iter()
            .zip(&other.0)
            .map(|(ours, theirs)| ours / theirs)
            .collect()
    }

    /// The median and the extremes, with so many decimals.
    pub(crate) fn shown(&self, decimals: usize) -> impl fmt::Display {
        let least = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.0.iter().copied().fold(0.0, f64::max);
        format!(
            "{:.decimals$} ({least:.decimals$}–{most:.decimals$})",
            self.median()
        )
    }
}

impl FromIterator<f64> for Figures {
    fn from_iter<T: IntoIterator<Item = f64>>(figures: T) -> Self {
        Self(figures.into_iter().collect())
    }
}
