//! What relay-core does for each message and for each member that is shown one: the shell's turn, without a shell.
//!
//! Time stands still, and whatever is queued is taken at once. Read next: `main.rs`, or the table in `tests/bounds.rs`.

use std::net::{Ipv4Addr, SocketAddr};

use relay_core::{ConnectionId, Hub, Nanos, Settings};

const NOW: Nanos = Nanos(1);

/// Messages of somebody who is alone, 100 in a read: parsed, stored, shown.
pub(crate) fn parse(times: usize) {
    const AT_ONCE: usize = 100;
    let mut hub = Hub::new(Settings::default());
    let member = join(&mut hub, 0);
    let lines = message().repeat(AT_ONCE);
    for _ in 0..times / AT_ONCE {
        say(&mut hub, member, &lines);
    }
    assert_eq!(hub.counters().deliveries as usize, times / AT_ONCE * AT_ONCE);
}

/// One message after the other, each shown to 1,000 members.
pub(crate) fn fan_out(times: usize) {
    const MEMBERS: usize = 1_000;
    let mut hub = Hub::new(Settings::default());
    let members: Vec<ConnectionId> = (0..MEMBERS).map(|number| join(&mut hub, number)).collect();
    for _ in 0..times / MEMBERS {
        say(&mut hub, members[0], &message());
    }
    assert_eq!(hub.counters().deliveries as usize, times / MEMBERS * MEMBERS);
}

fn message() -> Vec<u8> {
    format!("MSG {}\n", "x".repeat(64)).into_bytes()
}

fn join(hub: &mut Hub, number: usize) -> ConnectionId {
    let id = hub.connect(NOW, SocketAddr::from((Ipv4Addr::LOCALHOST, 50_000))).expect("there is room");
    hub.receive(NOW, id, format!("JOIN member{number} lobby\n").as_bytes());
    write_all(hub);
    id
}

/// Has lines read, committed and shown to everybody.
fn say(hub: &mut Hub, id: ConnectionId, lines: &[u8]) {
    hub.receive(NOW, id, lines);
    hub.tick(NOW);
    let batch = hub.take_batch().expect("something was said");
    hub.committed(NOW, batch);
    write_all(hub);
}

/// Every connection takes what is queued for it.
fn write_all(hub: &mut Hub) {
    while let Some(touched) = hub.pop_touched() {
        let len_bytes = hub.outbox(touched.id).map(<[u8]>::len).sum();
        hub.sent(NOW, touched.id, len_bytes);
    }
}
