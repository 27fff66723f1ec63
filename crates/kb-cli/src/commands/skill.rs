//! `kb skill`: learns, shows, checks and renders skills.
//!
//! **Invariant:** `render` prints the filled-in text and nothing else; a required argument that is missing is named.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use kb_core::{Outcome, Skill, SkillArgument, SkillInfo};
use kb_store::NewSkill;
use serde::Serialize;

use super::{Context, read_text};
use crate::failure::{Exit, Failure};
use crate::output::{Output, placed, printable, write_columns};

/// Learn, show, lint, render and delete skills
///
/// A skill is a text with `{{placeholders}}` that are filled in when it is used.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Learn(Learn),
    List(List),
    Get(Get),
    Lint(Lint),
    Render(Render),
    Delete(Delete),
}

/// Learn a skill from a SKILL.md, or from its parts
///
/// Under a name that exists it becomes the next revision of that skill.
#[derive(Debug, clap::Args)]
struct Learn {
    /// A whole SKILL.md, or `-` for stdin; with `--name` the body alone
    #[arg(value_name = "FILE", required_unless_present = "name")]
    file: Option<PathBuf>,
    /// Name of the skill
    #[arg(long, requires = "description")]
    name: Option<String>,
    /// What the skill is for
    #[arg(long, requires = "name")]
    description: Option<String>,
    /// The text with its placeholders
    #[arg(long, requires = "name", conflicts_with = "file", allow_hyphen_values = true)]
    body: Option<String>,
    /// An argument, `!` at the end makes it required; may be given again
    #[arg(long = "argument", value_name = "NAME[=DESCRIPTION][!]", requires = "name", value_parser = argument)]
    arguments: Vec<SkillArgument>,
}

/// List the skills
#[derive(Debug, clap::Args)]
struct List {}

/// Show a skill
#[derive(Debug, clap::Args)]
struct Get {
    /// Name or kbid
    name: String,
}

/// Check a skill for arguments that are not declared, not used or declared twice
///
/// Exit 1 says that there is something to look at.
#[derive(Debug, clap::Args)]
struct Lint {
    /// Name or kbid
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    name: Option<String>,
    /// A SKILL.md that is not learned yet, or `-` for stdin; needs no database
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Fill in a skill's placeholders and print the text
#[derive(Debug, clap::Args)]
struct Render {
    /// Name or kbid
    name: String,
    /// Values of the arguments; an optional one that is left out becomes empty
    #[arg(value_name = "KEY=VALUE", value_parser = key_value)]
    values: Vec<(String, String)>,
}

/// Delete a skill
///
/// Agents that name it keep a reference that leads nowhere.
#[derive(Debug, clap::Args)]
struct Delete {
    /// Name or kbid
    name: String,
}

#[derive(Debug, Serialize)]
struct Linted<'a> {
    name: &'a str,
    ok: bool,
    warnings: &'a [kb_core::Warning],
}

