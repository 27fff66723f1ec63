//! `skill-learn`, `skill-list`, `skill-get`, `skill-delete`.
//!
//! **Invariant:** a skill that is learned here has a name that every client takes for the name of a prompt.

use kb_core::{SectionId, SkillArgument, slug};
use kb_store::NewSkill;
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::knowledge::take_array;
use super::schema::{Parameter, Shape, optional, required};
use super::{Answer, Handler, Kind, Tool, to_value};
use crate::budget::{Budget, cursor, resume};
use crate::call::Call;
use crate::failure::Failure;

const ARGUMENT: &[Parameter] = &[
    required("name", Shape::Text, ""),
    optional("description", Shape::Text, ""),
    optional("required", Shape::Flag, ""),
];

pub(super) static LEARN: Tool = Tool {
    name: "skill-learn",
    title: "Learn a skill",
    description: "Keep a reusable instruction with {{placeholders}}; it becomes a prompt. The same name makes the next \
                  revision. A placeholder that is not declared is a required argument.",
    kind: Kind::Add,
    parameters: &[
        required("name", Shape::Text, "Lower-case words with hyphens"),
        required("description", Shape::Text, "When to use it"),
        required("body", Shape::Text, ""),
        optional("arguments", Shape::Objects(ARGUMENT), ""),
    ],
    result: &[
        ("kbid", Shape::Text),
        ("docid", Shape::Text),
        ("name", Shape::Text),
        ("outcome", Shape::Text),
        ("warnings", Shape::Objects(&[])),
    ],
    handler: Handler::Base(learn),
};

pub(super) static LIST: Tool = Tool {
    name: "skill-list",
    title: "List skills",
    description: "All skills by name; `cursor` goes on.",
    kind: Kind::Read,
    parameters: &[optional("cursor", Shape::Text, "")],
    result: &[("skills", Shape::Objects(&[])), ("cursor", Shape::Text)],
    handler: Handler::Base(|call, arguments| list(to_value(&call.base().skill_list()?)?, "skills", arguments)),
};

pub(super) static GET: Tool = Tool {
    name: "skill-get",
    title: "Get a skill",
    description: "Read a skill by name or kbid (kbid goes first). With `arguments` its text comes filled in as \
                  `rendered`, as the prompt of its name gives it.",
    kind: Kind::Read,
    parameters: &[
        optional("name", Shape::Text, ""),
        optional("kbid", Shape::Text, ""),
        optional("arguments", Shape::Object, "Values of placeholders"),
    ],
    result: &[
        ("kbid", Shape::Text),
        ("name", Shape::Text),
        ("description", Shape::Text),
        ("body", Shape::Text),
        ("rendered", Shape::Text),
    ],
    handler: Handler::Base(get),
};

pub(super) static DELETE: Tool = Tool {
    name: "skill-delete",
    title: "Delete a skill",
    description: "Remove a skill for good. Agents that use it keep an entry with `name: null`.",
    kind: Kind::Remove,
    parameters: &[required("kbid", Shape::Text, "Of the skill, or its name")],
    result: &[("documents", Shape::Texts), ("dangling", Shape::Texts)],
    handler: Handler::Base(delete),
};

fn learn(call: &Call<'_>, arguments: &Arguments) -> Result<Answer, Failure> {
    let given = arguments.required_text("name")?;
    // What cannot be a name at all is for the base to refuse, in its own words.
    let name = if kb_core::skill_docid(&given).is_ok() { slug(&given) } else { given.clone() };
    let description = arguments.required_text("description")?;
    if description.trim().is_empty() {
        return Err(Failure::argument("description", "say when to use the skill; clients drop one that does not"));
    }
    let mut declared = Vec::new();
    for argument in arguments.objects("arguments")? {
        declared.push(SkillArgument {
            name: argument.required_text("name")?,
            description: argument.text("description")?,
            required: argument.flag("required")?,
        });
    }
    let is_renamed = name != given;
    let skill = NewSkill { name, description, body: arguments.required_text("body")?, arguments: declared };
    let info = call.write(|base| base.skill_learn(&skill))?;
    let mut answer = to_value(&info)?;
    if is_renamed {
        let message = format!("the skill is called `{}`, since clients take no other characters", info.name);
        let mut warnings = take_array(&mut answer, "warnings");
        warnings.push(json!({"code": "skill-name", "message": message}));
        answer["warnings"] = warnings.into();
    }
    Ok(Answer::Whole(answer))
}

/// Returns a list as the array and the object that holds it, as much as fits.
pub(super) fn list(mut report: Value, field: &str, arguments: &Arguments) -> Result<Answer, Failure> {
    let mut items = take_array(&mut report, field);
    let stamp = format!("n{}", items.len());
    let begin = resume(arguments.text("cursor")?.as_deref(), &stamp)?;
    items.drain(..begin.min(items.len()));
    let omitted = Budget::of(None).fit(&mut items);
    if omitted > 0 {
        report["omitted"] = omitted.into();
        report["cursor"] = cursor(&stamp, begin + items.len());
    }
    let items = Value::from(items);
    report[field] = items.clone();
    Ok(Answer::List { items, whole: report })
}

fn get(call: &Call<'_>, arguments: &Arguments) -> Result<Answer, Failure> {
    let id = match (arguments.text("kbid")?, arguments.text("name")?) {
        (Some(kbid), _) => {
            kbid.parse::<SectionId>().map_err(|error| Failure::argument("kbid", error.to_string()))?;
            kbid
        }
        (None, Some(name)) => name,
        (None, None) => return Err(Failure::argument("name", "give `name` or `kbid`")),
    };
    let mut answer = to_value(&call.base().skill_get(&id)?)?;
    if let Some(values) = arguments.values("arguments")? {
        answer["rendered"] = call.base().skill_render(&id, &values)?.into();
    }
    Ok(Answer::Whole(answer))
}

fn delete(call: &Call<'_>, arguments: &Arguments) -> Result<Answer, Failure> {
    let id = arguments.required_text("kbid")?;
    to_value(&call.write(|base| base.skill_delete(&id))?).map(Answer::Whole)
}
