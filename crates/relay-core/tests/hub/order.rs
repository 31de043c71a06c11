//! In which order answers and messages come, and what a commit has to do with it.

use crate::world::check;

#[test]
fn a_message_is_shown_to_its_room_once_it_is_committed_and_not_before() {
    check(
        "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > bob JOIN bob blue
        < bob OK JOIN bob blue
        > carol JOIN carol green
        < carol OK JOIN carol green
        > alice MSG one
        take
        > alice MSG two
        silent alice
        silent bob
        commit
        < alice MESSAGE alice one
        < bob MESSAGE alice one
        silent alice
        commit
        < alice MESSAGE alice two
        < bob MESSAGE alice two
        silent carol
        ",
    );
}

#[test]
fn answers_wait_behind_the_messages_of_their_connection_only() {
    check(
        r"
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > bob JOIN bob blue
        < bob OK JOIN bob blue
        >> alice MSG one\nhello\nMSG two\n\xff\n
        > bob hello
        < bob ERR expected MSG <text>, HISTORY, or QUIT
        silent alice
        commit
        < alice MESSAGE alice one
        < alice ERR expected MSG <text>, HISTORY, or QUIT
        < alice MESSAGE alice two
        < alice ERR invalid text
        < bob MESSAGE alice one
        < bob MESSAGE alice two
        ",
    );
}

#[test]
fn an_answer_waits_for_its_own_message_not_for_later_batches() {
    check(
        "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > bob JOIN bob blue
        < bob OK JOIN bob blue
        > alice MSG one
        take
        > bob MSG two
        > alice hello
        > alice MSG three
        > alice hello
        commit
        < alice MESSAGE alice one
        < alice ERR expected MSG <text>, HISTORY, or QUIT
        silent alice
        < bob MESSAGE alice one
        commit
        < alice MESSAGE bob two
        < alice MESSAGE alice three
        < alice ERR expected MSG <text>, HISTORY, or QUIT
        < bob MESSAGE bob two
        < bob MESSAGE alice three
        ",
    );
}

#[test]
fn history_holds_what_is_committed_before_it_and_the_rest_is_shown_behind_it() {
    check(
        "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > bob JOIN bob blue
        < bob OK JOIN bob blue
        > bob MSG early
        > alice MSG one
        > alice HISTORY
        > bob MSG late
        > alice MSG two
        > alice HISTORY
        # Bob's own history waits behind his last message.
        > bob HISTORY
        commit
        < alice MESSAGE bob early
        < alice MESSAGE alice one
        < alice HISTORY_BEGIN 2
        < alice MESSAGE bob early
        < alice MESSAGE alice one
        < alice HISTORY_END
        < alice MESSAGE bob late
        < alice MESSAGE alice two
        < alice HISTORY_BEGIN 4
        < alice MESSAGE bob early
        < alice MESSAGE alice one
        < alice MESSAGE bob late
        < alice MESSAGE alice two
        < alice HISTORY_END
        < bob MESSAGE bob early
        < bob MESSAGE alice one
        < bob MESSAGE bob late
        < bob HISTORY_BEGIN 3
        < bob MESSAGE bob early
        < bob MESSAGE alice one
        < bob MESSAGE bob late
        < bob HISTORY_END
        < bob MESSAGE alice two
        ",
    );
}

#[test]
fn history_without_own_messages_is_answered_at_once_from_what_is_committed() {
    check(
        "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > bob JOIN bob blue
        < bob OK JOIN bob blue
        > alice MSG one
        take
        > bob HISTORY
        < bob HISTORY_BEGIN 0
        < bob HISTORY_END
        commit
        < bob MESSAGE alice one
        < alice MESSAGE alice one
        ",
    );
}

#[test]
fn ok_quit_means_that_everything_is_on_disk_and_nothing_comes_after_it() {
    check(
        r"
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > bob JOIN bob blue
        < bob OK JOIN bob blue
        >> alice MSG one\nQUIT\nMSG ignored\n
        # She stays a member until then: her name is in use.
        > carol JOIN alice blue
        < carol ERR name in use
        > bob MSG two
        silent alice
        # Half-close after `QUIT` says nothing new.
        end alice
        commit
        < alice MESSAGE alice one
        < alice OK QUIT
        closed alice quit
        < bob MESSAGE alice one
        < bob MESSAGE bob two
        > carol JOIN alice blue
        < carol OK JOIN alice blue
        ",
    );
}

#[test]
fn members_at_the_commit_are_shown_a_message() {
    check(
        "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > bob JOIN bob blue
        < bob OK JOIN bob blue
        > alice MSG one
        lose alice
        closed alice connection lost
        end bob
        closed bob end of input
        > carol JOIN carol blue
        < carol OK JOIN carol blue
        commit
        < carol MESSAGE alice one
        ",
    );
}

#[test]
fn refused_messages_are_answered_one_by_one_in_their_places_and_nothing_is_shown() {
    for (error, answer) in [("full", "ERR storage full"), ("unavailable", "ERR storage unavailable")] {
        check(&format!(
            r"
        stored blue MESSAGE old 1
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > bob JOIN bob blue
        < bob OK JOIN bob blue
        > carol JOIN carol green
        < carol OK JOIN carol green
        >> alice MSG one\nMSG two\nhello\nMSG three\n
        > bob MSG other
        > carol MSG gone
        lose carol
        closed carol connection lost
        # One that has closed its side is told as well.
        > dave JOIN dave blue
        < dave OK JOIN dave blue
        >> dave MSG seven\nHISTORY\nMSG eight\n
        end dave
        >> alice MSG four\nHISTORY\nMSG five\n
        refuse {error}
        2 * < alice {answer}
        < alice ERR expected MSG <text>, HISTORY, or QUIT
        2 * < alice {answer}
        < alice HISTORY_BEGIN 1
        < alice MESSAGE old 1
        < alice HISTORY_END
        < alice {answer}
        < bob {answer}
        < dave {answer}
        < dave HISTORY_BEGIN 1
        < dave MESSAGE old 1
        < dave HISTORY_END
        < dave {answer}
        closed dave end of input
        # The next ones may be committed again.
        >> alice MSG six\nQUIT\n
        commit
        < alice MESSAGE alice six
        < alice OK QUIT
        closed alice quit
        < bob MESSAGE alice six
        "
        ));
    }
}

#[test]
fn after_a_refusal_quit_is_still_answered() {
    check(
        r"
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        >> alice MSG one\nQUIT\n
        refuse full
        < alice ERR storage full
        < alice OK QUIT
        closed alice quit
        finished
        ",
    );
}

#[test]
fn one_connection_is_refused_and_shown_batch_by_batch() {
    check(
        "
        > alice JOIN alice blue
        < alice OK JOIN alice blue
        > alice MSG one
        take
        > alice MSG two
        > alice hello
        refuse full
        < alice ERR storage full
        silent alice
        commit
        < alice MESSAGE alice two
        < alice ERR expected MSG <text>, HISTORY, or QUIT
        ",
    );
}
