//! Skills: instructions with placeholders, each one whole SKILL.md text.
//!
//! ```text
//! ---
//! name: "Summary"
//! description: "Sums up a document"
//! arguments:
//!   - name: "doc"
//!     required: true
//! ---
//! Sum up {{doc}} in {{lines}} lines.
//! ```
//!
//! A placeholder is `{{name}}`, blanks inside the braces allowed; `\{{name}}` stands for the text `{{name}}`. A declared
//! argument is required only if it says so; a placeholder that is not declared is a required argument.
//!
//! **Invariant:** rendering is a single pass: what a value holds is never read as a placeholder. The text of a skill is
//! kept as it is; nothing in it is rewritten.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::front_matter::{FrontMatterBlock, fields, text_of, yaml_quoted};
use crate::lines::Lines;
use crate::name::{NameError, check};
use crate::{DocId, SkillArgument, Warning, skill_docid};

/// The longest name of an argument, in characters.
const MAX_ARGUMENT_CHARS: usize = 64;

/// Why a text is no skill, or a skill cannot be rendered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// The text does not begin with front matter.
    #[error("a skill begins with front matter that names it: `---`, `name: …`, `description: …`, `---`")]
    NoFrontMatter,
    /// The front matter is broken.
    #[error("{}", .0.message)]
    FrontMatter(Warning),
    /// There is no `name`.
    #[error("the front matter of the skill has no `name`")]
    NoName,
    /// The name will not do.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A field has the wrong shape.
    #[error("`{field}` in the front matter of the skill is not {expected}")]
    Field {
        /// Its name.
        field: String,
        /// What it should be.
        expected: &'static str,
    },
    /// Required arguments were not given.
    #[error("skill `{skill}` was not given {}", list(.arguments))]
    MissingArgument {
        /// The name of the skill.
        skill: String,
        /// The arguments, in order; at least one.
        arguments: Vec<String>,
    },
}

/// A skill.
///
/// ```
/// use kb_core::Skill;
///
/// let skill = Skill::parse("---\nname: Sum\narguments: [lines]\n---\nSum up {{doc}} in {{lines}} lines.\n")?;
/// let given = [("doc".to_owned(), "{{lines}}".to_owned())].into();
/// assert_eq!(skill.render(&given)?, "Sum up {{lines}} in  lines.\n");
/// assert!(skill.render(&Default::default()).is_err());
/// # Ok::<(), kb_core::SkillError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    text: String,
    body: usize,
    name: String,
    description: String,
    declared: Vec<SkillArgument>,
}

impl Skill {
    /// Reads a SKILL.md. Keys of the front matter beyond name, description and arguments are left alone.
    pub fn parse(text: &str) -> Result<Self, SkillError> {
        let FrontMatterBlock::Found { format, fields: range, end } = FrontMatterBlock::find(text) else {
            return Err(SkillError::NoFrontMatter);
        };
        let front = fields(text, format, range).map_err(SkillError::FrontMatter)?;
        let name = text_field(&front, "name")?.ok_or(SkillError::NoName)?;
        check(&name)?;
        Ok(Self {
            text: text.to_owned(),
            body: end,
            name,
            description: text_field(&front, "description")?.unwrap_or_default(),
            declared: declared(front.get("arguments"))?,
        })
    }

    /// Writes the text of a skill. Every text in its front matter is quoted, so that YAML 1.1 and 1.2 readers get the
    /// same. The text is that of a skill if [`Skill::parse`] takes it: this checks neither names nor lengths.
    pub fn to_text(name: &str, description: &str, arguments: &[SkillArgument], body: &str) -> String {
        let mut text = format!("---\nname: {}\ndescription: {}\n", yaml_quoted(name), yaml_quoted(description));
        if !arguments.is_empty() {
            text.push_str("arguments:\n");
        }
        for argument in arguments {
            text.extend(["  - name: ", &yaml_quoted(&argument.name), "\n"]);
            if let Some(description) = &argument.description {
                text.extend(["    description: ", &yaml_quoted(description), "\n"]);
            }
            text.extend(["    required: ", if argument.required { "true" } else { "false" }, "\n"]);
        }
        text.push_str("---\n");
        text.push_str(body);
        text
    }

    /// Returns the name as written.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description, empty if there is none.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the whole text, front matter included: the bytes of the skill's one section.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text after the front matter, with its placeholders.
    pub fn body(&self) -> &str {
        &self.text[self.body..]
    }

    /// Returns the docid, `skill-<slug of the name>`.
    pub fn docid(&self) -> DocId {
        skill_docid(&self.name).expect("the name was checked when the skill was read")
    }

