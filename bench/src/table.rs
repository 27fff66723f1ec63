//! Small tables of figures: ours, the peer's, the ratio with its spread, the bar, and whether it is reached.
//!
//! **Invariant:** a ratio is the median of the runs' own ratios, each of figures taken one after the other; its spread
//! is the least and the greatest. A figure without a bar neither passes nor fails.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use crate::Result;

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Seconds, printed as s or ms.
    Seconds,
    /// Bytes, printed as MB of 1,000,000 bytes.
    Bytes,
    /// A number of things.
    Count,
    /// A number without a unit.
    Plain,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::Seconds if value < 1.0 => format!("{:.2} ms", value * 1000.0),
            Self::Seconds => format!("{value:.2} s"),
            Self::Bytes => format!("{:.1} MB", value / 1e6),
            Self::Count => format!("{value:.0}"),
            Self::Plain => format!("{value:.3}"),
        }
    }
}

/// What a figure must reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bar {
    /// Ours over the peer's, at most.
    Ratio(f64),
    /// Ours, at most.
    AtMost(f64),
    /// Ours, at least.
    AtLeast(f64),
    /// It is only shown.
    None,
}

/// One line of a table.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    name: String,
    unit: Unit,
    ours: Vec<f64>,
    peer: Vec<f64>,
    bar: Bar,
}

impl Row {
    /// Returns a line of a figure that was taken in several runs.
    pub(crate) fn new(name: impl Into<String>, unit: Unit, ours: Vec<f64>) -> Self {
        Self { name: name.into(), unit, ours, peer: Vec::new(), bar: Bar::None }
    }

    /// Adds the peer's figures of the same runs, in order.
    pub(crate) fn beside(mut self, peer: Vec<f64>) -> Self {
        self.peer = peer;
        self
    }

    /// Sets what the figure must reach.
    pub(crate) const fn bar(mut self, bar: Bar) -> Self {
        self.bar = bar;
        self
    }

    fn ratios(&self) -> Vec<f64> {
        self.ours.iter().zip(&self.peer).map(|(ours, peer)| ours / peer).collect()
    }

    /// Says whether the bar is reached; `None` where there is none.
    fn passes(&self) -> Option<bool> {
        let ours = median(&self.ours);
        match self.bar {
            Bar::Ratio(most) => Some(median(&self.ratios()).is_some_and(|ratio| ratio <= most)),
            Bar::AtMost(most) => Some(ours.is_some_and(|value| value <= most)),
            Bar::AtLeast(least) => Some(ours.is_some_and(|value| value >= least)),
            Bar::None => None,
        }
    }

    fn cells(&self) -> [String; 6] {
        let show = |values: &[f64]| median(values).map_or_else(|| "–".to_owned(), |value| self.unit.show(value));
        let ratios = self.ratios();
        let ratio = median(&ratios).map_or_else(
            || "–".to_owned(),
            |middle| {
                let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
                let most = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                format!("{middle:.2} ({least:.2}–{most:.2})")
            },
        );
        let bar = match self.bar {
            Bar::Ratio(most) => format!("≤ {most:.2} ×"),
            Bar::AtMost(most) => format!("≤ {}", self.unit.show(most)),
            Bar::AtLeast(least) => format!("≥ {}", self.unit.show(least)),
            Bar::None => String::new(),
        };
        let verdict = match self.passes() {
            Some(true) => "pass",
            Some(false) => "FAIL",
            None => "",
        };
        [self.name.clone(), show(&self.ours), show(&self.peer), ratio, bar, verdict.to_owned()]
    }
}

/// A table under a heading.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    heading: String,
    peer: String,
    rows: Vec<Row>,
}

impl Table {
    /// Returns an empty table; `peer` heads the peer's column.
    pub(crate) fn new(heading: impl Into<String>, peer: impl Into<String>) -> Self {
        Self { heading: heading.into(), peer: peer.into(), rows: Vec::new() }
    }

    /// Adds a line.
    pub(crate) fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Writes the table as Markdown to stdout.
    pub(crate) fn print(&self) -> Result<()> {
        say(&self.render())
    }

    /// Returns success unless a bar was missed.
    pub(crate) fn exit_code(&self) -> ExitCode {
        if self.rows.iter().any(|row| row.passes() == Some(false)) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    fn render(&self) -> String {
        let head = ["what", "kb", self.peer.as_str(), "ratio (spread)", "bar", ""].map(str::to_owned);
        let lines: Vec<[String; 6]> = std::iter::once(head).chain(self.rows.iter().map(Row::cells)).collect();
        let width = |column: usize| lines.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..6).map(width).collect();
        let mut text = format!("\n{}\n\n", self.heading);
        for (number, cells) in lines.iter().enumerate() {
            for (cell, width) in cells.iter().zip(&widths) {
                let _ = write!(text, "| {cell:<width$} ");
            }
            text.push_str("|\n");
            if number == 0 {
                for width in &widths {
                    let _ = write!(text, "|{:-<1$}", "", width + 2);
                }
                text.push_str("|\n");
            }
        }
        text
    }
}

/// Writes a line to stdout.
pub(crate) fn say(text: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "{text}")?)
}

/// Writes a line to stderr.
pub(crate) fn complain(text: &str) -> Result<()> {
    Ok(writeln!(std::io::stderr().lock(), "{text}")?)
}

/// Returns the middle value; of an even number of values the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count.is_multiple_of(2) => Some(sorted[half - 1].midpoint(sorted[half])),
        _ => Some(sorted[half]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_the_median_of_ratios_and_is_held_against_the_bar() {
        let row = Row::new("indexing", Unit::Seconds, vec![1.0, 4.0, 3.0]).beside(vec![2.0, 4.0, 4.0]);
        assert_eq!(row.ratios(), [0.5, 1.0, 0.75]);
        assert_eq!(row.clone().bar(Bar::Ratio(0.75)).passes(), Some(true));
        assert_eq!(row.clone().bar(Bar::Ratio(0.74)).passes(), Some(false));
        assert_eq!(row.clone().bar(Bar::AtMost(2.0)).passes(), Some(false));
        assert_eq!(row.clone().bar(Bar::AtLeast(3.0)).passes(), Some(true));
        assert_eq!(row.passes(), None);
        assert_eq!(row.cells()[3], "0.75 (0.50–1.00)");
    }

    #[test]
    fn a_bar_without_figures_is_missed() {
        assert_eq!(Row::new("size", Unit::Bytes, vec![]).bar(Bar::AtMost(1.0)).passes(), Some(false));
        assert_eq!(Row::new("size", Unit::Bytes, vec![1.0]).bar(Bar::Ratio(1.0)).passes(), Some(false));
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
    }

    #[test]
    fn a_table_lines_up_its_columns() {
        let mut table = Table::new("Size", "peer");
        table.push(Row::new("index", Unit::Bytes, vec![2e6]).beside(vec![4e6]).bar(Bar::Ratio(1.0)));
        let text = table.render();
        assert_eq!(
            text,
            "\nSize\n\n\
             | what  | kb     | peer   | ratio (spread)   | bar      |      |\n\
             |-------|--------|--------|------------------|----------|------|\n\
             | index | 2.0 MB | 4.0 MB | 0.50 (0.50–0.50) | ≤ 1.00 × | pass |\n"
        );
    }
}
