//! From what was typed to clauses and filters.
//!
//! ```text
//! words            each counts; a token such as `LAW-0077` or `C++` is one word
//! "a phrase"       these very words in this order; a quote left open goes to the end
//! -word +word      must not, must match: a sign after white space (or first) and before a word or a quote
//! word*            begins so
//! title:word       only there; also heading:, and both with a phrase
//! tag:x type:x source:x doc:x    filters; `-` excludes, `x*` is a beginning, quotes hold spaces
//! ```
//!
//! In a script without spaces each pair of units is a word, a unit alone a beginning. In a phrase of mixed scripts a
//! unit alone is found only where it stands alone.
//!
//! Everything else is text: `--db`, `a-b`, `AND`, `title:` followed by nothing. If nothing but words to exclude is
//! left, they are what is asked for: `-0099` looks for `0099`.
//!
//! **Invariant:** every text is a query, the same one each time, in time linear in its length.

use rustc_hash::FxHashSet;

use super::light_words::is_light_word;
use super::stop_words::is_stop_word;
use super::{Clause, ClauseKind, Field, Occur, ParsedQuery, Unit};
use crate::analysis::{Analyzer, Markup, RawToken, TermKind, unspaced_units};

/// Most clauses of a query; what is typed beyond is left out, and the query says so.
pub const MAX_CLAUSES: usize = 256;

/// Reads what a person typed as a query.
///
/// ```
/// use kb_search::{Analyzer, Language, Occur, parse};
///
/// let query = parse("\"ring buffer\" -draft tag:Ops", &Analyzer::new(Language::English));
/// assert_eq!(query.clauses.iter().map(|clause| clause.typed.as_str()).collect::<Vec<_>>(), ["\"ring buffer\"", "draft"]);
/// assert_eq!(query.clauses[1].occur, Occur::MustNot);
/// assert_eq!(query.filters.tags, ["ops"]);
/// ```
pub fn parse(text: &str, analyzer: &Analyzer) -> ParsedQuery {
    let items = items(text);
    let shouting = !text.chars().any(char::is_lowercase);
    let mut builder = Builder { analyzer, shouting, seen: FxHashSet::default(), query: ParsedQuery::default() };
    let mut positive = false;
    for item in &items {
        match item.field {
            Some(FieldName::Filter(filter)) => {
                positive |= item.occur != Occur::MustNot;
                builder.filter(filter, item);
            }
            _ => positive |= item.occur != Occur::MustNot && !builder.clauses(item, item.occur).is_empty(),
        }
    }
    for item in &items {
        let kinds = match item.field {
            Some(FieldName::Filter(_)) => continue,
            _ if item.occur == Occur::MustNot && !positive => {
                builder.clauses(&Item { body: item.typed, quoted: item.quoted, ..*item }, Occur::Should)
            }
            _ => builder.clauses(item, item.occur),
        };
        let occur = if positive { item.occur } else { Occur::Should };
        for (kind, typed) in kinds {
            builder.push(Clause { occur, field: item.clause_field(), kind, typed });
        }
    }
    builder.query
}

/// Reads a text as one phrase, whatever signs are in it.
pub fn parse_phrase(text: &str, analyzer: &Analyzer) -> ParsedQuery {
    let item = Item { occur: Occur::Should, field: None, body: text, quoted: true, typed: text };
    let mut builder = Builder { analyzer, shouting: true, seen: FxHashSet::default(), query: ParsedQuery::default() };
    for (kind, typed) in builder.clauses(&item, Occur::Should) {
        builder.push(Clause { occur: Occur::Should, field: None, kind, typed });
    }
    builder.query
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    Tag,
    Type,
    Source,
    Doc,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldName {
    Clause(Field),
    Filter(Filter),
}

const FIELD_NAMES: [(&str, FieldName); 6] = [
    ("title:", FieldName::Clause(Field::Title)),
    ("heading:", FieldName::Clause(Field::Heading)),
    ("tag:", FieldName::Filter(Filter::Tag)),
    ("type:", FieldName::Filter(Filter::Type)),
    ("source:", FieldName::Filter(Filter::Source)),
    ("doc:", FieldName::Filter(Filter::Doc)),
];

/// A stretch of the query between white space and quotes.
#[derive(Debug, Clone, Copy)]
struct Item<'t> {
    occur: Occur,
    field: Option<FieldName>,
    /// Without sign, field and quotes.
    body: &'t str,
    quoted: bool,
    /// With them.
    typed: &'t str,
}

impl Item<'_> {
    fn clause_field(&self) -> Option<Field> {
        match self.field {
            Some(FieldName::Clause(field)) => Some(field),
            _ => None,
        }
    }
}

