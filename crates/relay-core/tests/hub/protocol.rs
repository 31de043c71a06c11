//! The tables of the line protocol: what a client sends and what it is answered, row by row.

use crate::world::check;

#[test]
fn anything_else_before_joining_is_told_what_is_expected() {
    let lines = ["", " ", "MSG hello", "HISTORY", "PONG", "QUIT", "JOIN", "JOIN alice", "JOIN alice blue now", "join alice blue", "hello"];
    for line in lines {
        check(&format!(
            "
        > alice {line}
        < alice ERR expected JOIN <name> <room>
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        "
        ));
    }
}

#[test]
fn anything_else_after_joining_is_told_what_is_expected() {
    let lines = ["", "\t", "MSG", "MSG  \t", "JOIN alice blue", "QUIT now", "HISTORY 5", "PONG 1", "msg hello", "GET / HTTP/1.1", "hello"];
    for line in lines {
        check(&format!(
            "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > alice {line}
        < alice ERR expected MSG <text>, HISTORY, or QUIT
        "
        ));
    }
}

#[test]
fn white_space_is_space_and_tab_and_the_text_of_a_message_keeps_its_own() {
    check(
        r"
        >> alice  \tJOIN\t alice \tblue \r\n
        < alice OK JOIN alice blue
        >> alice \t MSG \t two  words \t\r\n
        commit
        < alice MESSAGE alice two  words \t
        ",
    );
}

#[test]
fn history_is_the_last_fifty_messages_oldest_first() {
    check(
        "
        stored blue MESSAGE old 1
        stored blue MESSAGE old 2
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > alice HISTORY
        < alice HISTORY_BEGIN 2
        < alice MESSAGE old 1
        < alice MESSAGE old 2
        < alice HISTORY_END
        48 * > alice MSG same
        commit
        48 * < alice MESSAGE alice same
        > alice MSG last
        commit
        < alice MESSAGE alice last
        > alice HISTORY
        < alice HISTORY_BEGIN 50
        < alice MESSAGE old 2
        48 * < alice MESSAGE alice same
        < alice MESSAGE alice last
        < alice HISTORY_END
        > bob JOIN bob green
        < bob OK JOIN bob green
        > bob HISTORY
        < bob HISTORY_BEGIN 0
        < bob HISTORY_END
        ",
    );
}

#[test]
fn history_outlives_the_members() {
    check(
        "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > alice MSG hello
        lose alice
        closed alice connection lost
        commit
        > bob JOIN bob blue
        < bob OK JOIN bob blue
        > bob HISTORY
        < bob HISTORY_BEGIN 1
        < bob MESSAGE alice hello
        < bob HISTORY_END
        ",
    );
}

#[test]
fn pong_is_not_answered() {
    check(
        "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > alice PONG
        >> alice  PONG \\t\\n
        silent alice
        ",
    );
}

#[test]
fn quit_is_answered_then_the_connection_is_closed_and_the_name_is_free() {
    check(
        "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        >> alice QUIT\\nMSG too late\\n
        < alice OK QUIT
        closed alice quit
        > other JOIN alice blue
        < other OK JOIN alice blue
        ",
    );
}

#[test]
fn quit_flushes_everything_before_it_closes() {
    check(
        "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        kernel alice 10
        > alice HISTORY
        > alice QUIT
        kernel alice 20
        kernel alice all
        < alice HISTORY_BEGIN 0
        < alice HISTORY_END
        < alice OK QUIT
        closed alice quit
        ",
    );
}

#[test]
fn a_quitter_that_takes_nothing_is_given_up() {
    check(
        "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        kernel alice 0
        > alice QUIT
        +9999ms
        silent alice
        +1ms
        reset alice flush timeout
        finished
        ",
    );
}

#[test]
fn invalid_text_is_dropped_and_the_connection_lives() {
    for text in [r"\x00", r"\x1b[31m", r"\x7f", r"a\rb", r"\xc2\x85", r"\xff", r"\xc3", r"\xed\xa0\x80"] {
        check(&format!(
            r"
        >> alice JOIN {text} blue\n
        < alice ERR invalid text
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        >> alice MSG {text}\n
        < alice ERR invalid text
        "
        ));
    }
}

