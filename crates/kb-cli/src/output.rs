//! Where results and notes go: results to stdout, all else to stderr.
//!
//! **Invariant:** stdout carries results only. With `--json` it carries one value, or one value a line where a command
//! streams. Text of the base that is shown to people has its control characters replaced, so that no document can
//! drive the terminal; bytes that are handed out as data are never touched.

use std::fmt::Write as _;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use kb_core::Warning;
use serde::Serialize;

use crate::failure::{Exit, Failure, Message};

/// When colour is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always, also into a pipe
    Always,
    /// Never
    Never,
}

impl Color {
    /// Tells every stream of this process.
    pub(crate) fn apply(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// The two streams of the process.
#[derive(Debug)]
pub(crate) struct Output {
    stdout: BufWriter<Stdout>,
    json: bool,
    quiet: bool,
    styled: bool,
}

impl Output {
    /// Opens the streams; [`Color::apply`] comes first.
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        let stdout = io::stdout();
        let styled = AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
        Self { stdout: BufWriter::new(stdout), json, quiet, styled }
    }

    /// Says whether results are JSON.
    pub(crate) const fn is_json(&self) -> bool {
        self.json
    }

    /// Says whether notes and progress are unwanted.
    pub(crate) const fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Prints a result: as JSON where that was asked for, else as `text` writes it.
    pub(crate) fn result<T: Serialize>(
        &mut self,
        value: &T,
        text: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> Result<(), Failure> {
        if self.json { self.json_line(value) } else { Ok(text(self)?) }
    }

    /// Prints one value on one line.
    pub(crate) fn json_line<T: Serialize>(&mut self, value: &T) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.stdout, value).map_err(io::Error::from)?;
        Ok(self.stdout.write_all(b"\n")?)
    }

    /// Says something that is no result, unless the user wants quiet.
    pub(crate) fn note(&mut self, text: impl std::fmt::Display) {
        if !self.quiet {
            self.write_stderr(format_args!("{text}\n"));
        }
    }

    /// Reports what a reader of a source should look at.
    pub(crate) fn warning(&mut self, text: impl std::fmt::Display) {
        if !self.quiet {
            let style = AnsiColor::Yellow.on_default().bold();
            self.write_stderr(format_args!("{style}warning{style:#}: {text}\n"));
        }
    }

    /// Reports that one thing of many failed; said even to who wants quiet.
    pub(crate) fn error(&mut self, text: impl std::fmt::Display) {
        let style = AnsiColor::Red.on_default().bold();
        self.write_stderr(format_args!("{style}error{style:#}: {text}\n"));
    }

    /// Reports the failure that ends the command; with `--json` its object is the last line of stdout.
    pub(crate) fn failure(&mut self, message: &Message) {
        self.error(printable(&message.sentence));
        if let Some(hint) = &message.hint {
            let style = AnsiColor::Cyan.on_default().bold();
            self.write_stderr(format_args!("{style}hint{style:#}: {}\n", printable(hint)));
        }
        if self.json {
            self.json_failure(message);
        }
    }

    /// Prints the object of a failure as the last line of stdout.
    pub(crate) fn json_failure(&mut self, message: &Message) {
        // A reader of stdout that is gone has nothing to be told.
        let _ = self.json_line(&ErrorObject { error: message });
        let _ = self.stdout.flush();
    }

    /// Hands all that was printed to the system.
    pub(crate) fn finish(&mut self, exit: Exit) -> Result<Exit, Failure> {
        self.stdout.flush()?;
        Ok(exit)
    }

    /// Asks for a yes on the terminal; `None` where there is none to ask on.
    pub(crate) fn confirm(&mut self, question: &str) -> Option<bool> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return None;
        }
        self.write_stderr(format_args!("{question} [y/N] "));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).ok()?;
        Some(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }

    /// Returns the text in bold, where stdout shows that.
    pub(crate) fn bold(&self, text: &str) -> String {
        self.styled_with(Style::new().bold(), text)
    }

    /// Returns the text dimmed, where stdout shows that.
    pub(crate) fn dim(&self, text: &str) -> String {
        self.styled_with(Style::new().dimmed(), text)
    }

    /// Returns the text with these ranges of characters in bold, where stdout shows that.
    pub(crate) fn highlighted(&self, text: &str, ranges: &[[u32; 2]]) -> String {
        if !self.styled {
            return printable(text);
        }
        let style = Style::new().bold();
        let (mut shown, mut inside) = (String::with_capacity(text.len()), false);
        for (index, character) in text.chars().enumerate() {
            let index = index as u32;
            let mark = ranges.iter().any(|&[start, end]| start <= index && index < end);
            if mark != inside {
                // Writing to a String cannot fail.
                let _ = if mark { write!(shown, "{style}") } else { write!(shown, "{style:#}") };
                inside = mark;
            }
            shown.push(if drives_a_terminal(character) { REPLACEMENT } else { character });
        }
        if inside {
            let _ = write!(shown, "{style:#}");
        }
        shown
    }

    fn styled_with(&self, style: Style, text: &str) -> String {
        if self.styled { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Writes to stderr after what is on its way to stdout, so that a terminal shows them in order.
    fn write_stderr(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = self.stdout.flush();
        // There is nobody left to tell that stderr is closed.
        let _ = anstream::stderr().lock().write_fmt(text);
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stdout.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    error: &'a Message,
}

/// What is shown in place of a character that must not be shown.
const REPLACEMENT: char = '\u{fffd}';

/// Says whether a character does something else than stand there: a control character, or one of those that turn the
/// direction of writing (Unicode Standard Annex 9), with which a name can be made to look like another.
fn drives_a_terminal(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the text without what could drive a terminal; line ends and tabs become blanks.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if drives_a_terminal(c) => REPLACEMENT,
            c => c,
        })
        .collect()
}

