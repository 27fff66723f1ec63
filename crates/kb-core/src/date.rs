//! Dates of documents, bounds of a search by date, and instants, without a clock.
//!
//! Days are counted with the algorithms of Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms"
//! (`days_from_civil`, `civil_from_days`), on the proleptic Gregorian calendar.
//!
//! **Invariant:** a [`DocDate`] and a [`Timestamp`] that exist lie in the years 0000 to 9999, and what they print parses
//! to the same value.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const SECONDS_OF_DAY: i64 = 86_400;
/// 0000-01-01T00:00:00Z and 9999-12-31T23:59:59Z, in seconds since 1970-01-01T00:00:00Z.
const SECONDS: std::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;

/// The text is no date that kb reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a date (YYYY, YYYY-MM, YYYY-MM-DD, or RFC 3339): `{0}`")]
pub struct DateError(String);

/// An instant: seconds since 1970-01-01T00:00:00Z, leap seconds not counted, and nanoseconds.
///
/// ```
/// use kb_core::Timestamp;
///
/// let instant: Timestamp = "2031-03-01T00:30:00+02:00".parse()?;
/// assert_eq!(instant.to_string(), "2031-02-28T22:30:00Z");
/// # Ok::<(), kb_core::DateError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
}

impl Timestamp {
    /// Returns this instant, or `None` outside the years 0000 to 9999 or for a second or more of nanoseconds.
    pub fn new(seconds: i64, nanos: u32) -> Option<Self> {
        (SECONDS.contains(&seconds) && nanos < 1_000_000_000).then_some(Self { seconds, nanos })
    }

    /// Returns whole seconds since 1970-01-01T00:00:00Z.
    pub const fn seconds(self) -> i64 {
        self.seconds
    }

    /// Returns the nanoseconds within the second.
    pub const fn nanos(self) -> u32 {
        self.nanos
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.seconds.div_euclid(SECONDS_OF_DAY));
        let second = self.seconds.rem_euclid(SECONDS_OF_DAY);
        write!(f, "{year:04}-{month:02}-{day:02}T")?;
        write_time(f, second, self.nanos)?;
        f.write_str("Z")
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({self})")
    }
}

impl FromStr for Timestamp {
    type Err = DateError;

    /// Reads an RFC 3339 date-time; one without a zone is taken as UTC.
    fn from_str(text: &str) -> Result<Self, DateError> {
        text.parse::<DocDate>()?.instant().ok_or_else(|| error(text))
    }
}

/// The date of a document, as precise as it was written.
///
/// `2031`, `2031-03`, `2031-03-01`, or a date-time of RFC 3339, where `T` may be a blank and seconds and zone may be
/// missing (then it is UTC). The calendar date is kept as written, in its own zone; a leap second is read as the
/// second before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DocDate {
    year: i64,
    month: Option<u8>,
    day: Option<u8>,
    time: Option<Time>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Time {
    second_of_day: u32,
    nanos: u32,
    offset_minutes: i32,
}

impl DocDate {
    /// Returns the year as written.
    pub const fn year(self) -> i64 {
        self.year
    }

    /// Returns the month as written, 1 to 12, if it was.
    pub const fn month(self) -> Option<u8> {
        self.month
    }

    /// Returns the day of the month as written, if it was.
    pub const fn day(self) -> Option<u8> {
        self.day
    }

    /// Returns the instant, if a time was given.
    pub fn instant(self) -> Option<Timestamp> {
        let time = self.time?;
        let local = self.first_day() * SECONDS_OF_DAY + i64::from(time.second_of_day);
        Timestamp::new(local - i64::from(time.offset_minutes) * 60, time.nanos)
    }

    /// Says whether this date is not before the bound.
    ///
    /// A bound without a time is compared with the calendar date as the document writes it, in its own zone; one with
    /// a time is compared by instant where the document gives one. A date that names a month or a year stands for the
    /// whole of it, so `2031` is since `2031-03-01`: some of it is.
    pub fn is_since(self, bound: DateBound) -> bool {
        match (self.instant(), bound.0.instant()) {
            (Some(own), Some(bound)) => own >= bound,
            _ => self.last_day() >= bound.0.first_day(),
        }
    }

    /// Says whether this date is not after the bound, the whole day, month or year of the bound included.
    ///
    /// See [`DocDate::is_since`] for what is compared.
    pub fn is_until(self, bound: DateBound) -> bool {
        match (self.instant(), bound.0.instant()) {
            (Some(own), Some(bound)) => own <= bound,
            _ => self.first_day() <= bound.0.last_day(),
        }
    }

    /// Returns the first day that the date names, in days since 1970-01-01, in its own zone.
    pub fn first_day(self) -> i64 {
        days_from_civil(self.year, self.month.unwrap_or(1), self.day.unwrap_or(1))
    }

