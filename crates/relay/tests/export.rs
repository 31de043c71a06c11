//! `relay export` of the real program.

mod support;

use support::Data;
use support::server::{Server, relay};

#[test]
fn a_room_is_exported_as_json_beside_a_running_server_and_after_it() {
    let data = Data::new();
    let folder = data.path();
    let folder = folder.to_str().unwrap();
    let server = Server::start(&data, &[]);
    let mut ada = server.join("ada", "lounge");
    for text in ["one", "a \"quoted\" \\ text", "three"] {
        ada.say(&format!("MSG {text}"));
        ada.hears(&format!("MESSAGE ada {text}"));
    }
    let beside = relay(&data, &["export", "lounge", "--data", folder]);
    server.stop();
    Server::start(&data, &[]).stop();
    let after = relay(&data, &["export", "lounge", "--data", folder]);
    assert_eq!((beside.code, &*beside.log), (Some(0), ""));
    assert_eq!(beside.output, after.output, "folded or not, it is the same");

    let lines: Vec<serde_json::Value> = after.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().map(|line| line["text"].as_str().unwrap()).collect::<Vec<_>>(), ["one", "a \"quoted\" \\ text", "three"]);
    for (number, line) in (1..).zip(&lines) {
        assert_eq!(line["id"], format!("{number}-0"));
        assert_eq!(line["name"], "ada");
        let time = line["time"].as_str().unwrap();
        assert!(time.len() == "2026-11-30T21:00:00.123Z".len() && time.ends_with('Z'), "{time}");
    }
    let missing = relay(&data, &["export", "Lounge", "--data", folder]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.log.contains("nothing is stored of room \"Lounge\""), "{}", missing.log);
}
