//! `relay verify` and `relay repair` of the real program: what they print, how they end, and that a repaired folder serves.

mod support;

use std::fs;
use std::os::unix::fs::FileExt;

use support::Data;
use support::server::{Server, relay, stored};

/// A server's data: `folded` messages in the history, and as many `behind` it in the log.
fn data_of(folded: usize, behind: usize) -> Data {
    let data = Data::new();
    for (count, is_stopped) in [(folded, true), (behind, false)] {
        let server = Server::start(&data, &[]);
        let mut ada = server.join("ada", "lounge");
        for number in 0..count {
            let text = format!("{number} {}", "x".repeat(2000));
            ada.say(&format!("MSG {text}"));
            ada.hears(&format!("MESSAGE ada {text}"));
        }
        if is_stopped { server.stop() } else { server.kill() }
    }
    data
}

fn flip(data: &Data, name: &str, offset: u64) {
    let file = fs::File::options().read(true).write(true).open(data.path().join(name)).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 1], offset).unwrap();
}

/// Runs a command on the folder; returns its exit code and what it printed.
fn run(data: &Data, command: &str, more: &[&str]) -> (Option<i32>, String) {
    let folder = data.path();
    let ended = relay(data, &[&[command], more, &["--data", folder.to_str().unwrap()]].concat());
    (ended.code, format!("{}{}", ended.output, ended.log))
}

#[test]
fn an_intact_folder_is_right_beside_a_server_after_a_kill_and_when_stopped() {
    let data = data_of(20, 5);
    let (code, text) = run(&data, "verify", &[]);
    assert!(code == Some(0) && text.contains("everything is right") && text.contains("25 messages of 1 rooms"), "{text}");
    let server = Server::start(&data, &[]);
    let mut ada = server.join("ada", "lounge");
    ada.say("MSG beside");
    ada.hears("MESSAGE ada beside");
    let (code, text) = run(&data, "verify", &["--json"]);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &report["finding_count"], &report["message_count"]), (Some(0), &0.into(), &26.into()), "{text}");
    server.stop();
    let (code, text) = run(&data, "repair", &[]);
    assert!(code == Some(0) && text.contains("there is nothing to repair"), "{text}");
}

#[test]
fn damage_in_the_history_is_found_repaired_and_the_original_is_kept() {
    let data = data_of(60, 3);
    let before = stored(&data, "lounge");
    assert_eq!(before.len(), 63);
    let page_count = fs::metadata(data.path().join("history.db")).unwrap().len() / 4096;
    // A page in the middle of the segments.
    flip(&data, "history.db", page_count / 2 * 4096 + 100);
    let (code, text) = run(&data, "verify", &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&format!("at offset {}", page_count / 2 * 4096)) && text.contains("run `relay repair --data "), "{text}");
    let (code, text) = run(&data, "verify", &["--json"]);
    assert_eq!(code, Some(1));
    assert!(serde_json::from_str::<serde_json::Value>(&text).unwrap()["finding_count"].as_u64().unwrap() > 0);

    let (code, text) = run(&data, "repair", &[]);
    // The log still has what the page had.
    let kept = ["no message would be lost", "63 messages would be kept", "`--write`"];
    assert!(code == Some(1) && kept.iter().all(|words| text.contains(words)), "{text}");
    assert!(!data.beside("relay-data.damaged-1").exists());
    let (code, text) = run(&data, "repair", &["--write"]);
    assert!(code == Some(0) && text.contains("no message is lost") && text.contains("relay-data.damaged-1"), "{text}");
    assert!(data.beside("relay-data.damaged-1/history.db").exists());
    assert!(!data.beside("relay-data.repair-1").exists());

    let (code, text) = run(&data, "verify", &[]);
    assert_eq!(code, Some(0), "{text}");
    let after = stored(&data, "lounge");
    assert_eq!(after, before);
    let server = Server::start(&data, &[]);
    let mut ada = server.join("ada", "lounge");
    assert_eq!(ada.history(), after[after.len().saturating_sub(50)..]);
    ada.say("MSG on");
    ada.hears("MESSAGE ada on");
    server.stop();
    assert_eq!(stored(&data, "lounge").len(), after.len() + 1);
}

#[test]
fn a_repair_beside_a_server_is_refused_and_a_folder_that_is_not_there_is_named() {
    let data = Data::new();
    for command in ["verify", "repair"] {
        let (code, text) = run(&data, command, &[]);
        assert!(code == Some(1) && text.contains("there is no data in"), "{text}");
        assert!(!data.path().exists());
    }
    let server = Server::start(&data, &[]);
    let (code, text) = run(&data, "repair", &["--write"]);
    assert!(code == Some(1) && text.contains("another relay"), "{text}");
    server.stop();
}

#[test]
fn what_start_refuses_is_found_as_well() {
    let data = data_of(1, 1);
    fs::write(data.path().join("notes"), "").unwrap();
    let (code, text) = run(&data, "verify", &[]);
    assert!(code == Some(1) && text.contains("notes"), "{text}");
}