    /// Returns the last day that the date names, in days since 1970-01-01, in its own zone.
    pub fn last_day(self) -> i64 {
        let month = self.month.unwrap_or(12);
        days_from_civil(self.year, month, self.day.unwrap_or_else(|| days_of_month(self.year, month)))
    }
}

impl fmt::Display for DocDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}", self.year)?;
        if let Some(month) = self.month {
            write!(f, "-{month:02}")?;
        }
        if let Some(day) = self.day {
            write!(f, "-{day:02}")?;
        }
        let Some(time) = self.time else { return Ok(()) };
        f.write_str("T")?;
        write_time(f, i64::from(time.second_of_day), time.nanos)?;
        let (sign, offset) =
            if time.offset_minutes < 0 { ('-', -time.offset_minutes) } else { ('+', time.offset_minutes) };
        if offset == 0 { f.write_str("Z") } else { write!(f, "{sign}{:02}:{:02}", offset / 60, offset % 60) }
    }
}

impl fmt::Debug for DocDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DocDate({self})")
    }
}

impl FromStr for DocDate {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        parse(text.trim()).ok_or_else(|| error(text))
    }
}

/// One end of a search by date: see [`DocDate::is_since`] and [`DocDate::is_until`].
///
/// ```
/// use kb_core::{DateBound, DocDate};
///
/// let date: DocDate = "2031-03-01T00:30+02:00".parse()?; // still February in UTC
/// assert!(date.is_since("2031-03-01".parse()?));
/// assert!(!date.is_since("2031-03-01T00:00Z".parse()?));
/// assert!(date.is_until("2031-03".parse()?));
/// # Ok::<(), kb_core::DateError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DateBound(DocDate);

impl From<DocDate> for DateBound {
    fn from(date: DocDate) -> Self {
        Self(date)
    }
}

impl FromStr for DateBound {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        text.parse().map(Self)
    }
}

impl fmt::Display for DateBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! serde_as_text {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

serde_as_text!(Timestamp, DocDate, DateBound);

fn error(text: &str) -> DateError {
    DateError(text.chars().take(80).collect())
}

fn write_time(f: &mut fmt::Formatter<'_>, second: i64, nanos: u32) -> fmt::Result {
    write!(f, "{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)?;
    if nanos != 0 {
        write!(f, ".{}", format!("{nanos:09}").trim_end_matches('0'))?;
    }
    Ok(())
}

fn parse(text: &str) -> Option<DocDate> {
    let mut rest = text;
    let year = i64::from(number(&mut rest, 4)?);
    let mut date = DocDate { year, month: None, day: None, time: None };
    if rest.is_empty() {
        return Some(date);
    }
    let month = part(&mut rest, '-', 1, 12)?;
    date.month = Some(month);
    if rest.is_empty() {
        return Some(date);
    }
    date.day = Some(part(&mut rest, '-', 1, days_of_month(year, month))?);
    if rest.is_empty() {
        return Some(date);
    }
    rest = rest.strip_prefix(['T', 't', ' '])?;
    date.time = Some(parse_time(rest)?);
    date.instant().is_some().then_some(date)
}

fn parse_time(mut rest: &str) -> Option<Time> {
    let hour = number(&mut rest, 2).filter(|&hour| hour < 24)?;
    let minute = part(&mut rest, ':', 0, 59)?;
    let mut time = Time { second_of_day: hour * 3600 + u32::from(minute) * 60, nanos: 0, offset_minutes: 0 };
    if rest.starts_with(':') {
        time.second_of_day += u32::from(part(&mut rest, ':', 0, 60)?.min(59));
        if let Some(fraction) = rest.strip_prefix(['.', ',']) {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return None;
            }
            let shown = &fraction[..digits.min(9)];
            time.nanos = shown.parse::<u32>().ok()? * 10_u32.pow(9 - shown.len() as u32);
            rest = &fraction[digits..];
        }
    }
    rest = rest.trim_start_matches(' ');
    let sign = match rest.chars().next() {
        None => return Some(time),
        Some('Z' | 'z') if rest.len() == 1 => return Some(time),
        Some('+') => 1,
        Some('-') => -1,
        _ => return None,
    };
    rest = &rest[1..];
    let hours = number(&mut rest, 2).filter(|&hours| hours < 24)?;
    let minutes = match rest.strip_prefix(':').unwrap_or(rest) {
        "" if rest.is_empty() => 0,
        mut digits => {
            let minutes = number(&mut digits, 2).filter(|&minutes| minutes < 60)?;
            digits.is_empty().then_some(minutes)?
        }
    };
    time.offset_minutes = sign * (hours * 60 + minutes) as i32;
    Some(time)
}

/// Takes exactly `width` digits from the front.
fn number(rest: &mut &str, width: usize) -> Option<u32> {
    let digits = rest.get(..width).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))?;
    *rest = &rest[width..];
    digits.parse().ok()
}

