//! `index.json`: which folder a project id has.
//!
//! **Invariant:** a damaged or missing `index.json` is never read as an empty one. It is put together again from the
//! last one that was committed and from the folders that are there.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use unicode_normalization::UnicodeNormalization;

use super::name::{check_project, project_folder};

/// Project ids and their folders.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Registry {
    /// The file as it was read, for what else stands in it.
    whole: Map<String, Value>,
    projects: Map<String, Value>,
    /// Folders of no project that is listed: made by hand or by a merge. Their ids are their names.
    unlisted: Vec<String>,
    /// Names that no new folder can have.
    taken: Vec<String>,
}

impl Registry {
    /// Reads `index.json`; `None` where it is damaged.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let Ok(Value::Object(whole)) = serde_json::from_slice(bytes) else { return None };
        let Some(Value::Object(projects)) = whole.get("projects") else { return None };
        let projects = projects.clone();
        let is_folder = |value: &Value| value.as_str().is_some_and(is_folder_name);
        projects.values().all(is_folder).then(|| Self { whole, projects, ..Self::default() })
    }

    /// Takes note of what lies where the folders of projects do, and of which of it is one.
    pub(super) fn with_folders(mut self, names: Vec<String>, is_project: impl Fn(&str) -> bool) -> Self {
        let listed: HashSet<&str> = self.projects.values().filter_map(Value::as_str).collect();
        self.unlisted =
            names.iter().filter(|name| !listed.contains(name.as_str()) && is_project(name)).cloned().collect();
        self.taken = names;
        self
    }

    /// Returns the folder of a project.
    pub(super) fn folder(&self, id: &str) -> Option<&str> {
        if let Some(folder) = self.projects.get(id).and_then(Value::as_str) {
            return Some(folder);
        }
        let wanted = normal(id);
        let same = self.projects.iter().find(|(known, _)| normal(known) == wanted);
        match same {
            Some((_, folder)) => folder.as_str(),
            None => self.unlisted.iter().map(String::as_str).find(|folder| *folder == id),
        }
    }

    /// Returns the id as it was first given.
    pub(super) fn spelling<'a>(&'a self, id: &'a str) -> &'a str {
        let wanted = normal(id);
        if self.projects.contains_key(id) {
            return id;
        }
        self.projects.keys().find(|known| normal(known) == wanted).map_or(id, String::as_str)
    }

    /// Returns every project with its folder, by id.
    pub(super) fn all(&self) -> Vec<(&str, &str)> {
        let listed = self.projects.iter().filter_map(|(id, folder)| Some((id.as_str(), folder.as_str()?)));
        let mut all: Vec<_> =
            listed.chain(self.unlisted.iter().map(|folder| (folder.as_str(), folder.as_str()))).collect();
        all.sort_unstable();
        all
    }

    /// Gives a project a folder of its own.
    pub(super) fn add(&mut self, id: &str) -> String {
        let folder = if let Some(at) = self.unlisted.iter().position(|folder| folder == id) {
            self.unlisted.swap_remove(at)
        } else {
            let taken = |name: &str| {
                let listed = self.projects.values().filter_map(Value::as_str);
                listed.chain(self.taken.iter().map(String::as_str)).any(|folder| folder.eq_ignore_ascii_case(name))
            };
            project_folder(id, taken)
        };
        self.projects.insert(id.to_owned(), json!(folder));
        folder
    }

    /// Lists every folder, those of no id under their names.
    pub(super) fn adopt(&mut self) {
        for folder in std::mem::take(&mut self.unlisted) {
            if !self.projects.contains_key(&folder) {
                self.projects.insert(folder.clone(), json!(folder));
            }
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut whole = self.whole.clone();
        whole.insert("projects".to_owned(), Value::Object(self.projects.clone()));
        let mut text = format!("{:#}", Value::Object(whole));
        text.push('\n');
        text.into_bytes()
    }
}

fn is_folder_name(name: &str) -> bool {
    check_project(name).is_ok()
}

/// Ids that differ in normal form only are one.
fn normal(id: &str) -> String {
    id.nfc().collect()
}
