//! [`Repository`] with `gix`: in process, without the `git` program.
//!
//! **Invariant:** the repository's own configuration is all that is read of Git's: no user's, no system's, no
//! environment, no hooks, no signing. An object is durable before a reference names it.

use std::collections::{BinaryHeap, HashSet};
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gix::bstr::{BStr, ByteSlice};
use gix::objs::tree::EntryKind;
use gix::{ObjectId, Repository as Gix};

use super::super::Result;
use super::super::error::ProjectError;
use super::locks::{self, Kind, Lock};
use super::pack;
use super::{Change, ChangeKind, FileChange, Repository, Revision};
use crate::error::IoContext;
use crate::storage::{Disk, Fs};

const NAME: &str = "Knowledge MCP Server";
const EMAIL: &str = "knowledge-mcp@localhost";

/// The repository of a home, opened.
pub(in super::super) struct GixRepository {
    repo: Gix,
    root: PathBuf,
}

impl std::fmt::Debug for GixRepository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GixRepository").field("root", &self.root).finish_non_exhaustive()
    }
}

fn failed(op: &'static str) -> impl Fn(&dyn Display) -> ProjectError {
    move |error| ProjectError::Git { op, detail: error.to_string() }
}

/// Adds what was tried to an error of Git's.
pub(super) trait GitContext<T> {
    fn git(self, op: &'static str) -> Result<T>;
}

impl<T, E: Display> GitContext<T> for std::result::Result<T, E> {
    fn git(self, op: &'static str) -> Result<T> {
        self.map_err(|error| failed(op)(&error))
    }
}

impl GixRepository {
    /// Opens the repository of a home.
    pub(in super::super) fn open(root: &Path) -> Result<Self> {
        let options = gix::open::Options::isolated().with(gix::sec::Trust::Full);
        let repo = options.open(root.join(".git")).git("open the repository")?.to_thread_local();
        Ok(Self { repo, root: root.to_owned() })
    }

    /// Makes the repository of a home that has none; another process may be the first.
    pub(in super::super) fn create(root: &Path) -> Result<()> {
        let temporary = root.join(super::super::home::temporary_name());
        let git_dir = temporary.join(".git");
        std::fs::create_dir_all(&temporary).io("create", &temporary)?;
        let created = gix::create::into(&temporary, gix::create::Kind::WithWorktree, gix::create::Options::default())
            .git("create a repository");
        let renamed =
            created.and_then(|_| Ok(Disk.rename(&git_dir, &root.join(".git")).io("create", &root.join(".git"))?));
        #[expect(clippy::disallowed_methods, reason = "a folder made here a moment ago, under a name of its own")]
        let _ = std::fs::remove_dir_all(&temporary);
        if renamed.is_err() && root.join(".git").exists() {
            return Ok(());
        }
        renamed
    }

    /// Returns the branch that a commit goes to.
    fn branch(&self) -> Result<String> {
        match self.repo.head().git("read HEAD")?.kind {
            gix::head::Kind::Symbolic(reference) => Ok(reference.name.to_string()),
            gix::head::Kind::Unborn(name) => Ok(name.to_string()),
            gix::head::Kind::Detached { .. } => {
                Err(self.state("is on no branch (its HEAD is detached): check one out"))
            }
        }
    }

    fn state(&self, state: &str) -> ProjectError {
        ProjectError::RepositoryState { path: self.root.clone(), state: state.to_owned() }
    }

    fn head_id(&self) -> Result<Option<ObjectId>> {
        let mut head = self.repo.head().git("read HEAD")?;
        Ok(head.try_peel_to_id().git("read HEAD")?.map(gix::Id::detach))
    }

    fn tree_of(&self, commit: ObjectId) -> Result<gix::Tree<'_>> {
        self.repo.find_commit(commit).git("read a commit")?.tree().git("read a tree")
    }

    /// Returns the object at a path as of a commit.
    fn entry(&self, commit: ObjectId, path: &str) -> Result<Option<(ObjectId, bool)>> {
        let entry = self.tree_of(commit)?.lookup_entry_by_path(path).git("read a tree")?;
        Ok(entry.map(|entry| (entry.object_id(), entry.mode().is_tree())))
    }