/// Returns a path on one line without what could drive a terminal. Nothing becomes a blank, for that might be the name
/// of another file.
pub(crate) fn printable_path(path: &str) -> String {
    path.chars().map(|c| if drives_a_terminal(c) { REPLACEMENT } else { c }).collect()
}

/// Returns what a user typed, fit to be shown in a message: at most 80 characters.
pub(crate) fn shortened(text: &str) -> String {
    const SHOWN: usize = 80;
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.pop();
        shown.push('…');
    }
    printable(&shown)
}

/// Writes rows in columns; no row ends in blanks.
pub(crate) fn write_columns(out: &mut impl Write, rows: &[Vec<String>]) -> io::Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            // Writing to a String cannot fail.
            let _ = write!(line, "{cell:<width$}  ");
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Returns a number of bytes in a unit that people read: powers of 1024.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would be shown as 1024.0.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Returns a count with its noun: `1 document`, `2 documents`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Returns a warning with its place in the source.
pub(crate) fn placed(warning: &Warning, source: &str) -> String {
    let place = match (warning.line, warning.column) {
        (Some(line), Some(column)) => format!("{source}:{line}:{column}"),
        (Some(line), None) => format!("{source}:{line}"),
        _ => source.to_owned(),
    };
    format!("{}: {}", printable_path(&place), printable(&warning.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(styled: bool) -> Output {
        Output { stdout: BufWriter::new(io::stdout()), json: false, quiet: false, styled }
    }

    #[test]
    fn no_document_drives_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\nc\t\u{9b}d"), "a\u{fffd}[2Jb c \u{fffd}d");
        assert_eq!(plain(false).highlighted("\u{1b}]0;x\u{7}", &[]), "\u{fffd}]0;x\u{fffd}");
        assert!(!plain(true).highlighted("\u{1b}]0;x", &[]).contains('\u{1b}'));
        for turning in ['\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}'] {
            let name = format!("gpj{turning}.md");
            assert_eq!(printable(&name), "gpj\u{fffd}.md");
            assert_eq!(plain(true).highlighted(&name, &[]), "gpj\u{fffd}.md");
            assert_eq!(printable_path(&name), "gpj\u{fffd}.md");
        }
        assert_eq!(printable_path("a\nb c\t"), "a\u{fffd}b c\u{fffd}");
    }

    #[test]
    fn what_was_typed_is_shown_at_a_length_that_can_be_read() {
        assert_eq!(shortened("é"), "é");
        assert_eq!(shortened(&"é".repeat(80)), "é".repeat(80));
        assert_eq!(shortened(&"é".repeat(81)), format!("{}…", "é".repeat(79)));
    }

    #[test]
    fn highlights_count_characters_not_bytes() {
        assert_eq!(plain(true).highlighted("é→retry ⚠", &[[2, 7]]), "é→\u{1b}[1mretry\u{1b}[0m ⚠");
        assert_eq!(plain(true).highlighted("ab", &[[1, 9]]), "a\u{1b}[1mb\u{1b}[0m");
        assert_eq!(plain(false).highlighted("é→retry ⚠", &[[2, 7]]), "é→retry ⚠");
    }

    #[test]
    fn columns_align_by_characters() {
        let mut out = Vec::new();
        let rows = [vec!["é".to_owned(), "1".to_owned()], vec!["abc".to_owned(), String::new()]];
        write_columns(&mut out, &rows).expect("a vector takes everything");
        assert_eq!(String::from_utf8(out).expect("text"), "é    1\nabc\n");
    }

    #[test]
    fn sizes_change_unit_where_they_should() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1_048_575, "1.0 MiB"),
            (u64::MAX, "16384.0 PiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