fn is_quote(character: char) -> bool {
    matches!(character, '"' | '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{ff02}')
}

fn items(text: &str) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    let mut rest = text;
    let mut after_space = true;
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
            after_space = true;
            continue;
        }
        let start = rest;
        let mut occur = Occur::Should;
        let mut field = None;
        if after_space {
            (occur, rest) = sign(rest);
            (field, rest) = field_name(rest);
        }
        let (body, quoted, after) = body(rest);
        rest = after;
        let typed = &start[..start.len() - rest.len()];
        items.push(Item { occur, field, body, quoted, typed });
        after_space = false;
    }
    items
}

/// Takes a sign off: `-` or `+` with something other than white space or the same sign after it.
fn sign(text: &str) -> (Occur, &str) {
    let mut characters = text.chars();
    let occur = match characters.next() {
        Some('-') => Occur::MustNot,
        Some('+') => Occur::Must,
        _ => return (Occur::Should, text),
    };
    match characters.next() {
        Some(next) if !next.is_whitespace() && next != '-' && next != '+' => (occur, &text[1..]),
        _ => (Occur::Should, text),
    }
}

/// Takes the name of a field off, if a value follows.
fn field_name(text: &str) -> (Option<FieldName>, &str) {
    for (name, field) in FIELD_NAMES {
        let Some(head) = text.get(..name.len()) else { continue };
        let value = &text[head.len()..];
        if head.eq_ignore_ascii_case(name) && !body(value).0.trim().is_empty() {
            return (Some(field), value);
        }
    }
    (None, text)
}

/// Takes a quoted text or a stretch without white space and quotes off: the text, whether it is quoted, the rest.
fn body(text: &str) -> (&str, bool, &str) {
    let mut characters = text.chars();
    let quoted = characters.next().is_some_and(is_quote);
    if quoted {
        let inner = characters.as_str();
        return match inner.char_indices().find(|&(_, character)| is_quote(character)) {
            Some((end, quote)) => (&inner[..end], true, &inner[end + quote.len_utf8()..]),
            None => (inner, true, ""),
        };
    }
    let end = text.find(|c: char| c.is_whitespace() || is_quote(c)).unwrap_or(text.len());
    (&text[..end], false, &text[end..])
}

struct Builder<'a> {
    analyzer: &'a Analyzer,
    /// Nothing is in small letters, so capitals say nothing.
    shouting: bool,
    seen: FxHashSet<(u8, Option<Field>, String)>,
    query: ParsedQuery,
}

impl Builder<'_> {
    fn push(&mut self, clause: Clause) {
        let key = (clause.occur as u8, clause.field, self.analyzer.fold(&clause.typed));
        if self.query.clauses.len() >= MAX_CLAUSES {
            self.query.truncated = true;
        } else if self.seen.insert(key) {
            self.query.clauses.push(clause);
        }
    }

    fn filter(&mut self, filter: Filter, item: &Item<'_>) {
        let value = item.body.trim();
        let folded = match filter {
            Filter::Tag | Filter::Type => self.analyzer.fold(value),
            Filter::Source | Filter::Doc => value.to_owned(),
        };
        let filters = &mut self.query.filters;
        let values = match (filter, item.occur == Occur::MustNot) {
            (Filter::Tag, false) => &mut filters.tags,
            (Filter::Tag, true) => &mut filters.not_tags,
            (Filter::Type, false) => &mut filters.types,
            (Filter::Type, true) => &mut filters.not_types,
            (Filter::Source, false) => &mut filters.sources,
            (Filter::Source, true) => &mut filters.not_sources,
            (Filter::Doc, false) => &mut filters.docids,
            (Filter::Doc, true) => &mut filters.not_docids,
        };
        if values.len() < MAX_CLAUSES {
            values.push(folded);
        } else {
            self.query.truncated = true;
        }
    }

    /// Returns what an item asks for, each with how it was typed.
    fn clauses(&self, item: &Item<'_>, occur: Occur) -> Vec<(ClauseKind, String)> {
        let mut raws: Vec<RawToken<'_>> = Vec::new();
        self.analyzer.tokens(item.body, Markup::None, &mut |raw| push_query_token(&mut raws, raw));
        let prefix = match raws.last() {
            Some(last) if !item.quoted && &item.body[last.start + last.text.len()..] == "*" => raws.pop(),
            _ => None,
        };
        let whole = item.quoted || (occur == Occur::MustNot && raws.len() > 1 && prefix.is_none());
        let mut clauses = Vec::new();
        if let ([only], true) = (raws.as_slice(), whole)
            && unspaced_units(only.text) == 1
        {
            clauses.push((ClauseKind::Prefix(self.analyzer.fold(only.text)), only.text.to_owned()));
        } else if whole {
            let units: Vec<Unit> = raws.iter().filter_map(|raw| self.unit(raw.text)).collect();
            if !units.is_empty() {
                let typed = if item.quoted { format!("\"{}\"", item.body) } else { item.body.to_owned() };
                clauses.push((ClauseKind::Phrase(units), typed));
            }
        } else {
            for raw in raws {
                if unspaced_units(raw.text) == 1 {
                    clauses.push((ClauseKind::Prefix(self.analyzer.fold(raw.text)), raw.text.to_owned()));
                } else if let Some(unit) = self.unit(raw.text) {
                    clauses.push((ClauseKind::Word(unit), raw.text.to_owned()));
                }
            }
        }
        if let Some(raw) = prefix {
            let folded = self.analyzer.fold(raw.text);
            if !folded.is_empty() {
                clauses.push((ClauseKind::Prefix(folded), format!("{}*", raw.text)));
            }
        }
        clauses
    }

    fn unit(&self, raw: &str) -> Option<Unit> {
        let mut terms = Vec::new();
        let width = self.analyzer.expand(raw, &mut terms);
        terms.retain(|term| term.kind != TermKind::Inner);
        if terms.is_empty() {
            return None;
        }
        let mut folded = self.analyzer.fold(raw);
        folded.retain(|character| character != '\'');
        // `IT` and `US` in a query of small letters are names; `AND` is what other engines taught people to type.
        let named = !self.shouting
            && raw.len() > 1
            && raw.bytes().all(|byte| byte.is_ascii_uppercase())
            && !matches!(raw, "AND" | "OR" | "NOT");
        let (stop, light) = (!named && is_stop_word(&folded), !named && is_light_word(&folded));
        Some(Unit { raw: raw.to_owned(), terms, width, stop, light })
    }
}