    /// Makes an object durable that lies in a file of its own.
    fn sync_object(&self, id: ObjectId) -> Result<()> {
        let hex = id.to_string();
        let path = self.repo.objects.store_ref().path().join(&hex[..2]).join(&hex[2..]);
        match std::fs::File::open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Ok(Err(e).io("open", &path)?),
            Ok(file) => Ok(file.sync_all().io("sync", &path)?),
        }
    }

    /// Writes blobs, trees and the commit. Returns the commit and the blob of each change.
    fn write_objects(
        &self,
        parent: Option<ObjectId>,
        changes: &[Change],
        message: &str,
        seconds: i64,
    ) -> Result<(ObjectId, Vec<Option<ObjectId>>)> {
        let base = match parent {
            Some(parent) => self.tree_of(parent)?.id,
            None => ObjectId::empty_tree(self.repo.object_hash()),
        };
        let mut editor = self.repo.edit_tree(base).git("read a tree")?;
        let mut blobs = Vec::with_capacity(changes.len());
        for change in changes {
            let path = change.path.as_str();
            if let Some(content) = &change.content {
                let blob = self.repo.write_blob(content).git("write an object")?.detach();
                editor.upsert(path, EntryKind::Blob, blob).git("change a tree")?;
                blobs.push(Some(blob));
            } else {
                editor.remove(path).git("change a tree")?;
                blobs.push(None);
            }
        }
        let tree = editor.write().git("write a tree")?.detach();
        let time = gix::date::Time { seconds, offset: 0 };
        let signature = gix::actor::Signature { name: NAME.into(), email: EMAIL.into(), time };
        let commit = gix::objs::Commit {
            tree,
            parents: parent.into_iter().collect(),
            author: signature.clone(),
            committer: signature,
            encoding: None,
            message: message.into(),
            extra_headers: Vec::new(),
        };
        let commit = self.repo.write_object(&commit).git("write a commit")?.detach();
        let mut written: HashSet<ObjectId> = blobs.iter().flatten().copied().collect();
        written.extend([tree, commit]);
        for change in changes {
            for (at, _) in change.path.match_indices('/') {
                written.extend(self.entry(commit, &change.path[..at])?.map(|(id, _)| id));
            }
        }
        for id in written {
            self.sync_object(id)?;
        }
        Ok((commit, blobs))
    }

    /// Returns the index with these paths as they lie in the working tree, and all others as they were.
    fn edited_index(&self, changes: &[Change], blobs: &[Option<ObjectId>]) -> Result<Vec<u8>> {
        let mut index = match self.repo.index_or_load_from_head_or_empty().git("read the index")? {
            gix::worktree::IndexPersistedOrInMemory::Persisted(index) => gix::index::File::clone(&index),
            gix::worktree::IndexPersistedOrInMemory::InMemory(index) => index,
        };
        let paths: HashSet<&BStr> = changes.iter().map(|change| change.path.as_bytes().as_bstr()).collect();
        index.remove_entries(|_, path, _| paths.contains(path));
        for (change, blob) in changes.iter().zip(blobs) {
            let Some(blob) = blob else { continue };
            let path = self.root.join(&change.path);
            let metadata = gix::index::fs::Metadata::from_path_no_follow(&path).io("look at", &path)?;
            let stat = gix::index::entry::Stat::from_fs(&metadata).git("look at a file")?;
            let (flags, mode) = (gix::index::entry::Flags::empty(), gix::index::entry::Mode::FILE);
            index.dangerously_push_entry(stat, *blob, flags, mode, change.path.as_bytes().as_bstr());
        }
        index.sort_entries();
        // The cached trees are those of before.
        index.remove_tree();
        let mut bytes = Vec::new();
        index.write_to(&mut bytes, gix::index::write::Options::default()).git("write the index")?;
        Ok(bytes)
    }

    /// Notes where a branch was and is, as Git does, so that nothing is lost to a person who looks there.
    fn log_reference(&self, branch: &str, old: Option<ObjectId>, new: ObjectId, seconds: i64, message: &str) {
        let old = old.unwrap_or_else(|| ObjectId::null(self.repo.object_hash()));
        let line = format!("{old} {new} {NAME} <{EMAIL}> {seconds} +0000\tcommit: {message}\n");
        for path in [self.repo.git_dir().join("logs/HEAD"), self.repo.common_dir().join("logs").join(branch)] {
            // It is a help to people; a commit does not fail by it.
            let _ = path.parent().map(std::fs::create_dir_all);
            let file = std::fs::OpenOptions::new().append(true).create(true).open(&path);
            let _ = file.and_then(|mut file| io::Write::write_all(&mut file, line.as_bytes()));
        }
    }

    fn compare(
        &self,
        from: Option<ObjectId>,
        to: Option<ObjectId>,
        path: &str,
        out: &mut Vec<FileChange>,
    ) -> Result<()> {
        if from == to {
            return Ok(());
        }
        let (old, new) = (self.children(from)?, self.children(to)?);
        let mut names: Vec<&String> = old.iter().chain(&new).map(|(name, ..)| name).collect();
        names.sort_unstable();
        names.dedup();
        let find = |all: &[Child], wanted: &String| all.iter().find(|(name, ..)| name == wanted).cloned();
        for name in names {
            let (before, after) = (find(&old, name), find(&new, name));
            let child = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            let tree = |entry: &Option<Child>| entry.as_ref().filter(|(_, _, is_tree)| *is_tree).map(|(_, id, _)| *id);
            let blob = |entry: &Option<Child>| entry.as_ref().filter(|(_, _, is_tree)| !is_tree).map(|(_, id, _)| *id);
            self.compare(tree(&before), tree(&after), &child, out)?;
            let change = match (blob(&before), blob(&after)) {
                (None, Some(_)) => ChangeKind::Added,
                (Some(_), None) => ChangeKind::Deleted,
                (Some(a), Some(b)) if a != b => ChangeKind::Modified,
                _ => continue,
            };
            out.push(FileChange { path: child, change });
        }
        Ok(())
    }

    fn children(&self, tree: Option<ObjectId>) -> Result<Vec<Child>> {
        let Some(id) = tree else { return Ok(Vec::new()) };
        let tree = self.repo.find_tree(id).git("read a tree")?;
        let mut children = Vec::new();
        for entry in tree.iter() {
            let entry = entry.git("read a tree")?;
            children.push((entry.filename().to_str_lossy().into_owned(), entry.object_id(), entry.mode().is_tree()));
        }
        Ok(children)
    }

    /// Compares what two commits hold at a path.
    fn compare_at(&self, from: Option<ObjectId>, to: ObjectId, path: &str) -> Result<Vec<FileChange>> {
        let before = match from {
            Some(from) => self.entry(from, path)?,
            None => None,
        };
        let after = self.entry(to, path)?;
        let tree = |entry: Option<(ObjectId, bool)>| entry.filter(|(_, is_tree)| *is_tree).map(|(id, _)| id);
        let blob = |entry: Option<(ObjectId, bool)>| entry.filter(|(_, is_tree)| !is_tree).map(|(id, _)| id);
        let mut out = Vec::new();
        self.compare(tree(before), tree(after), path, &mut out)?;
        let change = match (blob(before), blob(after)) {
            (None, Some(_)) => Some(ChangeKind::Added),
            (Some(_), None) => Some(ChangeKind::Deleted),
            (Some(a), Some(b)) if a != b => Some(ChangeKind::Modified),
            _ => None,
        };
        out.extend(change.map(|change| FileChange { path: path.to_owned(), change }));
        Ok(out)
    }
}

