//! The scanner: where raw tokens begin and end.
//!
//! A token is what a reader would copy as one thing: `kb-store`, `v1.2.3`, `--db`, `@scope/pkg`, `C++`, a path, an
//! address. Punctuation around it is not part of it, nor is `'s`. Scripts without spaces are cut into overlapping
//! pairs of written units, and the last unit of a run stands once more by itself, so that every unit begins a token:
//! a question for one unit is answered by the terms that begin with it.
//!
//! Not tokens: the content of data URIs and what looks like base64; in Markdown and HTML the names of entities; in
//! Markdown the paths that links inside the collection lead to (an address with a scheme is words) and anchors without
//! a text; in HTML tags with their attributes, comments, scripts and styles. In Markdown comments and tags are words: they
//! cannot be told from prose about code without parsing it, and a note in a comment is worth finding.
//!
//! **Invariant:** tokens are slices of the text, in order; only the last unit of an unspaced run overlaps the token
//! before it. Nothing is allocated and the time is linear.

use super::classes::{BYTES, Class, class_of, is_ignorable, unit_len};
use super::parts::signs_after;
use super::{Markup, RawToken};

/// Longest raw token in bytes; what is longer is cut at the last place where it comes apart, or at this length.
const MAX_TOKEN_BYTES: usize = 256;

/// From this length on a token is looked at as possible base64.
const MIN_NOISE_BYTES: usize = 60;

pub(super) fn scan<'t>(text: &'t str, markup: Markup, sink: &mut impl FnMut(RawToken<'t>)) {
    Scanner { text, bytes: text.as_bytes() }.run(markup, sink);
}

struct Scanner<'t> {
    text: &'t str,
    bytes: &'t [u8],
}

