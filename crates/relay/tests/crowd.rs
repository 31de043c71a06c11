//! Thousands of people in many rooms, on the real server. The load checks what every single one of them sees.

mod support;

use support::bench::bench;
use support::server::{Server, relay};
use support::{Data, is_missing};

#[test]
fn five_thousand_people_in_a_hundred_rooms_see_each_message_once_and_in_order() {
    let data = Data::new();
    let server = Server::start(&data, &["--log", "warn"]);
    let report = bench(&server, "--rooms 100 --members 50 --senders 5 --window 4 --messages 20 --seed 2");
    assert_eq!((report.publishes, report.deliveries), (10_000, 500_000));
    server.stop();
}

#[test]
fn a_room_of_a_thousand_sees_one_order_of_what_forty_say_at_once() {
    let data = Data::new();
    let server = Server::start(&data, &["--log", "warn"]);
    let report = bench(&server, "--rooms 1 --members 1000 --senders 40 --window 8 --messages 25 --seed 3");
    assert_eq!((report.publishes, report.deliveries), (1_000, 1_000_000));
    server.stop();
}

#[test]
fn pipelines_of_thousands_of_messages_are_not_cut_and_fill_many_log_files() {
    let data = Data::new();
    let server = Server::start(&data, &["--log", "warn"]);
    // 140 MB of messages: two whole files and more.
    let report = bench(&server, "--rooms 10 --members 1 --senders 1 --window 2048 --messages 14000 --size 1000 --seed 4");
    assert_eq!(report.publishes, 140_000);
    assert!(data.path().join("log/00000003.log").exists());
    server.stop();
}

#[test]
fn whoever_comes_to_a_full_server_is_told_so() {
    if is_missing("prlimit") {
        return;
    }
    let data = Data::new();
    // 64 descriptors are kept back.
    let server = Server::start_under(&["prlimit", "--nofile=68:68"], &data, &[]);
    assert!(server.greeting.ends_with("for up to 4 clients"), "{}", server.greeting);
    let mut members: Vec<_> = (0..4).map(|number| server.join(&format!("m{number}"), "lounge")).collect();
    for _ in 0..100 {
        let refused = support::client::Client::connect(server.address).hears_to_the_end();
        assert_eq!(refused.0, ["ERR server full"]);
    }
    members.pop().expect("there are four").quit();
    members.push(server.join("m4", "lounge"));
    members[0].say("MSG we are complete");
    for member in &mut members {
        member.hears("MESSAGE m0 we are complete");
    }
    server.stop();
}

#[test]
fn connections_from_one_address_and_messages_of_one_client_can_be_limited() {
    let data = Data::new();
    let server = Server::start(&data, &["--connections-per-address", "2", "--messages-per-second", "1000000"]);
    let _ada = server.join("ada", "lounge");
    let bob = server.join("bob", "lounge");
    let refused = support::client::Client::connect(server.address).hears_to_the_end();
    assert_eq!(refused.0, ["ERR server full"]);
    bob.quit();
    server.join("eve", "lounge").say("MSG hello");
    let refused = relay(&data, &["serve", "--connections-per-address", "0"]);
    assert!(refused.code != Some(0) && refused.log.contains("--connections-per-address"), "{}", refused.log);
}
