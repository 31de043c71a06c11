//! `relay backup` of the real program, beside a server that goes on.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use support::Data;
use support::server::{Server, relay, stored};

#[test]
fn a_backup_beside_a_running_server_serves_what_was_said() {
    let data = Data::new();
    let (folder, target) = (data.path(), data.beside("copy"));
    let arguments = ["backup", target.to_str().unwrap(), "--data", folder.to_str().unwrap()];
    let missing = relay(&data, &arguments);
    assert!(missing.code == Some(1) && missing.log.contains("there is no data in"), "{}", missing.log);

    let server = Server::start(&data, &[]);
    let mut ada = server.join("ada", "lounge");
    let said: Vec<String> = (0..100).map(|number| format!("MESSAGE ada {number}")).collect();
    for (number, line) in said.iter().enumerate() {
        ada.say(&format!("MSG {number}"));
        ada.hears(line);
    }
    let ended = relay(&data, &arguments);
    assert_eq!((ended.code, &*ended.log), (Some(0), ""));
    assert!(ended.output.contains("everything is right") && ended.output.contains("100 messages"), "{}", ended.output);
    ada.say("MSG later");
    ada.hears("MESSAGE ada later");
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(target.join("history.db")).unwrap().permissions().mode() & 0o777, 0o600);

    // The copy is a data folder of its own.
    let copy = Data::new();
    fs::rename(&target, copy.path()).unwrap();
    assert_eq!(stored(&copy, "lounge"), said);
    let second = Server::start(&copy, &[]);
    let mut bob = second.join("bob", "lounge");
    assert_eq!(bob.history(), said[50..]);
    second.stop();
    server.stop();

    let full = relay(&data, &["backup", copy.path().to_str().unwrap(), "--data", folder.to_str().unwrap()]);
    assert!(full.code == Some(1) && full.log.contains("is there already"), "{}", full.log);
    assert_eq!(stored(&copy, "lounge"), said, "it is as it was");
}