#[derive(Debug, Serialize)]
struct Rendered {
    name: String,
    text: String,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<Exit, Failure> {
    match args.command {
        Command::Learn(args) => learn(args, context),
        Command::List(List {}) => list(context),
        Command::Get(args) => get(&args, context),
        Command::Lint(args) => lint(&args, context),
        Command::Render(args) => render(args, context),
        Command::Delete(args) => delete(&args, context),
    }
}

fn learn(args: Learn, context: &mut Context) -> Result<Exit, Failure> {
    let text = args.file.as_deref().map(read_text).transpose()?;
    let skill = match (args.name, args.description) {
        (Some(name), Some(description)) => {
            let body = args.body.or(text).map_or_else(|| read_text(Path::new("-")), Ok)?;
            let skill = NewSkill { name, description, body, arguments: args.arguments };
            context.databases.open()?.skill_learn(&skill)?
        }
        _ => context.databases.open()?.skill_learn_text(&text.unwrap_or_default())?,
    };
    context.output.result(&skill, |out| {
        let outcome = skill.outcome.unwrap_or(Outcome::Unchanged);
        writeln!(out, "{outcome:<9}  {}  {}", skill.docid, skill.kbid)
    })?;
    for warning in &skill.warnings {
        context.output.warning(placed(warning, &skill.name));
    }
    Ok(Exit::Done)
}

fn list(context: &mut Context) -> Result<Exit, Failure> {
    let list = context.databases.open_to_read()?.skill_list()?;
    context.output.result(&list, |out| {
        let rows: Vec<Vec<String>> = list
            .skills
            .iter()
            .map(|skill| {
                let arguments = crate::output::count(skill.argument_count as u64, "argument");
                vec![printable(&skill.name), arguments, printable(&skill.description)]
            })
            .collect();
        write_columns(out, &rows)
    })?;
    if list.skills.is_empty() && !context.output.is_json() {
        context.output.note("no skills");
    }
    Ok(Exit::Done)
}

fn get(args: &Get, context: &mut Context) -> Result<Exit, Failure> {
    let skill = context.databases.open_to_read()?.skill_get(&args.name)?;
    context.output.result(&skill, |out| write_skill(&skill, out))?;
    Ok(Exit::Done)
}

fn write_skill(skill: &SkillInfo, out: &mut Output) -> io::Result<()> {
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![
        row("name", printable(&skill.name)),
        row("description", printable(&skill.description)),
        row("document", skill.docid.to_string()),
        row("kbid", skill.kbid.to_string()),
    ];
    for argument in &skill.arguments {
        let need = if argument.required { "required" } else { "optional" };
        let description = argument.description.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
        rows.push(row("argument", printable(&format!("{} ({need}){description}", argument.name))));
    }
    write_columns(out, &rows)?;
    writeln!(out)?;
    out.write_all(skill.body.as_bytes())?;
    if skill.body.ends_with('\n') { Ok(()) } else { writeln!(out) }
}

fn lint(args: &Lint, context: &mut Context) -> Result<Exit, Failure> {
    let (name, warnings) = match (&args.file, &args.name) {
        (Some(file), _) => {
            let skill = Skill::parse(&read_text(file)?)
                .map_err(|error| Failure::new("invalid", format_args!("`{}`: {error}", file.display())))?;
            (skill.name().to_owned(), skill.lint())
        }
        (None, name) => {
            let skill = context.databases.open_to_read()?.skill_get(name.as_deref().unwrap_or_default())?;
            (skill.name, skill.warnings)
        }
    };
    let result = Linted { name: &name, ok: warnings.is_empty(), warnings: &warnings };
    context.output.result(&result, |out| {
        result.warnings.iter().try_for_each(|warning| writeln!(out, "{}", placed(warning, result.name)))?;
        if result.ok { writeln!(out, "{}: ok", printable(result.name)) } else { Ok(()) }
    })?;
    Ok(if result.ok { Exit::Done } else { Exit::Failed })
}

fn render(args: Render, context: &mut Context) -> Result<Exit, Failure> {
    let mut values = BTreeMap::new();
    for (key, value) in args.values {
        if values.contains_key(&key) {
            return Err(Failure::usage(format_args!("the argument `{key}` is given twice")));
        }
        values.insert(key, value);
    }
    let text = context.databases.open_to_read()?.skill_render(&args.name, &values)?;
    let rendered = Rendered { name: args.name, text };
    context.output.result(&rendered, |out| out.write_all(rendered.text.as_bytes()))?;
    Ok(Exit::Done)
}

fn delete(args: &Delete, context: &mut Context) -> Result<Exit, Failure> {
    let report = context.databases.open()?.skill_delete(&args.name)?;
    context
        .output
        .result(&report, |out| report.documents.iter().try_for_each(|docid| writeln!(out, "removed  {docid}")))?;
    for docid in &report.dangling {
        context.output.warning(format_args!("{docid} refers to a skill that is gone"));
    }
    Ok(Exit::Done)
}

/// Reads `name`, `name=description`, each with `!` at the end where it is required.
fn argument(text: &str) -> Result<SkillArgument, String> {
    let (text, required) = text.strip_suffix('!').map_or((text, false), |text| (text, true));
    let (name, description) = match text.split_once('=') {
        Some((name, description)) => (name, Some(description.to_owned())),
        None => (text, None),
    };
    if name.trim().is_empty() {
        return Err("it has no name".to_owned());
    }
    Ok(SkillArgument { name: name.trim().to_owned(), description, required })
}

/// Reads `key=value`; the value may hold further equals signs.
fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("not of the form KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_says_by_its_end_that_it_is_required() {
        let read = |text| argument(text).map(|a| (a.name, a.description, a.required));
        assert_eq!(read("doc"), Ok(("doc".to_owned(), None, false)));
        assert_eq!(read("doc!"), Ok(("doc".to_owned(), None, true)));
        assert_eq!(read("n=How many=lines!"), Ok(("n".to_owned(), Some("How many=lines".to_owned()), true)));
        assert!(read("=x").is_err());
        assert!(read("!").is_err());
    }

    #[test]
    fn a_value_may_hold_equals_signs() {
        assert_eq!(key_value("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(key_value("a="), Ok(("a".to_owned(), String::new())));
        assert!(key_value("a").is_err());
        assert!(key_value("=a").is_err());
    }
}
