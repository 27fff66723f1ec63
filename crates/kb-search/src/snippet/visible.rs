//! The text of an HTML section that a reader sees, with the way back to the source.
//!
//! **Invariant:** each character of the visible text knows the byte of the source that it came from, in order.

use crate::analysis::Tags;

/// Tags that stand inside a word or line; others separate words.
const INLINE: [&str; 20] = [
    "a", "abbr", "b", "code", "del", "em", "font", "i", "ins", "kbd", "mark", "s", "samp", "small", "span", "strong",
    "sub", "sup", "u", "var",
];

/// Text without tags, and where its characters come from.
pub(super) struct Visible {
    /// The text, entities decoded.
    pub(super) text: String,
    /// Pairs of a byte of `text` and one of the source, at each place where their distance changes.
    steps: Vec<(usize, usize)>,
}

impl Visible {
    pub(super) fn of_html(html: &str) -> Self {
        let mut visible = Self { text: String::with_capacity(html.len()), steps: Vec::new() };
        let mut tags = Tags::new(html);
        let mut at = 0;
        while at < html.len() {
            let rest = &html[at..];
            let plain = rest.find(['<', '&']).unwrap_or(rest.len());
            if plain > 0 {
                visible.push(&rest[..plain], at);
                at += plain;
                continue;
            }
            if rest.starts_with('<') {
                let end = tags.end_of(at);
                if end == at + 1 {
                    visible.push("<", at);
                } else if !is_inline(rest) {
                    visible.push(" ", at);
                }
                at = end;
            } else if let Some((character, len)) = entity(rest) {
                visible.push(character.encode_utf8(&mut [0; 4]), at);
                at += len;
            } else {
                visible.push("&", at);
                at += 1;
            }
        }
        visible
    }

    /// Returns the byte of the source that a byte of the text came from.
    pub(super) fn source_of(&self, byte: usize) -> usize {
        let step = self.steps.partition_point(|&(text, _)| text <= byte);
        step.checked_sub(1).and_then(|step| self.steps.get(step)).map_or(byte, |&(text, source)| source + byte - text)
    }

    fn push(&mut self, text: &str, source: usize) {
        self.steps.push((self.text.len(), source));
        self.text.push_str(text);
    }
}

fn is_inline(tag: &str) -> bool {
    let name = tag.trim_start_matches(['<', '/']);
    let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
    INLINE.iter().any(|inline| inline.eq_ignore_ascii_case(&name[..end]))
}

/// Reads the entity at the beginning of a text: its character and its length.
fn entity(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(12).position(|byte| byte == b';')?;
    let name = &text[1..end];
    let character = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)?
        }
    };
    Some((character, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_go_and_places_stay_known() {
        let html = "<p>One &amp; <b>tw</b>o</p>\n<script>x</script>thr&#233;e < 4 &nope; &";
        let visible = Visible::of_html(html);
        assert_eq!(visible.text, " One & two \n  thrée < 4 &nope; &");
        for word in ["One", "thr", "nope"] {
            let (text, source) = (visible.text.find(word), html.find(word));
            assert_eq!(text.map(|at| visible.source_of(at)), source, "{word}");
        }
    }
}
