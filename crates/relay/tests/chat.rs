//! People talk through the real server with the netcat that they have.

mod support;

use support::client::Client;
use support::server::{Server, stored};
use support::{Data, is_missing};

#[test]
fn two_people_chat_through_nc_and_notice_nobody_who_is_silent_slow_to_type_or_gone() {
    if is_missing("nc") {
        return;
    }
    let data = Data::new();
    let server = Server::start(&data, &[]);
    let mut ada = Client::nc(server.address);
    let mut bob = Client::nc(server.address);
    ada.say("JOIN ada lounge");
    ada.hears("OK JOIN ada lounge");
    bob.say("JOIN bob lounge");
    bob.hears("OK JOIN bob lounge");

    let _says_nothing = Client::nc(server.address);
    let mut joins_and_says_nothing = Client::nc(server.address);
    joins_and_says_nothing.say("JOIN eve lounge");
    joins_and_says_nothing.hears("OK JOIN eve lounge");
    let mut types_slowly = server.join("dan", "lounge");
    types_slowly.send(b"MSG I have not ma");
    server.join("gus", "lounge").reset();
    let mut breaks_off = server.join("kim", "lounge");
    breaks_off.send(b"MSG I was say");
    breaks_off.reset();

    ada.say("MSG hello bob");
    ada.hears("MESSAGE ada hello bob");
    bob.hears("MESSAGE ada hello bob");
    bob.say("MSG  hello   ada ");
    bob.hears("MESSAGE bob hello   ada ");
    ada.hears("MESSAGE bob hello   ada ");

    types_slowly.say("de up my mind");
    for client in [&mut ada, &mut bob] {
        client.hears("MESSAGE dan I have not made up my mind");
        assert_eq!(client.history().len(), 3);
    }
    let said = ["MESSAGE ada hello bob", "MESSAGE bob hello   ada ", "MESSAGE dan I have not made up my mind"];
    for line in said {
        joins_and_says_nothing.hears(line);
    }
    assert_eq!(stored(&data, "lounge"), said);
    ada.say("QUIT");
    ada.hears("OK QUIT");
    bob.hears_nothing();
    server.stop();
}

#[test]
fn ok_quit_means_that_everything_before_it_is_stored() {
    let data = Data::new();
    let server = Server::start(&data, &[]);
    let mut ada = server.join("ada", "lounge");
    let commands: String = (0..1_000).map(|number| format!("MSG {number}\n")).collect();
    ada.send(format!("{commands}HISTORY\nQUIT\n").as_bytes());
    let (heard, _) = ada.hears_to_the_end();
    let said: Vec<String> = (0..1_000).map(|number| format!("MESSAGE ada {number}")).collect();
    let history = [&["HISTORY_BEGIN 50".to_owned()], &said[950..], &["HISTORY_END".to_owned(), "OK QUIT".to_owned()]].concat();
    assert_eq!(heard, [said.as_slice(), &history].concat());
    server.kill();
    assert_eq!(stored(&data, "lounge"), said);
}

#[test]
fn what_comes_after_quit_destroys_nothing_that_is_on_its_way() {
    const MESSAGES: usize = 400;
    let data = Data::new();
    let server = Server::start(&data, &[]);
    let mut ada = server.join("ada", "lounge");
    let text = "x".repeat(1_000);
    let commands: String = (0..MESSAGES).map(|number| format!("MSG {number} {text}\n")).collect();
    ada.send(commands.as_bytes());
    ada.send(b"QUIT\n");
    ada.hears(&format!("MESSAGE ada 0 {text}"));
    for _ in 0..100 {
        // The server has closed its side at some time in here, and most is in the kernel's hands.
        ada.try_send(b"PONG\n");
    }
    let (heard, _) = ada.hears_to_the_end();
    assert_eq!((heard.len(), heard.last().map(String::as_str)), (MESSAGES, Some("OK QUIT")));
}

#[test]
fn who_ends_his_side_is_still_answered() {
    let data = Data::new();
    let server = Server::start(&data, &[]);
    let mut ada = Client::connect(server.address);
    ada.send(b"JOIN ada lounge\nMSG hello\nHISTORY\n");
    ada.end_input();
    let (heard, _) = ada.hears_to_the_end();
    assert_eq!(heard, ["OK JOIN ada lounge", "MESSAGE ada hello", "HISTORY_BEGIN 1", "MESSAGE ada hello", "HISTORY_END"]);
}

#[test]
fn rooms_do_not_hear_each_other_and_a_name_is_free_when_its_owner_has_gone() {
    let data = Data::new();
    let server = Server::start(&data, &[]);
    let mut ada = server.join("ada", "lounge");
    let mut other_ada = server.join("ada", "kitchen");
    ada.say("MSG hello");
    ada.hears("MESSAGE ada hello");
    other_ada.hears_nothing();
    let mut third = Client::connect(server.address);
    third.say("JOIN ada lounge");
    third.hears("ERR name in use");
    ada.quit();
    third.say("JOIN ada lounge");
    third.hears("OK JOIN ada lounge");
}
