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

use kb_store::{KnowledgeBase, ProjectError, ProjectStore, StoreError};
use serde_json::{Value, json};

use crate::call::Ticket;
use crate::connection::Connection;
use crate::outbox::Outbox;
use crate::project_resources::{ProjectResource, list_fingerprint};
use crate::prompts;
use crate::protocol::SUBSCRIPTION_ID;
use crate::resources::{Resource, internal};
use crate::served::Served;
use crate::wire::{RpcError, notification};

/// The time between two looks at the head.
const PACE: Duration = Duration::from_secs(1);

/// The watch of all clients.
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
    /// The list of resources as it was last told.
    list: Option<u64>,
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
    /// The number of the client.
    client: u64,
    /// The id of the request that opened the stream; `None` for a client of the older era, which has one stream.
    subscription: Option<Value>,
    out: Outbox,
    wants_prompts: bool,
    wants_list: bool,
    /// URIs with what was last known of each.
    resources: BTreeMap<String, Option<String>>,
}

impl Watch {
    /// Looks for changes until the watch is closed.
    pub(crate) fn run(&self, served: &Served) {
        let mut state = self.lock();
        while !state.is_closed {
            if state.is_poked {
                state.is_poked = false;
                drop(state);
                // A store that cannot be read now is looked at again later; calls say what is wrong with it.
                let _ = self.look(served);
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
    /// who missed the first notice gets another. A client of the older era, if it was one, hears of it whether or not
    /// it has listed any.
    pub(crate) fn touch_prompts(&self, older: Option<&Connection>) {
        let mut state = self.lock();
        (state.is_poked, state.prompts_touched) = (true, true);
        if let Some(client) = older {
            state.older(client).wants_prompts = true;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Says whether anybody wants to hear of resources.
    pub(crate) fn has_resources(&self) -> bool {
        let wants = |listener: &Listener| listener.wants_list || !listener.resources.is_empty();
        self.lock().listeners.iter().any(wants)
    }

    /// A client of the older era wants to hear of the list of prompts.
    pub(crate) fn follow_prompts(&self, client: &Connection, base: &KnowledgeBase) -> Result<(), StoreError> {
        let fingerprint = prompts::fingerprint(base)?;
        let mut state = self.lock();
        state.prompts.get_or_insert(fingerprint);
        state.older(client).wants_prompts = true;
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// A client of the older era wants to hear of the list of resources.
    pub(crate) fn follow_list(&self, client: &Connection, store: &ProjectStore) -> Result<(), ProjectError> {
        let fingerprint = list_fingerprint(store)?;
        let mut state = self.lock();
        state.list.get_or_insert(fingerprint);
        state.older(client).wants_list = true;
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// A client of the older era wants to hear of a resource. A URI that names nothing yet is taken as well.
    pub(crate) fn subscribe(&self, client: &Connection, uri: &str) -> Result<(), RpcError> {
        let known = known(client.served(), uri)?;
        self.lock().older(client).resources.insert(uri.to_owned(), known);
        self.changed.notify_all();
        Ok(())
    }

    /// A client of the older era no longer wants to hear of a resource.
    pub(crate) fn unsubscribe(&self, client: u64, uri: &str) {
        let mut state = self.lock();
        for listener in state.listeners.iter_mut().filter(|listener| listener.is_older(client)) {
            listener.resources.remove(uri);
        }
        state.listeners.retain(|listener| !listener.is_older(client) || listener.wants_anything());
    }

    /// Opens a stream of the newer era; returns what of it is served, having acknowledged it.
    pub(crate) fn listen(&self, served: &Served, ticket: &Ticket, wanted: &Value) -> Result<(), RpcError> {
        let wants = |field: &str| wanted[field].as_bool().unwrap_or(false);
        let mut resources = BTreeMap::new();
        for uri in wanted["resourceSubscriptions"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            resources.insert(uri.to_owned(), known(served, uri)?);
        }
        let prompts = if wants("promptsListChanged") { prompts_now(served)? } else { None };
        let wants_list = wants("resourcesListChanged");
        let list = if wants_list { list_now(served)? } else { None };
        let mut taken = json!({});
        if prompts.is_some() {
            taken["promptsListChanged"] = true.into();
        }
        if wants_list {
            taken["resourcesListChanged"] = true.into();
        }
        if !resources.is_empty() {
            taken["resourceSubscriptions"] = resources.keys().cloned().collect();
        }
        let mut state = self.lock();
        if let Some(prompts) = prompts {
            state.prompts.get_or_insert(prompts);
        }
        if let Some(list) = list {
            state.list.get_or_insert(list);
        }
        let params = json!({"_meta": {SUBSCRIPTION_ID: ticket.id}, "notifications": taken});
        ticket.out.put(notification("notifications/subscriptions/acknowledged", &params));
        let (client, out) = (ticket.client, ticket.out.clone());
        let subscription = Some(ticket.id.clone());
        let wants_prompts = prompts.is_some();
        state.listeners.push(Listener { client, subscription, out, wants_prompts, wants_list, resources });
        drop(state);
        // Who left meanwhile would not be looked for again.
        if ticket.is_cancelled() {
            self.end(ticket.client, &ticket.id);
        }
        self.changed.notify_all();
        Ok(())
    }

    /// Ends a stream; its request gets no answer.
    pub(crate) fn end(&self, client: u64, id: &Value) {
        let is_it = |listener: &Listener| listener.client == client && listener.subscription.as_ref() == Some(id);
        self.lock().listeners.retain(|listener| !is_it(listener));
    }

    /// Ends all streams of a client that is gone.
    pub(crate) fn leave(&self, client: u64) {
        self.lock().listeners.retain(|listener| listener.client != client);
    }

    /// Ends the thread, and returns the streams that are open: the id of each and where its answer goes.
    pub(crate) fn close(&self) -> Vec<(Value, Outbox)> {
        let mut state = self.lock();
        state.is_closed = true;
        let open = std::mem::take(&mut state.listeners);
        drop(state);
        self.changed.notify_all();
        open.into_iter().filter_map(|listener| Some((listener.subscription?, listener.out))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks once, and tells who has to be told.
    fn look(&self, served: &Served) -> Result<(), RpcError> {
        let generation = served.base().map(KnowledgeBase::generation).transpose().map_err(|error| internal(&error))?;
        let (uris, wants_prompts, wants_list, prompts_touched) = {
            let mut state = self.lock();
            let prompts_touched = std::mem::take(&mut state.prompts_touched);
            let is_base_new = std::mem::replace(&mut state.generation, generation) != generation;
            if !is_base_new && !prompts_touched && served.projects().is_none() {
                return Ok(());
            }
            let uris: Vec<String> =
                state.listeners.iter().flat_map(|listener| listener.resources.keys().cloned()).collect();
            let wants_prompts = state.listeners.iter().any(|listener| listener.wants_prompts);
            let wants_list = state.listeners.iter().any(|listener| listener.wants_list);
            (uris, wants_prompts && (is_base_new || prompts_touched), wants_list, prompts_touched)
        };
        // The stores are read without the lock, so that no request waits for it.
        let prompts = if wants_prompts { prompts_now(served)? } else { None };
        let list = if wants_list { list_now(served)? } else { None };
        let mut now = BTreeMap::new();
        for uri in uris {
            let known = known(served, &uri)?;
            now.insert(uri, known);
        }
        let mut state = self.lock();
        let differ = prompts.zip(state.prompts).is_some_and(|(now, before)| now != before);
        let are_prompts_new = prompts_touched || differ;
        state.prompts = prompts.or(state.prompts);
        let is_list_new = list.zip(state.list).is_some_and(|(now, before)| now != before);
        state.list = list.or(state.list);
        for listener in &mut state.listeners {
            if are_prompts_new && listener.wants_prompts {
                listener.tell("notifications/prompts/list_changed", json!({}));
            }
            if is_list_new && listener.wants_list {
                listener.tell("notifications/resources/list_changed", json!({}));
            }
            let mut changed = Vec::new();
            for (uri, before) in &mut listener.resources {
                if let Some(known) = now.get(uri).filter(|known| *known != before) {
                    before.clone_from(known);
                    changed.push(uri.clone());
                }
            }
            for uri in changed {
                listener.tell("notifications/resources/updated", json!({"uri": uri}));
            }
        }
        Ok(())
    }
}

impl State {
    /// Returns the listener that is a client of the older era.
    fn older(&mut self, client: &Connection) -> &mut Listener {
        let number = client.number();
        let at = self.listeners.iter().position(|listener| listener.is_older(number));
        let at = at.unwrap_or_else(|| {
            let (out, resources) = (client.outbox().clone(), BTreeMap::new());
            self.listeners.push(Listener {
                client: number,
                subscription: None,
                out,
                wants_prompts: false,
                wants_list: false,
                resources,
            });
            self.listeners.len() - 1
        });
        &mut self.listeners[at]
    }
}

impl Listener {
    /// Says whether this is the client of the older era with this number.
    const fn is_older(&self, client: u64) -> bool {
        self.client == client && self.subscription.is_none()
    }

    /// Says whether there is anything left to tell of.
    fn wants_anything(&self) -> bool {
        self.wants_prompts || self.wants_list || !self.resources.is_empty()
    }

    fn tell(&self, method: &str, mut params: Value) {
        if let Some(id) = &self.subscription {
            params["_meta"] = json!({SUBSCRIPTION_ID: id});
        }
        self.out.put(notification(method, &params));
    }
}

/// Returns what is known of a resource now.
fn known(served: &Served, uri: &str) -> Result<Option<String>, RpcError> {
    if let Some((store, resource)) = served.projects().zip(ProjectResource::parse(uri)) {
        return resource.fingerprint(store).map_err(|error| internal(&error));
    }
    match served.base().zip(Resource::parse(uri)) {
        Some((base, resource)) => resource.fingerprint(base).map_err(|error| internal(&error)),
        None => Ok(None),
    }
}

/// Returns the list of prompts as a number; `None` where there is no such list.
fn prompts_now(served: &Served) -> Result<Option<u64>, RpcError> {
    served.base().map(prompts::fingerprint).transpose().map_err(|error| internal(&error))
}

/// Returns the list of resources as a number; `None` where there is no such list.
fn list_now(served: &Served) -> Result<Option<u64>, RpcError> {
    served.projects().map(list_fingerprint).transpose().map_err(|error| internal(&error))
}
