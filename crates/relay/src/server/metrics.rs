//! Everything that an operator may want to know of a running server, in one place.
//!
//! The hub counts what happens in the chat, and this what happens between it and the disk. Adding to it costs the commit path four
//! histogram entries per commit, a few nanoseconds each; nothing is computed before somebody asks. Time is the loop's. Names are those of
//! Prometheus. Next: `state.rs`.

use relay_core::{CloseReason, Counters, Hub};

use super::backlog::Backlog;
use crate::histogram::Histogram;
use crate::output;

#[derive(Debug, Default)]
pub(super) struct Metrics {
    /// From giving a batch to the commit worker to having it back.
    pub(super) commit_ns: Histogram,
    pub(super) commit_messages: Histogram,
    pub(super) commit_log_bytes: Histogram,
    /// Batches that were not stored, whoever refused them.
    pub(super) commits_refused: u64,
    /// How long commits waited because much is unfolded; those that did not wait are not in it.
    pub(super) commit_delay_ns: Histogram,
    /// Those of them that waited at the bound.
    pub(super) commits_delayed_at_bound: u64,
    /// How often commits began to be slowed.
    pub(super) slow_episodes: u64,
    /// From asking the archive worker for a history to having it.
    pub(super) load_ns: Histogram,
    /// One piece of the archive's work, with the loads that went before it.
    pub(super) work_ns: Histogram,
    pub(super) folded_bytes: u64,
    /// Pieces of work that found the disk full.
    pub(super) archive_full: u64,
    /// Pieces of work that failed for good.
    pub(super) archive_failed: u64,
    /// Connections that had no place to wait until their client had our last words.
    pub(super) not_lingered: u64,
}

impl Metrics {
    /// One line for each number: its name and its value, in columns.
    pub(super) fn text(&self, hub: &Hub, backlog: &Backlog, lingering_len: usize) -> String {
        let mut table = Table::default();
        self.connections(&mut table, hub, lingering_len);
        chat(&mut table, hub);
        self.commits(&mut table, hub);
        self.archive(&mut table, hub, backlog);
        table.add("relay_log_lines_lost_total", output::lost_total());
        table.text()
    }

    fn connections(&self, table: &mut Table, hub: &Hub, lingering_len: usize) {
        let counters = hub.counters();
        table.add("relay_connections_open", hub.connection_count() as u64);
        table.add("relay_connections_open_bound", hub.connections_max() as u64);
        table.add("relay_connections_lingering", lingering_len as u64);
        table.add("relay_connections_not_lingered_total", self.not_lingered);
        table.add("relay_connections_total", counters.connections);
        table.add_for("relay_connections_refused_total", "server full", counters.refused_server_full);
        table.add_for("relay_connections_refused_total", "address full", counters.refused_address_full);
        for reason in CloseReason::ALL {
            table.add_for("relay_connections_closed_total", reason.as_str(), counters.closed_for(reason));
        }
    }

    fn commits(&self, table: &mut Table, hub: &Hub) {
        table.add("relay_uncommitted_bytes", hub.uncommitted_len_bytes() as u64);
        table.add("relay_commits_total", hub.counters().commits);
        table.add("relay_commits_refused_total", self.commits_refused);
        table.add_seconds("relay_commit_seconds", &self.commit_ns);
        table.add_spread("relay_commit_messages", &self.commit_messages, |messages| messages.to_string());
        table.add_spread("relay_commit_log_bytes", &self.commit_log_bytes, |bytes| bytes.to_string());
        table.add("relay_commits_slowed_episodes_total", self.slow_episodes);
        table.add("relay_commits_delayed_at_bound_total", self.commits_delayed_at_bound);
        table.add_seconds("relay_commit_delay_seconds", &self.commit_delay_ns);
    }

    fn archive(&self, table: &mut Table, hub: &Hub, backlog: &Backlog) {
        table.add("relay_unfolded_bytes", backlog.unfolded_bytes());
        table.add("relay_unfolded_peak_bytes", backlog.unfolded_peak_bytes());
        table.add("relay_unfolded_bound_bytes", backlog.bytes_max());
        table.add("relay_folded_bytes_total", self.folded_bytes);
        table.add("relay_fold_pace_bytes_per_second", backlog.pace_bytes_per_second());
        table.add_seconds("relay_archive_work_seconds", &self.work_ns);
        table.add_for("relay_archive_errors_total", "full", self.archive_full);
        table.add_for("relay_archive_errors_total", "failed", self.archive_failed);
        table.add_for("relay_archive_errors_total", "load", hub.counters().loads_failed);
        table.add_seconds("relay_history_load_seconds", &self.load_ns);
    }
}

/// What the hub has counted, but for connections. A counter that is new to it is missed here by the compiler.
fn chat(table: &mut Table, hub: &Hub) {
    let Counters {
        connections: _,
        refused_server_full: _,
        refused_address_full: _,
        joins,
        messages_accepted,
        messages_committed,
        messages_refused,
        deliveries,
        commits: _,
        lines_too_long,
        lines_invalid,
        pauses_for_commits,
        pauses_for_answers,
        pauses_for_rate,
        pauses_for_outbox,
        pauses_for_history,
        rooms_loaded,
        loads_failed: _,
        rooms_forgotten,
        pings,
        closed: _,
    } = *hub.counters();
    table.add("relay_rooms_in_memory", hub.room_count() as u64);
    table.add("relay_rooms_loaded_total", rooms_loaded);
    table.add("relay_rooms_forgotten_total", rooms_forgotten);
    table.add("relay_joins_total", joins);
    table.add("relay_messages_accepted_total", messages_accepted);
    table.add("relay_messages_committed_total", messages_committed);
    table.add("relay_messages_refused_total", messages_refused);
    table.add("relay_deliveries_total", deliveries);
    table.add_for("relay_lines_refused_total", "too long", lines_too_long);
    table.add_for("relay_lines_refused_total", "invalid", lines_invalid);
    table.add_for("relay_pauses_total", "commits", pauses_for_commits);
    table.add_for("relay_pauses_total", "answers", pauses_for_answers);
    table.add_for("relay_pauses_total", "rate", pauses_for_rate);
    table.add_for("relay_pauses_total", "outbox", pauses_for_outbox);
    table.add_for("relay_pauses_total", "history", pauses_for_history);
    table.add("relay_pings_total", pings);
}

#[derive(Default)]
struct Table {
    lines: Vec<(String, String)>,
}

impl Table {
    fn add(&mut self, name: &str, value: u64) {
        self.lines.push((name.to_owned(), value.to_string()));
    }

    fn add_for(&mut self, name: &str, reason: &str, value: u64) {
        self.add(&format!("{name}{{reason=\"{reason}\"}}"), value);
    }

    fn add_seconds(&mut self, name: &str, ns: &Histogram) {
        self.add_spread(name, ns, |ns| format!("{:.6}", ns as f64 / 1e9));
    }

    fn add_spread(&mut self, name: &str, values: &Histogram, show: impl Fn(u64) -> String) {
        for quantile in [0.5, 0.9, 0.99, 0.999] {
            self.lines.push((format!("{name}{{quantile=\"{quantile}\"}}"), show(values.quantile(quantile))));
        }
        self.lines.push((format!("{name}_max"), show(values.max())));
        self.lines.push((format!("{name}_sum"), show(values.sum())));
        self.add(&format!("{name}_count"), values.count());
    }

    fn text(&self) -> String {
        let width = self.lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        self.lines.iter().map(|(name, value)| format!("{name:width$} {value}\n")).collect()
    }
}
