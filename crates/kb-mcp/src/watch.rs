//! Change notices: who wants to hear of what, and one thread that looks.
//!
//! The thread sleeps while nobody listens. While somebody does it reads the head once a second, so that changes by any
//! process are seen, and at once after a change of our own.
//!
//! **Invariant:** a notice is sent only to who asked for it, and only if a call here touched the thing or it differs
//! from what it was when they asked or were last told. No notice of a subscription goes out before its acknowledgement.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kb_store::{KnowledgeBase, StoreError};
use serde_json::{Value, json};

use crate::outbox::Outbox;
use crate::prompts;
use crate::protocol::SUBSCRIPTION_ID;
use crate::resources::Resource;
use crate::wire::notification;

/// The time between two looks at the head.
const PACE: Duration = Duration::from_secs(1);

/// The watch of one connection.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    listeners: Vec<Listener>,
    /// The list of prompts as it was last told.
    prompts: Option<u64>,
    generation: Option<u64>,
    /// Somebody has to be told soon, whatever the time.
    is_poked: bool,
    /// A call of ours touched the prompts.
    prompts_touched: bool,
    is_closed: bool,
}

/// Somebody who wants to hear of changes.
#[derive(Debug)]
struct Listener {
    /// The id of the request that opened the stream; `None` for the one client of the older era.
    subscription: Option<Value>,
    wants_prompts: bool,
    /// URIs with what was last known of each.
    resources: BTreeMap<String, Option<String>>,
}