/// Name, object, whether it is a tree.
type Child = (String, ObjectId, bool);

impl Repository for GixRepository {
    fn prepare(&self) -> Result<()> {
        if self.repo.workdir().is_none() {
            return Err(self.state("is bare"));
        }
        let branch = self.branch()?;
        let head = self.head()?;
        let reference = self.repo.common_dir().join(&branch);
        locks::recover(self.repo.git_dir(), &self.repo.index_path(), &reference, head.as_deref())?;
        match self.repo.state() {
            None | Some(gix::state::InProgress::Bisect) => Ok(()),
            Some(state) => Err(self.state(&format!("is in the middle of a {}: finish or abort it", name_of(&state)))),
        }
    }

    fn outstanding(&self, changes: Vec<Change>) -> Result<Vec<Change>> {
        let Some(head) = self.head_id()? else {
            return Ok(changes.into_iter().filter(|change| change.content.is_some()).collect());
        };
        let mut outstanding = Vec::new();
        for change in changes {
            let now = self.entry(head, &change.path)?.map(|(id, _)| id);
            let wanted = match &change.content {
                None => None,
                Some(content) => {
                    let kind = gix::objs::Kind::Blob;
                    Some(gix::objs::compute_hash(self.repo.object_hash(), kind, content).git("hash a file")?)
                }
            };
            if now != wanted {
                outstanding.push(change);
            }
        }
        Ok(outstanding)
    }

