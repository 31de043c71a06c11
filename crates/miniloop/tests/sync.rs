//! What tasks of one thread share: the promises of `miniloop::sync`, one file per subject (C123 to C138).
//!
//! Read `sync/by_hand.rs` first: most tests poll futures by hand, so that they decide who runs when. `sync/dropping.rs` drops every waiting
//! operation at every moment, `sync/models.rs` compares with models on random operations.

mod support;

#[path = "sync/by_hand.rs"]
mod by_hand;
#[path = "sync/channels.rs"]
mod channels;
#[path = "sync/common.rs"]
mod common;
#[path = "sync/condvars.rs"]
mod condvars;
#[path = "sync/dropping.rs"]
mod dropping;
#[path = "sync/dropping_values.rs"]
mod dropping_values;
#[path = "sync/foreign.rs"]
mod foreign;
#[path = "sync/locks.rs"]
mod locks;
#[path = "sync/model_permits.rs"]
mod model_permits;
#[path = "sync/model_queues.rs"]
mod model_queues;
#[path = "sync/models.rs"]
mod models;
#[path = "sync/queues.rs"]
mod queues;