impl Watch {
    /// Looks for changes until the watch is closed.
    pub(crate) fn run(&self, base: &KnowledgeBase, outbox: &Outbox) {
        let mut state = self.lock();
        while !state.is_closed {
            if state.is_poked {
                state.is_poked = false;
                drop(state);
                // A base that cannot be read now is looked at again later; calls say what is wrong with it.
                let _ = self.look(base, outbox);
                state = self.lock();
            } else if state.listeners.is_empty() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            } else {
                let waited = self.changed.wait_timeout(state, PACE).unwrap_or_else(PoisonError::into_inner);
                state = waited.0;
                state.is_poked |= waited.1.timed_out();
            }
        }
    }

    /// Has the thread look now.
    pub(crate) fn poke(&self) {
        self.lock().is_poked = true;
        self.changed.notify_all();
    }

    /// Has the thread tell of a call that touched the prompts. It is told also where the call changed nothing, so that
    /// who missed the first notice gets another. A client of the older era hears of it whether or not it has listed any.
    pub(crate) fn touch_prompts(&self, is_older: bool) {
        let mut state = self.lock();
        (state.is_poked, state.prompts_touched) = (true, true);
        if is_older {
            state.older().wants_prompts = true;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Says whether anybody wants to hear of a resource.
    pub(crate) fn has_resources(&self) -> bool {
        self.lock().listeners.iter().any(|listener| !listener.resources.is_empty())
    }

    /// The client of the older era wants to hear of the list of prompts.
    pub(crate) fn follow_prompts(&self, base: &KnowledgeBase) -> Result<(), StoreError> {
        let fingerprint = prompts::fingerprint(base)?;
        let mut state = self.lock();
        state.prompts.get_or_insert(fingerprint);
        state.older().wants_prompts = true;
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// The client of the older era wants to hear of a resource. A URI that names nothing yet is taken as well.
    pub(crate) fn subscribe(&self, base: &KnowledgeBase, uri: &str) -> Result<(), StoreError> {
        let known = known(base, uri)?;
        self.lock().older().resources.insert(uri.to_owned(), known);
        self.changed.notify_all();
        Ok(())
    }

    /// The client of the older era no longer wants to hear of a resource.
    pub(crate) fn unsubscribe(&self, uri: &str) {
        let mut state = self.lock();
        state.older().resources.remove(uri);
        state.listeners.retain(|listener| {
            listener.subscription.is_some() || listener.wants_prompts || !listener.resources.is_empty()
        });
    }

    /// Opens a stream of the newer era; returns what of it is served, having acknowledged it.
    pub(crate) fn listen(
        &self,
        base: &KnowledgeBase,
        outbox: &Outbox,
        id: &Value,
        wanted: &Value,
    ) -> Result<(), StoreError> {
        let wants = |field: &str| wanted[field].as_bool().unwrap_or(false);
        let mut resources = BTreeMap::new();
        for uri in wanted["resourceSubscriptions"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            resources.insert(uri.to_owned(), known(base, uri)?);
        }
        let prompts = wants("promptsListChanged").then(|| prompts::fingerprint(base)).transpose()?;
        let mut served = json!({});
        if prompts.is_some() {
            served["promptsListChanged"] = true.into();
        }
        if wants("resourcesListChanged") {
            served["resourcesListChanged"] = true.into();
        }
        if !resources.is_empty() {
            served["resourceSubscriptions"] = resources.keys().cloned().collect();
        }
        let mut state = self.lock();
        if let Some(prompts) = prompts {
            state.prompts.get_or_insert(prompts);
        }
        let params = json!({"_meta": {SUBSCRIPTION_ID: id}, "notifications": served});
        outbox.put(&notification("notifications/subscriptions/acknowledged", &params));
        let subscription = Some(id.clone());
        state.listeners.push(Listener { subscription, wants_prompts: prompts.is_some(), resources });
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Ends a stream; its request gets no answer.
    pub(crate) fn end(&self, id: &Value) {
        self.lock().listeners.retain(|listener| listener.subscription.as_ref() != Some(id));
    }

    /// Ends the thread, and returns the ids of the streams that are open.
    pub(crate) fn close(&self) -> Vec<Value> {
        let mut state = self.lock();
        state.is_closed = true;
        let open = std::mem::take(&mut state.listeners);
        drop(state);
        self.changed.notify_all();
        open.into_iter().filter_map(|listener| listener.subscription).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks once, and tells who has to be told.
    fn look(&self, base: &KnowledgeBase, outbox: &Outbox) -> Result<(), StoreError> {
        let generation = base.generation()?;
        let (uris, wants_prompts, prompts_touched) = {
            let mut state = self.lock();
            let prompts_touched = std::mem::take(&mut state.prompts_touched);
            if state.generation.replace(generation) == Some(generation) && !prompts_touched {
                return Ok(());
            }
            let uris: Vec<String> =
                state.listeners.iter().flat_map(|listener| listener.resources.keys().cloned()).collect();
            let wants_prompts = state.listeners.iter().any(|listener| listener.wants_prompts);
            (uris, wants_prompts, prompts_touched)
        };
        // The base is read without the lock, so that no request waits for it.
        let prompts = wants_prompts.then(|| prompts::fingerprint(base)).transpose()?;
        let mut now = BTreeMap::new();
        for uri in uris {
            let known = known(base, &uri)?;
            now.insert(uri, known);
        }
        let mut state = self.lock();
        let differ = prompts.zip(state.prompts).is_some_and(|(now, before)| now != before);
        let are_prompts_new = prompts_touched || differ;
        state.prompts = prompts.or(state.prompts);
        for listener in &mut state.listeners {
            if are_prompts_new && listener.wants_prompts {
                outbox.put(&notice("notifications/prompts/list_changed", json!({}), listener.subscription.as_ref()));
            }
            for (uri, before) in &mut listener.resources {
                if let Some(known) = now.get(uri).filter(|known| *known != before) {
                    before.clone_from(known);
                    let params = json!({"uri": uri});
                    outbox.put(&notice("notifications/resources/updated", params, listener.subscription.as_ref()));
                }
            }
        }
        Ok(())
    }
}

impl State {
    /// Returns the listener that is the client of the older era.
    fn older(&mut self) -> &mut Listener {
        let at = self.listeners.iter().position(|listener| listener.subscription.is_none());
        let at = at.unwrap_or_else(|| {
            self.listeners.push(Listener { subscription: None, wants_prompts: false, resources: BTreeMap::new() });
            self.listeners.len() - 1
        });
        &mut self.listeners[at]
    }
}

/// Returns what is known of a resource now.
fn known(base: &KnowledgeBase, uri: &str) -> Result<Option<String>, StoreError> {
    Resource::parse(uri).map_or(Ok(None), |resource| resource.fingerprint(base))
}

fn notice(method: &str, mut params: Value, subscription: Option<&Value>) -> String {
    if let Some(id) = subscription {
        params["_meta"] = json!({SUBSCRIPTION_ID: id});
    }
    notification(method, &params)
}
