//! The shapes of arguments and results, and the JSON schemas that tell clients of them.
//!
//! **Invariant:** a schema is plain: `type: object` at the root, always `properties`, typed `items`, no combinators, no
//! references, no formats. Clients drop a tool, or all tools of a server, over anything else.

use serde_json::{Map, Value, json};

/// The shape of one value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// From, to.
    Integer(u64, u64),
    /// A count, which only results have.
    Count,
    Flag,
    Texts,
    Objects(&'static [Parameter]),
    /// An object whose keys are not known beforehand.
    Object,
}

/// The shape of `maxTokens`, by which a caller asks for less than the usual budget.
pub(crate) const MAX_TOKENS: Shape = Shape::Integer(100, 1_000_000);

/// One argument of a tool, or one field of an argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) is_required: bool,
    /// Empty where the name says it all.
    pub(crate) description: &'static str,
}

/// Makes a parameter that must be given.
pub(crate) const fn required(name: &'static str, shape: Shape, description: &'static str) -> Parameter {
    Parameter { name, shape, is_required: true, description }
}

/// Makes a parameter that may be left out.
pub(crate) const fn optional(name: &'static str, shape: Shape, description: &'static str) -> Parameter {
    Parameter { name, shape, is_required: false, description }
}

/// Returns the schema of an object with these fields.
pub(crate) fn object(parameters: &[Parameter]) -> Value {
    let mut properties = Map::new();
    for parameter in parameters {
        let mut schema = of(parameter.shape);
        if !parameter.description.is_empty() {
            schema["description"] = parameter.description.into();
        }
        properties.insert(parameter.name.to_owned(), schema);
    }
    let required: Vec<_> = parameters.iter().filter(|p| p.is_required).map(|p| p.name).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Returns the schema of a result with these fields. None is required, so that the object of a failure fits as well.
pub(crate) fn result(fields: &[(&str, Shape)]) -> Value {
    let properties: Map<_, _> = fields.iter().map(|(name, shape)| ((*name).to_owned(), of(*shape))).collect();
    json!({"type": "object", "properties": properties})
}

fn of(shape: Shape) -> Value {
    match shape {
        Shape::Text => json!({"type": "string"}),
        Shape::Word(words) => json!({"type": "string", "enum": words}),
        Shape::Integer(from, to) => json!({"type": "integer", "minimum": from, "maximum": to}),
        Shape::Count => json!({"type": "integer"}),
        Shape::Flag => json!({"type": "boolean"}),
        Shape::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Shape::Objects([]) => json!({"type": "array", "items": {"type": "object"}}),
        Shape::Objects(fields) => json!({"type": "array", "items": object(fields)}),
        Shape::Object => json!({"type": "object"}),
    }
}
