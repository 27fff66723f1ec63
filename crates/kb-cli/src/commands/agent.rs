//! `kb agent`: creates, lists, shows and deletes agents.
//!
//! **Invariant:** an agent holds skills that exist when it is created, in the order given.

use std::io::{self, Write};
use std::path::Path;

use clap::Subcommand;
use kb_core::{AgentInfo, Outcome};
use kb_store::NewAgent;

use super::{Context, read_text};
use crate::failure::{Exit, Failure};
use crate::output::{Output, count, printable, write_columns};

/// Create, list, show and delete agents
///
/// An agent is a persona with skills in order.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(Create),
    List(List),
    Get(Get),
    Delete(Delete),
}

/// Create an agent
///
/// Under a name that exists it becomes the next revision of that agent.
#[derive(Debug, clap::Args)]
struct Create {
    /// Name of the agent
    name: String,
    /// What the agent is for
    #[arg(long)]
    description: String,
    /// The text that makes an assistant this agent: the text itself, or `@FILE`, or `@-` for stdin
    #[arg(long, value_name = "TEXT|@FILE")]
    persona: String,
    /// A skill by name or kbid; may be given again, the order counts
    #[arg(long = "skill", value_name = "SKILL")]
    skills: Vec<String>,
}

/// List the agents
#[derive(Debug, clap::Args)]
struct List {}

/// Show an agent with its skills
#[derive(Debug, clap::Args)]
struct Get {
    /// Docid or name
    name: String,
}

/// Delete an agent; its skills stay
#[derive(Debug, clap::Args)]
struct Delete {
    /// Docid or name
    name: String,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<Exit, Failure> {
    match args.command {
        Command::Create(args) => create(args, context),
        Command::List(List {}) => list(context),
        Command::Get(args) => get(&args, context),
        Command::Delete(args) => delete(&args, context),
    }
}

fn create(args: Create, context: &mut Context) -> Result<Exit, Failure> {
    let persona = match args.persona.strip_prefix('@') {
        Some(file) => read_text(Path::new(file))?,
        None => args.persona,
    };
    let agent = NewAgent { name: args.name, description: args.description, persona, skills: args.skills };
    let agent = context.databases.open()?.agent_create(&agent)?;
    context.output.result(&agent, |out| {
        let outcome = agent.outcome.unwrap_or(Outcome::Unchanged);
        writeln!(out, "{outcome:<9}  {}  {}", agent.docid, count(agent.skills.len() as u64, "skill"))
    })?;
    Ok(Exit::Done)
}

fn list(context: &mut Context) -> Result<Exit, Failure> {
    let list = context.databases.open_to_read()?.agent_list()?;
    context.output.result(&list, |out| {
        let rows: Vec<Vec<String>> = list
            .agents
            .iter()
            .map(|agent| {
                vec![
                    printable(&agent.name),
                    agent.docid.to_string(),
                    count(agent.skill_count as u64, "skill"),
                    printable(&agent.description),
                ]
            })
            .collect();
        write_columns(out, &rows)
    })?;
    if list.agents.is_empty() && !context.output.is_json() {
        context.output.note("no agents");
    }
    Ok(Exit::Done)
}

fn get(args: &Get, context: &mut Context) -> Result<Exit, Failure> {
    let agent = context.databases.open_to_read()?.agent_get(&args.name)?;
    context.output.result(&agent, |out| write_agent(&agent, out))?;
    Ok(Exit::Done)
}

fn write_agent(agent: &AgentInfo, out: &mut Output) -> io::Result<()> {
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![
        row("name", printable(&agent.name)),
        row("description", printable(&agent.description)),
        row("document", agent.docid.to_string()),
    ];
    for skill in &agent.skills {
        let told = match (&skill.name, &skill.description) {
            (Some(name), Some(description)) => format!("{name}: {description}"),
            (Some(name), None) => name.clone(),
            (None, _) => format!("{} is gone", skill.docid),
        };
        rows.push(row("skill", printable(&told)));
    }
    write_columns(out, &rows)?;
    writeln!(out)?;
    out.write_all(agent.persona.as_bytes())?;
    if agent.persona.ends_with('\n') { Ok(()) } else { writeln!(out) }
}

fn delete(args: &Delete, context: &mut Context) -> Result<Exit, Failure> {
    let report = context.databases.open()?.agent_delete(&args.name)?;
    context
        .output
        .result(&report, |out| report.documents.iter().try_for_each(|docid| writeln!(out, "removed  {docid}")))?;
    Ok(Exit::Done)
}