    /// Returns the arguments: the declared ones in order, each once, then placeholders that are not declared, in order,
    /// as required ones.
    pub fn arguments(&self) -> Vec<SkillArgument> {
        let mut arguments: Vec<SkillArgument> = Vec::new();
        let mut known = BTreeSet::new();
        for argument in &self.declared {
            if known.insert(argument.name.as_str()) {
                arguments.push(argument.clone());
            }
        }
        for (_, part) in parts(self.body()) {
            if let Part::Placeholder(name) = part
                && known.insert(name)
            {
                arguments.push(SkillArgument { name: name.to_owned(), description: None, required: true });
            }
        }
        arguments
    }

    /// Returns the body with each placeholder replaced by the value given, or by nothing for an optional argument that
    /// was not given. Values that no placeholder asks for are ignored.
    ///
    /// Fails with [`SkillError::MissingArgument`] if a required argument was not given.
    pub fn render(&self, values: &BTreeMap<String, String>) -> Result<String, SkillError> {
        let is_missing = |argument: &SkillArgument| argument.required && !values.contains_key(&argument.name);
        let missing: Vec<_> = self.arguments().into_iter().filter(is_missing).map(|argument| argument.name).collect();
        if !missing.is_empty() {
            return Err(SkillError::MissingArgument { skill: self.name.clone(), arguments: missing });
        }
        let mut out = String::with_capacity(self.body().len());
        for (_, part) in parts(self.body()) {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Placeholder(name) => out.push_str(values.get(name).map_or("", String::as_str)),
            }
        }
        Ok(out)
    }

    /// Says what an author should look at: arguments used and not declared, declared and not used, declared twice, or
    /// of a name that no placeholder can have, and a name that is known under another spelling.
    pub fn lint(&self) -> Vec<Warning> {
        let lines = Lines::of(&self.text);
        let front = &self.text[..self.body];
        let mut warnings = Vec::new();
        let mut warn = |code: &str, message: String, offset: usize| {
            let (line, column) = lines.position(offset);
            warnings.push(Warning { code: code.to_owned(), message, line: Some(line), column: Some(column) });
        };
        let slug = crate::slug(&self.name);
        if slug != self.name {
            let offset = front.find("name").unwrap_or(0);
            warn("skill-name", format!("the skill `{}` is called by `{slug}`", self.name), offset);
        }
        let mut used = BTreeMap::new();
        for (offset, part) in parts(self.body()) {
            if let Part::Placeholder(name) = part {
                used.entry(name).or_insert(self.body + offset);
            }
        }
        let mut declared = BTreeSet::new();
        let mut from = front.find("arguments").unwrap_or(0);
        for SkillArgument { name, .. } in &self.declared {
            let offset = front[from..].find(name.as_str()).map_or(from, |found| from + found);
            from = front.ceil_char_boundary((offset + name.len()).min(front.len()));
            if !declared.insert(name.as_str()) {
                warn("skill-argument-duplicate", format!("the argument `{name}` is declared twice"), offset);
            } else if !is_argument_name(name) {
                warn("skill-argument-name", format!("no placeholder can be called `{name}`"), offset);
            } else if !used.contains_key(name.as_str()) {
                warn("skill-argument-unused", format!("the argument `{name}` is declared and not used"), offset);
            }
        }
        let mut undeclared: Vec<_> = used.into_iter().filter(|(name, _)| !declared.contains(name)).collect();
        undeclared.sort_by_key(|&(_, offset)| offset);
        for (name, offset) in undeclared {
            warn("skill-argument-undeclared", format!("the argument `{name}` is used and not declared"), offset);
        }
        warnings
    }
}

enum Part<'a> {
    Text(&'a str),
    Placeholder(&'a str),
}

/// Takes a body apart, with the offset of each part. An escaped placeholder is a text without its backslash.
fn parts(body: &str) -> Vec<(usize, Part<'_>)> {
    let mut parts = Vec::new();
    let mut text_start = 0;
    let mut at = 0;
    while let Some(found) = body[at..].find("{{") {
        let open = at + found;
        let Some((name, end)) = placeholder(body, open) else {
            at = open + 1;
            continue;
        };
        let escaped = body[text_start..open].ends_with('\\');
        parts.push((text_start, Part::Text(&body[text_start..open - usize::from(escaped)])));
        if escaped {
            parts.push((open, Part::Text(&body[open..end])));
        } else {
            parts.push((open, Part::Placeholder(name)));
        }
        text_start = end;
        at = end;
    }
    parts.push((text_start, Part::Text(&body[text_start..])));
    parts
}

/// Returns the name in the braces that open here, and the offset after them.
fn placeholder(body: &str, open: usize) -> Option<(&str, usize)> {
    let inner = body[open + 2..].trim_start_matches([' ', '\t']);
    let length = inner.find(|c| !is_argument_char(c))?;
    let (name, rest) = inner.split_at(length);
    let rest = rest.trim_start_matches([' ', '\t']).strip_prefix("}}")?;
    is_argument_name(name).then(|| (name, body.len() - rest.len()))
}

fn is_argument_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(is_argument_char)
        && name.chars().nth(MAX_ARGUMENT_CHARS).is_none()
}

