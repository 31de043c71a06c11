//! What the program says about a log that is not whole, and that its advice is enough.

mod support;

use std::fs;
use std::os::unix::fs::FileExt;

use support::Data;
use support::server::{Server, relay, stored};

const RECORD_BYTES: u64 = 4096;

/// A server's data after four commits of one message each and `kill -9`.
fn killed_after_four_messages() -> Data {
    let data = Data::new();
    let server = Server::start(&data, &[]);
    let mut ada = server.join("ada", "lounge");
    for text in ["one", "two", "three", "four"] {
        ada.say(&format!("MSG {text}"));
        ada.hears(&format!("MESSAGE ada {text}"));
    }
    server.kill();
    data
}

fn overwrite(data: &Data, offset: u64, bytes: &[u8]) {
    let file = fs::File::options().write(true).open(data.path().join("log/00000001.log")).expect("there is a log");
    file.write_at(bytes, offset).expect("it is ours");
}

#[test]
fn an_interrupted_commit_is_dropped_with_a_warning_that_claims_no_more_than_is_known() {
    let data = killed_after_four_messages();
    overwrite(&data, 3 * RECORD_BYTES, &[0; 512]);
    // The rest of its record, as of a longer one.
    overwrite(&data, 3 * RECORD_BYTES + 512, b"x");
    let server = Server::start(&data, &[]);
    server.wait_for_log("parts of the last commit are missing, as after a crash");
    server.wait_for_log("nobody was shown its messages, unless the disk lost the parts later");
    server.stop();
    assert_eq!(stored(&data, "lounge"), ["MESSAGE ada one", "MESSAGE ada two", "MESSAGE ada three"]);
}

#[test]
fn a_flipped_bit_of_the_last_length_is_refused_and_following_the_advice_once_is_enough() {
    let data = killed_after_four_messages();
    // The body's length stands at 36; 0x80 in its second byte makes it longer than what was written.
    overwrite(&data, 3 * RECORD_BYTES + 37, &[0x80]);
    let folder = data.path();
    let folder = folder.to_str().expect("the path is text");
    let ended = relay(&data, &["serve", "--listen", "127.0.0.1:0", "--data", folder]);
    assert!(ended.code.is_some_and(|code| code != 0), "{ended:?}");
    assert!(ended.log.contains(&format!("`relay repair --data {folder}`")), "{}", ended.log);
    let repaired = relay(&data, &["repair", "--data", folder, "--write"]);
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    Server::start(&data, &[]).stop();
    assert_eq!(stored(&data, "lounge"), ["MESSAGE ada one", "MESSAGE ada two", "MESSAGE ada three"]);
}
