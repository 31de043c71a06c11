//! What `relay` says to the person at the terminal, and what it refuses.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use support::Data;
use support::server::{Server, relay, stored};

/// Runs `relay` and checks that it fails and says this.
#[track_caller]
fn check_refused(data: &Data, arguments: &[&str], expected: &[&str]) {
    let ended = relay(data, arguments);
    assert!(ended.code.is_some_and(|code| code != 0), "{ended:?}");
    for text in expected {
        assert!(ended.log.contains(text), "no `{text}` in {}", ended.log);
    }
    assert!(!ended.log.contains("panicked"), "{}", ended.log);
}

#[track_caller]
fn check_prints(arguments: &[&str], expected: &[&str]) {
    let ended = relay(&Data::new(), arguments);
    assert_eq!((ended.code, ended.log.as_str()), (Some(0), ""));
    for text in expected {
        assert!(ended.output.contains(text), "no `{text}` in {}", ended.output);
    }
}

#[test]
fn help_and_version_are_printed() {
    check_prints(&["--version"], &[concat!("relay ", env!("CARGO_PKG_VERSION"), "\n")]);
    check_prints(&["--help"], &["serve", "history", "--help"]);
    check_prints(
        &["serve", "--help"],
        &["--listen", "127.0.0.1:8000", "--http", "127.0.0.1:8080", "--data", "./relay-data", "--open", "10s", "5s", "--log", "info"],
    );
    check_prints(&["history", "--help"], &["ROOM", "--data"]);
}

#[test]
fn the_greeting_says_where_it_listens_where_the_data_is_and_what_to_type() {
    let data = Data::new();
    let server = Server::start(&data, &[]);
    let (address, folder) = (server.address, data.path());
    server.signal(rustix::process::Signal::TERM);
    let greeting = format!("{}\n{}", server.greeting.clone(), server.ended().output);
    for text in [&address.to_string(), &format!("nc {} {}", address.ip(), address.port()), folder.to_str().unwrap(), "JOIN", "MSG"] {
        assert!(greeting.contains(text), "no `{text}` in {greeting}");
    }
}

#[test]
fn a_web_address_is_accepted_and_said_to_be_not_served_yet() {
    let data = Data::new();
    let server = Server::start(&data, &["--http", "127.0.0.1:0"]);
    server.signal(rustix::process::Signal::TERM);
    let output = server.ended().output;
    assert!(output.contains("not served yet"), "{output}");
}

#[test]
fn a_second_server_on_the_same_folder_or_port_is_refused_with_the_way_out() {
    let data = Data::new();
    let server = Server::start(&data, &[]);
    let (pid, folder) = (server.pid().to_string(), data.path());
    let same_folder = ["serve", "--listen", "127.0.0.1:0", "--data", folder.to_str().unwrap()];
    check_refused(&data, &same_folder, &["another relay", &pid, folder.to_str().unwrap(), "--data"]);
    let other = Data::new();
    let address = server.address.to_string();
    check_refused(&other, &["serve", "--listen", &address, "--data", other.path().to_str().unwrap()], &[&address, "--listen"]);
    server.join("ada", "lounge").quit();
}

#[test]
fn a_folder_that_others_can_read_is_refused_with_the_chmod_to_run() {
    let data = Data::new();
    let folder = data.path();
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let chmod = format!("chmod 700 {}", folder.display());
    check_refused(&data, &["serve", "--listen", "127.0.0.1:0", "--data", folder.to_str().unwrap()], &[&chmod]);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    Server::start(&data, &[]).stop();
}

#[test]
fn strangers_are_let_in_only_when_the_operator_says_so() {
    let data = Data::new();
    let folder = data.path();
    let folder = folder.to_str().unwrap();
    for address in ["0.0.0.0:0", "[::]:0"] {
        check_refused(&data, &["serve", "--listen", address, "--data", folder], &[address, "--open", "authentication"]);
    }
    assert!(!data.path().exists(), "nothing is made before it is refused");
}

#[test]
fn wrong_options_are_named_with_the_nearest_right_one() {
    let data = Data::new();
    check_refused(&data, &["serve", "--lisen", "127.0.0.1:0"], &["--lisen", "--listen"]);
    check_refused(&data, &["serve", "--heartbeat-interval", "10"], &["`10`", "`10s`"]);
    check_refused(&data, &["serve", "--listen", "127.0.0.1"], &["127.0.0.1", "--listen"]);
    check_refused(&data, &["sevre"], &["sevre", "serve"]);
}

#[test]
fn history_is_printed_beside_a_running_server_and_missing_rooms_are_named() {
    let data = Data::new();
    let folder = data.path();
    let folder = folder.to_str().unwrap();
    check_refused(&data, &["history", "lounge", "--data", folder], &["there is no data", folder, "--data"]);
    let server = Server::start(&data, &[]);
    let mut ada = server.join("ada", "lounge");
    let said: Vec<String> = (0..120).map(|number| format!("MESSAGE ada {number}")).collect();
    for (number, line) in said.iter().enumerate() {
        ada.say(&format!("MSG {number}"));
        ada.hears(line);
    }
    assert_eq!(stored(&data, "lounge"), said);
    check_refused(&data, &["history", "Lounge", "--data", folder], &["Lounge", "nothing is stored of room"]);
    ada.say("MSG one more");
    ada.hears("MESSAGE ada one more");
    assert_eq!(stored(&data, "lounge").len(), 121);
}

#[test]
fn a_restarted_server_has_the_last_fifty_messages_of_every_room() {
    let data = Data::new();
    let mut said: Vec<(String, Vec<String>)> = ["lounge", "kitchen"].map(|room| (room.to_owned(), Vec::new())).into();
    for start in 0..3 {
        let server = Server::start(&data, &["--log", "warn"]);
        for (room, said) in &mut said {
            let mut ada = server.join("ada", room);
            assert_eq!(ada.history(), said[said.len().saturating_sub(50)..]);
            for number in 0..40 {
                ada.say(&format!("MSG {start}/{number} in {room}"));
                said.push(format!("MESSAGE ada {start}/{number} in {room}"));
                ada.hears(said.last().unwrap());
            }
            assert_eq!(ada.history(), said[said.len().saturating_sub(50)..]);
        }
        if start == 1 { server.kill() } else { server.stop() }
    }
}