/// Keeps a token for a query: the unit that ends a run of an unspaced script is in the pair before it already.
fn push_query_token<'t>(raws: &mut Vec<RawToken<'t>>, raw: RawToken<'t>) {
    let covered = raws.last().is_some_and(|last| raw.start < last.start + last.text.len());
    if !(covered && unspaced_units(raw.text) == 1) {
        raws.push(raw);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::analysis::Language;
    use crate::query::Filters;

    fn analyzer() -> Analyzer {
        Analyzer::new(Language::English)
    }

    /// Writes a query so that one can read it: sign, field, kind with its words.
    fn written(text: &str) -> String {
        let query = parse(text, &analyzer());
        let mut words: Vec<String> = query.clauses.iter().map(written_clause).collect();
        let filters = &query.filters;
        for (name, values) in [
            ("tag", &filters.tags),
            ("-tag", &filters.not_tags),
            ("type", &filters.types),
            ("-type", &filters.not_types),
            ("source", &filters.sources),
            ("-source", &filters.not_sources),
            ("doc", &filters.docids),
            ("-doc", &filters.not_docids),
        ] {
            words.extend(values.iter().map(|value| format!("[{name}={value}]")));
        }
        words.join(" ")
    }

    fn written_clause(clause: &Clause) -> String {
        let sign = match clause.occur {
            Occur::Should => "",
            Occur::Must => "+",
            Occur::MustNot => "-",
        };
        let field = clause.field.map_or(String::new(), |field| format!("{field:?}:"));
        let kind = match &clause.kind {
            ClauseKind::Word(unit) => format!("{}{}", unit.raw, if unit.stop { "~" } else { "" }),
            ClauseKind::Phrase(units) => {
                format!("<{}>", units.iter().map(|unit| unit.raw.as_str()).collect::<Vec<_>>().join("|"))
            }
            ClauseKind::Prefix(prefix) => format!("{prefix}*"),
        };
        format!("{sign}{field}{kind}")
    }

    #[test]
    fn syntax() {
        for (text, expected) in [
            ("ring buffer", "ring buffer"),
            ("\"ring buffer\" size", "<ring|buffer> size"),
            ("\"open end", "<open|end>"),
            ("“curly quotes” x", "<curly|quotes> x"),
            ("jitter -audio +retry", "jitter -audio +retry"),
            ("x -\"a b\" +\"c d\"", "x -<a|b> +<c|d>"),
            ("synta*", "synta*"),
            ("Résu* a*b *", "resu* a~ b"),
            ("title:Guide heading:\"Ring buffer\"", "Title:Guide Heading:<Ring|buffer>"),
            ("x -title:draft", "x -Title:draft"),
            ("x tag:Ops/DB -tag:old type:HTML", "x [tag=ops/db] [-tag=old] [type=html]"),
            ("tag:\"two words\" x", "x [tag=two words]"),
            ("x doc:guide/* source:https://a.b/c?d=e", "x [source=https://a.b/c?d=e] [doc=guide/*]"),
            ("Tag:x", "[tag=x]"),
            ("tag:x -foo", "-foo [tag=x]"),
            ("how to use the IT desk", "how~ to~ use the~ IT desk"),
            ("HOW TO", "HOW~ TO~"),
            ("foo(bar)", "foo bar"),
            ("x -foo,bar", "x -<foo|bar>"),
            ("the the THE", "the~"),
            ("tag:\"\" x", "tag x"),
        ] {
            assert_eq!(written(text), expected, "{text}");
        }
    }

    #[test]
    fn text_stays_text() {
        for (text, expected) in [
            ("LAW-0077", "LAW-0077"),
            ("\"LAW-0077\"", "<LAW-0077>"),
            ("law 0077", "law 0077"),
            ("blue-green", "blue-green"),
            ("-0099", "0099"),
            ("x--y", "x--y"),
            ("--db path", "--db path"),
            ("cross-team on-call rota", "cross-team on-call rota"),
            ("can't", "can't~"),
            ("tmp/out", "tmp/out"),
            ("(", ""),
            ("a AND", "a~ AND~"),
            ("NEAR(", "NEAR"),
            ("*", ""),
            ("^x", "x"),
            ("title:", "title"),
            ("title: x", "title x"),
            ("tag:\"\"", "tag"),
            ("NOT", "NOT~"),
            ("OR OR", "OR~"),
            ("{", ""),
            ("\\", ""),
            ("'; --", ""),
            ("- x", "x"),
            ("-", ""),
            ("-x -y", "-x -y"),
            ("🚀", "🚀"),
            ("", ""),
            ("C++ §4 .NET node.js", "C++ §4 .NET node.js"),
        ] {
            assert_eq!(written(text), expected, "{text}");
        }
        assert!(parse("-x", &analyzer()).clauses.iter().all(|clause| clause.occur == Occur::Should));
    }

    #[test]
    fn scripts_without_spaces() {
        assert_eq!(written("装卸安排"), "装卸 卸安 安排");
        assert_eq!(written("港"), "港*");
        assert_eq!(written("\"港\""), "港*");
        assert_eq!(written("\"夜间装卸\""), "<夜间|间装|装卸>");
        assert_eq!(written("x -夜间装"), "x -<夜间|间装>");
        assert_eq!(written("погода в порту"), "погода в порту");
        assert_eq!(written("किताब सूची"), "किताब सूची");
    }

    #[test]
    fn units_of_a_query_have_no_inner_terms() {
        let terms = |text: &str| match parse(text, &analyzer()).clauses.remove(0).kind {
            ClauseKind::Word(unit) => {
                (unit.width, unit.terms.into_iter().map(|term| term.text).collect::<Vec<_>>().join(" "))
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(terms("C++"), (1, "c++".to_owned()));
        assert_eq!(terms("std::HashMap"), (3, "std::hashmap std hash map".to_owned()));
    }

    #[test]
    fn long_queries_are_cut_and_say_so() {
        let quotes = "\"".repeat(10_000);
        assert_eq!(parse(&quotes, &analyzer()), ParsedQuery::default());
        let words = (0..1000).map(|number| format!("w{number}")).collect::<Vec<_>>().join(" ");
        let query = parse(&words, &analyzer());
        assert!(query.truncated && query.clauses.len() == MAX_CLAUSES);
        let fields = "title:\"".repeat(20_000);
        assert!(parse(&fields, &analyzer()).clauses.len() <= MAX_CLAUSES);
    }

    #[test]
    fn a_phrase_is_read_whole() {
        let query = parse_phrase("-a \"b\" tag:c*", &analyzer());
        assert_eq!(query.clauses.iter().map(written_clause).collect::<Vec<_>>(), ["<-a|b|tag:c>"]);
        assert_eq!(query.filters, Filters::default());
    }

    proptest! {
        #[test]
        fn any_text_is_a_query(text in any::<String>()) {
            prop_assert_eq!(parse(&text, &analyzer()), parse(&text, &analyzer()));
        }

        #[test]
        fn any_syntax_is_a_query(text in "[-+\"*:a-c “title:ag港]{0,60}") {
            for clause in parse(&text, &analyzer()).clauses {
                match clause.kind {
                    ClauseKind::Word(unit) => prop_assert!(!unit.terms.is_empty() && unit.width > 0),
                    ClauseKind::Phrase(units) => prop_assert!(!units.is_empty()),
                    ClauseKind::Prefix(prefix) => prop_assert!(!prefix.is_empty()),
                }
            }
        }
    }
}