fn is_argument_char(c: char) -> bool {
    c.is_alphanumeric() || "_-.".contains(c)
}

fn text_field(front: &Map<String, Value>, field: &str) -> Result<Option<String>, SkillError> {
    match front.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => text_of(value).map(Some).ok_or_else(|| wrong(field, "a text")),
    }
}

fn wrong(field: &str, expected: &'static str) -> SkillError {
    SkillError::Field { field: field.to_owned(), expected }
}

/// Reads `arguments`: a list of names, or of maps with a name.
fn declared(value: Option<&Value>) -> Result<Vec<SkillArgument>, SkillError> {
    let items = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(wrong("arguments", "a list")),
    };
    let argument = |item: &Value| match item {
        Value::Object(fields) => Ok(SkillArgument {
            name: text_field(fields, "name")?.ok_or_else(|| wrong("arguments", "a list of which each has a `name`"))?,
            description: text_field(fields, "description")?,
            required: match text_field(fields, "required")?.map(|text| text.to_ascii_lowercase()).as_deref() {
                None | Some("false" | "no" | "off") => false,
                Some("true" | "yes" | "on") => true,
                Some(_) => return Err(wrong("required", "`true` or `false`")),
            },
        }),
        _ => match text_of(item) {
            Some(name) => Ok(SkillArgument { name, description: None, required: false }),
            None => Err(wrong("arguments", "a list of names or maps")),
        },
    };
    items.iter().map(argument).collect()
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SUM: &str = "---\nname: sum\ndescription: Sums up\narguments:\n  - name: doc\n    description: which one\n    required: true\n  - name: n\n---\nSum {{doc}} in {{ n }} lines\n";

    fn values(given: &[(&str, &str)]) -> BTreeMap<String, String> {
        given.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn skill(body: &str) -> Skill {
        Skill::parse(&Skill::to_text("s", "d", &[], body)).expect("a skill")
    }

    #[test]
    fn arguments_are_used_as_given() {
        let skill = Skill::parse(SUM).expect("a skill");
        assert_eq!((skill.name(), skill.description(), skill.docid().as_str()), ("sum", "Sums up", "skill-sum"));
        for (given, expected) in [
            (&[("doc", "a.md")][..], "Sum a.md in  lines\n"),
            (&[("doc", "a.md"), ("n", "3")], "Sum a.md in 3 lines\n"),
            (&[("doc", ""), ("extra", "x")], "Sum  in  lines\n"),
            (&[("doc", "{{n}}"), ("n", "{{doc}}")], "Sum {{n}} in {{doc}} lines\n"),
        ] {
            assert_eq!(skill.render(&values(given)).as_deref(), Ok(expected));
        }
        let error = skill.render(&values(&[("n", "3")])).expect_err("doc is missing");
        assert_eq!(error.to_string(), "skill `sum` was not given `doc`");
        let error = self::skill("{{b}} {{a}}").render(&values(&[])).expect_err("both are missing");
        assert_eq!(error.to_string(), "skill `s` was not given `b`, `a`");
    }

    #[test]
    fn what_is_no_placeholder_stays() {
        let given = values(&[("a", "1"), ("größe", "2"), ("x-y.z", "3")]);
        for (body, expected) in [
            ("{{a}}{{a}}", "11"),
            ("{{\ta }} {{größe}} {{x-y.z}}", "1 2 3"),
            ("{{}} {{ }} {a} {{1}} {{a b}} {{a\n}} {{a} {{", "{{}} {{ }} {a} {{1}} {{a b}} {{a\n}} {{a} {{"),
            ("{{{a}}}", "{1}"),
            (r"\{{a}} \\{{a}} \{{ \{{1}}", r"{{a}} \{{a}} \{{ \{{1}}"),
            ("{{{{a}}", "{{1"),
        ] {
            assert_eq!(skill(body).render(&given).as_deref(), Ok(expected), "{body}");
        }
    }

    #[test]
    fn placeholders_that_are_not_declared_are_required() {
        let skill =
            Skill::parse("---\nname: s\narguments: [b, c, b]\n---\n{{z}} {{b}} {{a}} {{z}} \\{{no}}").expect("a skill");
        let shown: Vec<_> = skill.arguments().into_iter().map(|argument| (argument.name, argument.required)).collect();
        let expected = [("b", false), ("c", false), ("z", true), ("a", true)];
        assert_eq!(shown, expected.map(|(name, required)| (name.to_owned(), required)));
    }

    #[test]
    fn the_linter_says_what_and_where() {
        let text = "---\nname: Weekly Report!\narguments:\n- name: used\n- used\n- name: idle\n- name: two words\n---\n\n{{used}}\n{{zed}} {{abe}}\n";
        let warnings = Skill::parse(text).expect("a skill").lint();
        let shown: Vec<_> = warnings.iter().map(|w| (w.code.as_str(), w.line, w.column)).collect();
        assert_eq!(
            shown,
            [
                ("skill-name", Some(2), Some(1)),
                ("skill-argument-duplicate", Some(5), Some(3)),
                ("skill-argument-unused", Some(6), Some(9)),
                ("skill-argument-name", Some(7), Some(9)),
                ("skill-argument-undeclared", Some(11), Some(1)),
                ("skill-argument-undeclared", Some(11), Some(9))
            ]
        );
        assert_eq!(Skill::parse(SUM).expect("a skill").lint(), []);
    }

    #[test]
    fn what_is_no_skill_is_refused() {
        for (text, message) in [
            ("Sum up", "begins with front matter"),
            ("---\nname: s\n", "begins with front matter"),
            ("---\nname: [\n---\n", "cannot be read"),
            ("---\ndescription: s\n---\n", "no `name`"),
            ("---\nname: ~\n---\n", "no `name`"),
            ("---\nname: 'agent:x'\n---\n", "begins with `agent:`"),
            ("---\nname: [a]\n---\n", "`name` in the front matter of the skill is not a text"),
            ("---\nname: s\narguments: a\n---\n", "not a list"),
            ("---\nname: s\narguments: [{required: true}]\n---\n", "each has a `name`"),
            ("---\nname: s\narguments: [{name: a, required: maybe}]\n---\n", "`required`"),
        ] {
            let error = Skill::parse(text).expect_err(text).to_string();
            assert!(error.contains(message), "{error}");
        }
        assert_eq!(Skill::parse("---\nname: 404\n---\n").map(|skill| skill.name).as_deref(), Ok("404"));
    }

    fn nasty() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            r#"(no|yes|on|~|null|1e3|0x1F|2031-02-03|12:30:45|- |: |#|"|'|\\|\n|\r|\t|---|\.\.\.|\{\{|\}\}|%|@|`|\x{85}|\x{2028}|\x{feff}|\x00|\x7f|\x{9f}|\x{fffe}| ){0,8}"#,
        ]
    }

    proptest! {
        #[test]
        fn a_skill_reads_back_as_written(
            name in "[a-zA-Z][a-z :#\"'\\\\-]{0,20}",
            description in nasty(),
            arguments in proptest::collection::vec((nasty(), proptest::option::of(nasty()), any::<bool>()), 0..4),
            body in nasty(),
        ) {
            prop_assume!(!name.to_ascii_lowercase().starts_with("agent:"));
            let arguments: Vec<_> = arguments
                .into_iter()
                .map(|(name, description, required)| SkillArgument { name, description, required })
                .collect();
            let skill = Skill::parse(&Skill::to_text(&name, &description, &arguments, &body)).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!((skill.name(), skill.description(), skill.body()), (&*name, &*description, &*body));
            prop_assert_eq!(&skill.declared, &arguments);
            skill.lint();
        }

        #[test]
        fn rendering_is_one_pass(parts in proptest::collection::vec(r"(\{\{a\}\}|\{\{ b \}\}|\\|\{|\}|7|–)", 0..20), a in nasty(), b in nasty()) {
            // Markers that no body holds stand for the values; putting the values in their place must give the same.
            let skill = skill(&parts.concat());
            let marked = skill.render(&values(&[("a", "\u{1}"), ("b", "\u{2}")])).expect("all are given");
            let expected: String = marked.chars().map(|c| match c {
                '\u{1}' => a.clone(),
                '\u{2}' => b.clone(),
                other => other.to_string(),
            }).collect();
            prop_assert_eq!(skill.render(&values(&[("a", &a), ("b", &b)])), Ok(expected));
        }

        #[test]
        fn no_text_panics(text in nasty()) {
            let _ = Skill::parse(&text);
            let _ = Skill::parse(&format!("---\nname: x\n{text}\n---\n{text}")).map(|skill| skill.lint());
        }
    }
}