    fn commit(&self, changes: &[Change], message: &str, seconds: i64, wait: Duration) -> Result<String> {
        let branch = self.branch()?;
        let git_dir = self.repo.git_dir();
        loop {
            let parent = self.head_id()?;
            let (commit, blobs) = self.write_objects(parent, changes, message, seconds)?;
            let id = commit.to_string();
            let index = self.edited_index(changes, &blobs)?;
            let index_path = self.repo.index_path();
            let index = Lock::take(git_dir, Kind::Index, &id, &index_path, &index, wait)?;
            let path = self.repo.common_dir().join(&branch);
            let content = format!("{id}\n");
            let reference = Lock::take(git_dir, Kind::Reference, &id, &path, content.as_bytes(), wait)?;
            if self.head_id()? != parent || self.branch()? != branch {
                // Another program was first.
                continue;
            }
            reference.publish()?;
            self.log_reference(&branch, parent, commit, seconds, message.lines().next().unwrap_or_default());
            index.publish()?;
            // Objects that cannot be packed cost space, not the commit.
            let _ = pack::pack(&self.repo);
            return Ok(id);
        }
    }

    fn head(&self) -> Result<Option<String>> {
        Ok(self.head_id()?.map(|id| id.to_string()))
    }

    fn find(&self, revision: &str) -> Result<String> {
        let not_found = || ProjectError::RevisionNotFound { revision: revision.to_owned() };
        let prefix = gix::hash::Prefix::from_hex(revision).map_err(|_| not_found())?;
        let found = self.repo.objects.lookup_prefix(prefix, None).git("look for a revision")?;
        let id = found.and_then(std::result::Result::ok).ok_or_else(not_found)?;
        self.repo.find_commit(id).map_err(|_| not_found())?;
        Ok(id.to_string())
    }

    fn file(&self, revision: &str, path: &str) -> Result<Option<Vec<u8>>> {
        match self.entry(parse(revision)?, path)? {
            Some((id, false)) => Ok(Some(self.repo.find_blob(id).git("read an object")?.take_data())),
            _ => Ok(None),
        }
    }

    fn history(&self, path: &str, limit: usize) -> Result<(Vec<Revision>, bool)> {
        let mut revisions = Vec::new();
        let mut seen = HashSet::new();
        let mut queue = BinaryHeap::new();
        let mut order = 0_u64;
        let mut push = |queue: &mut BinaryHeap<_>, id: ObjectId| -> Result<()> {
            if seen.insert(id) {
                let commit = self.repo.find_commit(id).git("read a commit")?;
                let seconds = commit.time().git("read a commit")?.seconds;
                order += 1;
                queue.push((seconds, std::cmp::Reverse(order), id));
            }
            Ok(())
        };
        if let Some(head) = self.head_id()? {
            push(&mut queue, head)?;
        }
        while let Some((seconds, _, id)) = queue.pop() {
            let commit = self.repo.find_commit(id).git("read a commit")?;
            let here = self.entry(id, path)?;
            let parents: Vec<ObjectId> = commit.parent_ids().map(gix::Id::detach).collect();
            let mut same = None;
            for &parent in &parents {
                // A commit whose parent is not here (a shallow clone) is a first one.
                if self.repo.has_object(parent) && self.entry(parent, path)? == here {
                    same = Some(parent);
                    break;
                }
            }
            if let Some(parent) = same {
                push(&mut queue, parent)?;
                continue;
            }
            let parents: Vec<ObjectId> = parents.into_iter().filter(|parent| self.repo.has_object(parent)).collect();
            if here.is_none() && parents.is_empty() {
                continue;
            }
            if revisions.len() == limit {
                return Ok((revisions, true));
            }
            let message = commit.message_raw().git("read a commit")?.to_str_lossy();
            revisions.push(Revision {
                id: id.to_string(),
                seconds,
                author: commit.author().git("read a commit")?.name.to_str_lossy().into_owned(),
                message: message.lines().next().unwrap_or_default().to_owned(),
                files: self.compare_at(parents.first().copied(), id, path)?,
            });
            for parent in parents {
                push(&mut queue, parent)?;
            }
        }
        Ok((revisions, false))
    }
}

fn parse(revision: &str) -> Result<ObjectId> {
    ObjectId::from_hex(revision.as_bytes())
        .map_err(|_| ProjectError::RevisionNotFound { revision: revision.to_owned() })
}

fn name_of(state: &gix::state::InProgress) -> &'static str {
    use gix::state::InProgress;
    match state {
        InProgress::ApplyMailbox | InProgress::ApplyMailboxRebase => "git am",
        InProgress::Bisect => "bisect",
        InProgress::CherryPick | InProgress::CherryPickSequence => "cherry-pick",
        InProgress::Merge => "merge",
        InProgress::Rebase | InProgress::RebaseInteractive => "rebase",
        InProgress::Revert | InProgress::RevertSequence => "revert",
    }
}
