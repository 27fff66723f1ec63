//! Where fetched texts came from, as footnotes of a composed one.
//!
//! **Invariant:** an origin has one footnote however often it is referred to; no id or address of a server is markup.

use kb_core::Provenance;

/// The footnotes of a text, in the order of their first reference.
#[derive(Debug, Default)]
pub(crate) struct Footnotes {
    origins: Vec<Provenance>,
}

impl Footnotes {
    /// Returns the reference to an origin, as a paragraph of its own.
    pub(crate) fn reference(&mut self, origin: Provenance) -> String {
        let is_known = |known: &Provenance| (&known.system, &known.id) == (&origin.system, &origin.id);
        let at = self.origins.iter().position(is_known).unwrap_or_else(|| {
            self.origins.push(origin);
            self.origins.len() - 1
        });
        format!("[^kb-{}]\n", at + 1)
    }

    /// Returns the footnotes, a line each.
    pub(crate) fn text(&self) -> String {
        let line = |(n, origin): (usize, &Provenance)| {
            let place = match &origin.url {
                Some(url) if !url.contains(['<', '>']) => format!("<{url}>"),
                _ => plain(&origin.id),
            };
            format!("[^kb-{}]: {}, {place}, retrieved {}\n", n + 1, plain(&origin.system), origin.retrieved)
        };
        self.origins.iter().enumerate().map(line).collect()
    }
}

/// Returns a text on one line in which no character is markup.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        let c = if c.is_control() { '\u{fffd}' } else { c };
        if c.is_ascii_punctuation() && !matches!(c, '/' | '.' | ',' | ':' | '-') {
            plain.push('\\');
        }
        plain.push(c);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_one_footnote_and_none_is_markup() {
        let origin = |id: &str, url: Option<&str>| Provenance {
            system: "aws_docs".to_owned(),
            id: id.to_owned(),
            url: url.map(str::to_owned),
            retrieved: "2031-02-03T04:05:06Z".to_owned(),
            hash: String::new(),
            sources: Vec::new(),
        };
        let mut footnotes = Footnotes::default();
        assert_eq!(footnotes.text(), "");
        assert_eq!(footnotes.reference(origin("a", Some("https://a.example/x_y"))), "[^kb-1]\n");
        assert_eq!(footnotes.reference(origin("<b>\n[x](y)", Some("https://b.example/>#"))), "[^kb-2]\n");
        assert_eq!(footnotes.reference(origin("a", None)), "[^kb-1]\n");
        assert_eq!(
            footnotes.text(),
            "[^kb-1]: aws\\_docs, <https://a.example/x_y>, retrieved 2031-02-03T04:05:06Z\n\
             [^kb-2]: aws\\_docs, \\<b\\>\u{fffd}\\[x\\]\\(y\\), retrieved 2031-02-03T04:05:06Z\n"
        );
    }
}