#[test]
fn the_longest_line_is_a_message_and_a_longer_one_is_not() {
    let text = "x".repeat(4096 - "MSG ".len());
    check(&format!(
        r"
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        >> alice MSG {text}\r\nMSG {text}\n
        commit
        2 * < alice MESSAGE alice {text}
        >> alice MSG {text}xx
        < alice ERR line too long
        >> alice {text}{text}
        >> alice \nMSG {text}x\r\nMSG {text}x\nMSG hello\n
        2 * < alice ERR line too long
        commit
        < alice MESSAGE alice hello
        "
    ));
}

#[test]
fn a_browser_is_not_answered() {
    for verb in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PRI"] {
        check(&format!(
            r"
        >> browser  {verb} / HTTP/1.1\r\nHost: localhost\r\n\r\nJOIN alice blue\n
        silent browser
        closed browser http
        "
        ));
    }
}

#[test]
fn checks_are_made_in_their_order() {
    let long = "x".repeat(4096);
    check(&format!(
        r"
        # Length before text: and so much is too much before JOIN.
        >> alice GET \x00{long}\n
        < alice ERR line too long
        < alice ERR too much before JOIN
        closed alice too much before JOIN
        # Text before HTTP.
        >> bob GET \x00\n
        < bob ERR invalid text
        # Words before the name, the name before the room, the room before its members.
        > bob JOIN / / /
        < bob ERR expected JOIN <name> <room>
        > bob JOIN / /
        < bob ERR invalid name
        > bob JOIN bob /
        < bob ERR invalid room
        > bob JOIN bob blue
        < bob OK JOIN bob blue
        > carol JOIN bob /
        < carol ERR invalid room
        > carol JOIN bob blue
        < carol ERR name in use
        "
    ));
}

#[test]
fn names_have_letters_digits_marks_and_three_signs() {
    let longest = "ä".repeat(32);
    let longest_room = "ä".repeat(64);
    for (name, room, answer) in [
        ("Zoë_1.-", "हिन्दी", "OK JOIN Zoë_1.- हिन्दी"),
        (&longest, &longest_room, &format!("OK JOIN {longest} {longest_room}")),
        (&format!("{longest}a"), "blue", "ERR invalid name"),
        ("a", &format!("{longest_room}a"), "ERR invalid room"),
        ("a/b", "blue", "ERR invalid name"),
        ("a", "../blue", "ERR invalid room"),
        ("\u{301}a", "blue", "ERR invalid name"),
        ("😀", "blue", "ERR invalid name"),
    ] {
        check(&format!(
            "
        > alice JOIN {name} {room}
        < alice {answer}
        "
        ));
    }
}

#[test]
fn a_name_is_used_once_in_a_room_and_compared_byte_for_byte() {
    check(
        "
        > a JOIN alice blue
        < a OK JOIN alice blue
        > b JOIN alice blue
        < b ERR name in use
        > b JOIN Alice blue
        < b OK JOIN Alice blue
        > c JOIN alice green
        < c OK JOIN alice green
        end a
        closed a end of input
        > d JOIN alice blue
        < d OK JOIN alice blue
        ",
    );
}

#[test]
fn without_a_join_in_time_the_connection_is_closed() {
    check(
        "
        >> alice JOIN alice blu
        > bob hello
        < bob ERR expected JOIN <name> <room>
        +29999ms
        silent alice
        +1ms
        < alice ERR join timeout
        closed alice join timeout
        < bob ERR join timeout
        closed bob join timeout
        finished
        ",
    );
    check(
        "
        settings heartbeat off
        >> alice JOIN alice blu
        # The rest comes together with the deadline.
        +30s >> alice e\\n
        < alice OK JOIN alice blue
        +3600s
        silent alice
        ",
    );
}

#[test]
fn too_much_before_join_is_closed() {
    // 512 lines of 8 bytes are just allowed.
    check(
        "
        512 * > alice 1234567
        512 * < alice ERR expected JOIN <name> <room>
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        ",
    );
    check(
        r"
        256 * > alice JOIN a
        256 * < alice ERR expected JOIN <name> <room>
        256 * >> alice 123456\xff\n
        256 * < alice ERR invalid text
        # 256 x 7 + 256 x 8 bytes so far, then 256 more, then one.
        256 * > alice
        256 * < alice ERR expected JOIN <name> <room>
        >> alice \nJOIN alice blue\n
        < alice ERR expected JOIN <name> <room>
        < alice ERR too much before JOIN
        closed alice too much before JOIN
        ",
    );
}
