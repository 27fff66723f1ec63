//! What one process serves: a knowledge base, project knowledge, or both.
//!
//! **Invariant:** what is not served is not there: its tools are unknown, its methods are not found, and nothing is said
//! of it.

use kb_store::{KnowledgeBase, ProjectStore};

use crate::tools::{PROJECT_EXTRAS, PROJECT_TOOLS, TOOLS, Tool};

/// What a server serves: a knowledge base, project knowledge, or both side by side.
///
/// ```
/// # use kb_mcp::Served;
/// # use kb_store::{Options, ProjectStore};
/// # let folder = tempfile::tempdir().expect("a folder");
/// # let store = ProjectStore::open(folder.path(), Options::new(std::time::SystemTime::now))?;
/// let served = Served::from(store).with_all_project_tools();
/// # Ok::<(), kb_store::ProjectError>(())
/// ```
#[derive(Debug)]
pub struct Served {
    base: Option<KnowledgeBase>,
    projects: Option<ProjectStore>,
    has_all_project_tools: bool,
}

impl From<KnowledgeBase> for Served {
    fn from(base: KnowledgeBase) -> Self {
        Self { base: Some(base), projects: None, has_all_project_tools: false }
    }
}

impl From<ProjectStore> for Served {
    fn from(projects: ProjectStore) -> Self {
        Self { base: None, projects: Some(projects), has_all_project_tools: false }
    }
}

impl From<(KnowledgeBase, ProjectStore)> for Served {
    fn from((base, projects): (KnowledgeBase, ProjectStore)) -> Self {
        Self { base: Some(base), ..projects.into() }
    }
}

impl Served {
    /// Serves, beside the seven tools of project knowledge, those that list, arrange and go back in history.
    #[must_use]
    pub const fn with_all_project_tools(mut self) -> Self {
        self.has_all_project_tools = true;
        self
    }

    pub(crate) const fn base(&self) -> Option<&KnowledgeBase> {
        self.base.as_ref()
    }

    pub(crate) const fn projects(&self) -> Option<&ProjectStore> {
        self.projects.as_ref()
    }

    /// Returns the tools in the order in which they are listed.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &'static Tool> {
        let groups = [
            (self.base.is_some(), TOOLS),
            (self.projects.is_some(), PROJECT_TOOLS),
            (self.projects.is_some() && self.has_all_project_tools, PROJECT_EXTRAS),
        ];
        groups.into_iter().filter(|(is_served, _)| *is_served).flat_map(|(_, tools)| tools.iter().copied())
    }
}