impl<'t> Scanner<'t> {
    fn run(&self, markup: Markup, sink: &mut impl FnMut(RawToken<'t>)) {
        let mut tags = Tags::new(self.text);
        let mut at = 0;
        while let Some(&byte) = self.bytes.get(at) {
            at = match BYTES[byte as usize] {
                Class::Word if byte != b'_' => self.word(at, at, sink),
                Class::Joiner => self.led_word(at, sink),
                Class::Ampersand if markup != Markup::None => self.entity_end(at),
                Class::Angle if markup == Markup::Html => tags.end_of(at),
                Class::Beyond => self.beyond(at, sink),
                _ if byte == b']' && markup == Markup::Markdown => self.destination_end(at),
                Class::Angle if markup == Markup::Markdown => self.anchor_end(at),
                _ => at + 1,
            };
        }
    }

    /// If an anchor without a text stands at `at`, `<a name="x"></a>`, returns where it ends; else the next byte.
    fn anchor_end(&self, at: usize) -> usize {
        let rest = &self.bytes[at..self.bytes.len().min(at + MAX_TOKEN_BYTES)];
        let opens = [&b"<a name="[..], b"<a id="].into_iter().any(|opening| rest.starts_with(opening));
        if !opens {
            return at + 1;
        }
        let end = rest.windows(5).position(|window| window == b"></a>");
        end.filter(|&end| !rest[..end].contains(&b'\n')).map_or(at + 1, |end| at + end + 5)
    }

    /// If `](` and the path of a link inside the collection stand at `at`, returns where the path ends; else the next
    /// byte. `[](x)` in a program is not one: a path has a slash, an anchor, or the ending of a page or a picture.
    fn destination_end(&self, at: usize) -> usize {
        let rest = &self.bytes[at + 1..];
        if rest.first() != Some(&b'(') {
            return at + 1;
        }
        let path = &rest[1..rest.len().min(MAX_TOKEN_BYTES)];
        let path = &path[..path.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b')').unwrap_or(0)];
        let has = |part: &[u8]| path.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part));
        let inside = path.first() == Some(&b'#')
            || path.contains(&b'/')
            || [&b".md"[..], b".htm", b".png", b".gif", b".jp", b".svg"].into_iter().any(has);
        if inside && !has(b"://") && !has(b"mailto:") { at + 2 + path.len() } else { at + 1 }
    }

    /// Reads on from a joiner that is not inside a word: `--db`, `.NET`, `@scope/pkg` begin with one.
    fn led_word(&self, at: usize, sink: &mut impl FnMut(RawToken<'t>)) -> usize {
        let lead = match self.bytes[at] {
            b'-' if self.bytes.get(at + 1) == Some(&b'-') => 2,
            b'-' | b'.' | b'@' => 1,
            _ => return at + 1,
        };
        let begins = at.checked_sub(1).is_none_or(|before| !matches!(self.bytes[before], b'-' | b'.' | b'@' | 0x80..));
        let letter = self.bytes.get(at + lead).is_some_and(u8::is_ascii_alphabetic);
        if begins && letter { self.word(at, at + lead, sink) } else { at + 1 }
    }

    /// Reads the token that begins at `start` and whose first word character is at `from`; returns where it ends.
    fn word(&self, start: usize, from: usize, sink: &mut impl FnMut(RawToken<'t>)) -> usize {
        let mut at = from;
        let mut end;
        let mut skip = 0;
        let mut name = from;
        loop {
            at = self.word_end(at);
            end = at;
            if at - start >= MAX_TOKEN_BYTES {
                break;
            }
            let Some(next) = self.joined(at) else {
                if self.at_possessive(at) {
                    skip = self.text[at..].chars().take(2).map(char::len_utf8).sum();
                } else {
                    end += self.signs(name, at);
                }
                break;
            };
            name = next;
            at = next;
        }
        let stop = end + skip;
        // A word without a place to cut, longer than any word: its beginning stands for it.
        let mut last = end.min(start + MAX_TOKEN_BYTES);
        while !self.text.is_char_boundary(last) {
            last -= 1;
        }
        let mut token = &self.text[start..last];
        if token.ends_with('_') {
            token = token.trim_end_matches(|c| c == '_' || matches!(class_of(c), Class::Joiner | Class::Apostrophe));
        }
        if let Some(after) = self.data_uri_end(token, stop) {
            return after;
        }
        if !token.is_empty() && !is_noise(token) {
            sink(RawToken { text: token, start });
        }
        stop
    }

    /// Returns the end of the word characters from `at`.
    fn word_end(&self, mut at: usize) -> usize {
        loop {
            match self.bytes.get(at).map(|&byte| BYTES[byte as usize]) {
                Some(Class::Word) => at += 1,
                Some(Class::Beyond) => match self.text[at..].chars().next() {
                    Some(character) if class_of(character) == Class::Word => at += character.len_utf8(),
                    _ => return at,
                },
                _ => return at,
            }
        }
    }

    /// If joiners stand at `at` and a word follows them, returns where that begins.
    fn joined(&self, at: usize) -> Option<usize> {
        let first = *self.bytes.get(at)?;
        let mut next = at;
        match BYTES[first as usize] {
            Class::Joiner => {
                while next - at < 3 && self.bytes.get(next).is_some_and(|&byte| BYTES[byte as usize] == Class::Joiner) {
                    next += 1;
                }
                if next - at == 3 && self.bytes[at..next] == *b"..." {
                    return None;
                }
            }
            Class::Apostrophe if !self.at_possessive(at) => next += 1,
            Class::Beyond => {
                let character = self.text[at..].chars().next()?;
                match class_of(character) {
                    Class::Joiner => {}
                    Class::Apostrophe if !self.at_possessive(at) => {}
                    _ => return None,
                }
                next += character.len_utf8();
            }
            _ => return None,
        }
        let follows = match BYTES[*self.bytes.get(next)? as usize] {
            Class::Word => true,
            Class::Beyond => self.text[next..].chars().next().is_some_and(|c| class_of(c) == Class::Word),
            _ => false,
        };
        follows.then_some(next)
    }

    /// Says whether `'s` and the end of a word stand here.
    fn at_possessive(&self, at: usize) -> bool {
        let mut characters = self.text[at..].chars();
        let apostrophe = characters.next().is_some_and(|c| class_of(c) == Class::Apostrophe);
        apostrophe
            && matches!(characters.next(), Some('s' | 'S'))
            && !characters.next().is_some_and(|c| class_of(c) == Class::Word)
    }

    /// Returns how many bytes of signs end the name `from..at`: `C++`, `F#`.
    fn signs(&self, from: usize, at: usize) -> usize {
        match self.bytes.get(at) {
            Some(b'+' | b'#') => signs_after(&self.text[from..at], &self.text[at..]),
            _ => 0,
        }
    }

    /// If `token` opens a data URI, returns where that ends.
    fn data_uri_end(&self, token: &str, stop: usize) -> Option<usize> {
        let opens = token.len() > 5 && token.as_bytes()[..5].eq_ignore_ascii_case(b"data:");
        let rest = self.text.get(stop..).filter(|_| opens)?;
        // Parameters such as `;charset=utf-8` may stand before the mark; a longer head is none.
        let head = &rest.as_bytes()[..rest.len().min(100)];
        let mark = head.windows(8).position(|window| window.eq_ignore_ascii_case(b";base64,"))?;
        if head[..mark].iter().any(u8::is_ascii_whitespace) {
            return None;
        }
        let content = &rest.as_bytes()[mark + 8..];
        let len = content
            .iter()
            .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'%' | b'-' | b'_')))
            .unwrap_or(content.len());
        Some(stop + mark + 8 + len)
    }

    /// Reads on from a character beyond ASCII.
    fn beyond(&self, at: usize, sink: &mut impl FnMut(RawToken<'t>)) -> usize {
        let Some(character) = self.text[at..].chars().next() else { return self.bytes.len() };
        let next = at + character.len_utf8();
        match class_of(character) {
            Class::Word if !is_ignorable(character) => self.word(at, at, sink),
            Class::Unspaced => self.unspaced(at, sink),
            Class::Symbol if character == '§' => {
                let run = next + self.text[next..].len() - self.text[next..].trim_start_matches('§').len();
                if self.word_end(run) > run {
                    self.word(at, run, sink)
                } else {
                    sink(RawToken { text: &self.text[at..run], start: at });
                    run
                }
            }
            Class::Symbol => {
                sink(RawToken { text: &self.text[at..next], start: at });
                next
            }
            _ => next,
        }
    }

    /// Cuts a run of an unspaced script into pairs, and its last unit; returns where the run ends.
    fn unspaced(&self, start: usize, sink: &mut impl FnMut(RawToken<'t>)) -> usize {
        let mut before = start;
        let mut at = start + unit_len(&self.text[start..]);
        while self.text[at..].chars().next().is_some_and(|c| class_of(c) == Class::Unspaced) {
            let next = at + unit_len(&self.text[at..]);
            sink(RawToken { text: &self.text[before..next], start: before });
            before = at;
            at = next;
        }
        sink(RawToken { text: &self.text[before..at], start: before });
        at
    }

    /// Returns where the entity at `at` ends, or the next byte if there is none.
    fn entity_end(&self, at: usize) -> usize {
        let rest = &self.bytes[at + 1..];
        let name = usize::from(rest.first() == Some(&b'#'));
        let len = rest[name..].iter().take(32).take_while(|byte| byte.is_ascii_alphanumeric()).count();
        if len > 0 && rest.get(name + len) == Some(&b';') { at + name + len + 2 } else { at + 1 }
    }
}

/// Where the tags of an HTML text end, in time linear in its length however broken it is.
pub(crate) struct Tags<'t> {
    text: &'t str,
    bytes: &'t [u8],
    /// A `>` may still come.
    closed: bool,
    /// Quotes in tags have been balanced so far.
    quotes: bool,
}