/// Takes a separator and two digits within these bounds.
fn part(rest: &mut &str, separator: char, least: u8, most: u8) -> Option<u8> {
    *rest = rest.strip_prefix(separator)?;
    let value = number(rest, 2)? as u8;
    (least..=most).contains(&value).then_some(value)
}

fn days_of_month(year: i64, month: u8) -> u8 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01; years begin in March, so that the leap day is the last of its year.
fn days_from_civil(year: i64, month: u8, day: u8) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((i64::from(month) + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, u8, u8) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u8, day as u8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn date(text: &str) -> DocDate {
        text.parse().unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn dates_are_read_as_precisely_as_written() {
        for (given, shown) in [
            ("2031", "2031"),
            ("2031-03", "2031-03"),
            (" 2031-03-01 ", "2031-03-01"),
            ("2031-03-01T10:20", "2031-03-01T10:20:00Z"),
            ("2031-03-01 10:20:30", "2031-03-01T10:20:30Z"),
            ("2031-03-01 10:20:30 +0200", "2031-03-01T10:20:30+02:00"),
            ("2031-03-01t10:20:30.25z", "2031-03-01T10:20:30.25Z"),
            ("2031-03-01T10:20:60-05", "2031-03-01T10:20:59-05:00"),
            ("2028-02-29", "2028-02-29"),
        ] {
            assert_eq!(date(given).to_string(), shown, "{given}");
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for bad in [
            "",
            "31",
            "2031-",
            "2031-13",
            "2031-00",
            "2031-02-29",
            "2100-02-29",
            "2031-03-01T",
            "2031-03-01T24:00",
            "2031-03-01T10",
            "2031-03-01T10:60",
            "2031-03-01T10:20+2",
            "2031-03-01T10:20+02:",
            "2031-3-1",
            "03/01/2031",
            "2031-03-01T10:20:30.",
            "2031-03-01T10:20Zz",
            "２０３１",
            "0000-01-01T00:00+01:00",
            "9999-12-31T23:59-01:00",
        ] {
            assert!(bad.parse::<DocDate>().is_err(), "{bad}");
        }
        assert!("2031-03-01".parse::<Timestamp>().is_err());
    }

    #[test]
    fn known_instants() {
        assert_eq!(date("1970-01-01T00:00Z").instant().map(Timestamp::seconds), Some(0));
        assert_eq!(date("2000-03-01T00:00Z").instant().map(Timestamp::seconds), Some(951_868_800));
        assert_eq!(Timestamp::new(*SECONDS.start(), 0).map(|t| t.to_string()).as_deref(), Some("0000-01-01T00:00:00Z"));
        assert_eq!(Timestamp::new(*SECONDS.end(), 0).map(|t| t.to_string()).as_deref(), Some("9999-12-31T23:59:59Z"));
        assert_eq!(Timestamp::new(SECONDS.end() + 1, 0), None);
    }

    #[test]
    fn bounds_include_the_whole_of_what_they_name() {
        for (text, bound, since, until) in [
            ("2031-03-01T00:30+02:00", "2031-03-01", true, true),
            ("2031-03-01T00:30+02:00", "2031-02-28", true, false),
            ("2031-03-01T00:30+02:00", "2031-02-28T22:30:00Z", true, true),
            ("2031-03-01T00:30+02:00", "2031-02-28T22:30:01Z", false, true),
            ("2031-03-01T23:59:59Z", "2031-03-01", true, true),
            ("2031-12-31", "2031", true, true),
            ("2031-12-31", "2031-11", true, false),
            ("2031-01-01", "2030", true, false),
            ("2031", "2031-03-01", true, true),
            ("2031-02", "2031-03-01", false, true),
            ("2031-03-01", "2031-03-01T12:00Z", true, true),
        ] {
            let bound: DateBound = bound.parse().expect("a bound");
            assert_eq!((date(text).is_since(bound), date(text).is_until(bound)), (since, until), "{text} {bound}");
        }
    }

    proptest! {
        #[test]
        fn days_and_calendar_agree(days in -719_528_i64..=2_932_896) {
            let (year, month, day) = civil_from_days(days);
            prop_assert!((1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day));
            prop_assert_eq!(days_from_civil(year, month, day), days);
        }

        #[test]
        fn an_instant_reads_back(seconds in SECONDS, nanos in 0_u32..1_000_000_000) {
            let instant = Timestamp::new(seconds, nanos).expect("in range");
            prop_assert_eq!(instant.to_string().parse(), Ok(instant));
        }

        #[test]
        fn a_date_reads_back(text in "[0-9]{4}(-[01][0-9](-[0-3][0-9]([T ][0-2][0-9]:[0-5][0-9](:[0-5][0-9](\\.[0-9]{1,12})?)?(Z|[+-][01][0-9]:?[0-5][0-9])?)?)?)?") {
            if let Ok(date) = text.parse::<DocDate>() {
                prop_assert_eq!(date.to_string().parse(), Ok(date));
            }
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<DocDate>();
        }
    }
}