impl<'t> Tags<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, bytes: text.as_bytes(), closed: true, quotes: true }
    }

    /// Returns where the tag, comment, script or style whose `<` is at `at` ends, or the next byte if there is none.
    pub(crate) fn end_of(&mut self, at: usize) -> usize {
        let rest = &self.bytes[at + 1..];
        if !self.closed || !rest.first().is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'/' | b'!' | b'?')) {
            return at + 1;
        }
        if rest.starts_with(b"!--") {
            // From its own dashes on, so that `<!-->` is whole.
            return self.text[at + 2..].find("-->").map_or(self.bytes.len(), |end| at + 2 + end + 3);
        }
        let Some(open_end) = self.open_tag_end(at + 1) else {
            self.closed = false;
            return at + 1;
        };
        for name in ["script", "style"] {
            let is_it = rest.len() > name.len()
                && rest[..name.len()].eq_ignore_ascii_case(name.as_bytes())
                && !rest[name.len()].is_ascii_alphanumeric();
            if is_it && self.bytes[open_end - 2] != b'/' {
                return self.closing_tag(open_end, name);
            }
        }
        open_end
    }

    /// Returns the byte after the `>` that ends a tag; quoted ones do not.
    fn open_tag_end(&mut self, from: usize) -> Option<usize> {
        if self.quotes {
            let mut quote = None;
            for (offset, &byte) in self.bytes[from..].iter().enumerate() {
                match (byte, quote) {
                    (b'>', None) => return Some(from + offset + 1),
                    (b'"' | b'\'', None) => quote = Some(byte),
                    (_, Some(open)) if byte == open => quote = None,
                    _ => {}
                }
            }
            // One quote left open makes all that follow doubtful: from here on quotes are characters.
            self.quotes = false;
        }
        self.bytes[from..].iter().position(|&byte| byte == b'>').map(|offset| from + offset + 1)
    }

    /// Returns where `</name` begins; a script that is not closed goes to the end, as in a browser.
    fn closing_tag(&self, from: usize, name: &str) -> usize {
        let mut at = from;
        while let Some(offset) = self.text.get(at..).and_then(|rest| rest.find("</")) {
            at += offset;
            let close = &self.bytes[at + 2..];
            if close.len() >= name.len() && close[..name.len()].eq_ignore_ascii_case(name.as_bytes()) {
                return at;
            }
            at += 2;
        }
        self.bytes.len()
    }
}

/// Says whether a token is base64, a signed token or the like: long, of that alphabet only, and changing between capitals, small
/// letters and digits at every few characters, as no name or path does.
fn is_noise(token: &str) -> bool {
    if token.len() < MIN_NOISE_BYTES {
        return false;
    }
    let kind = |byte: u8| match byte {
        b'A'..=b'Z' => 0,
        b'a'..=b'z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    let bytes = token.as_bytes();
    let seen = bytes.iter().fold([false; 3], |mut seen, &byte| {
        if let Some(flag) = seen.get_mut(kind(byte)) {
            *flag = true;
        }
        seen
    });
    let change = |pair: &&[u8]| kind(pair[0]) < 3 && kind(pair[1]) < 3 && kind(pair[0]) != kind(pair[1]);
    let changes = bytes.windows(2).filter(change).count();
    seen == [true; 3]
        && changes * 4 >= bytes.len()
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'.'))
}
