//! What the engine must know of a server's protocol. One implementation for each kind of server. Next: `relay_codec.rs`, the shortest.

/// A server's protocol: how the engine's members speak it, and how they hear it.
///
/// It is asked for bytes once for each member, and cuts what comes into [`Event`]s. It keeps nothing between calls, since all members of a
/// run share it. [`cut`](Codec::cut) is called for each message that comes, so it must not allocate; the rest may.
///
/// The engine makes the texts: sender and number of a fixed width, then a filler. A codec puts a text into the bytes of a publish as it is,
/// and cuts it out of what comes; whether it is the right one is the engine's business.
///
/// A server that acknowledges and passes nothing on, one line for each:
///
/// ```
/// use relay_bench::{Codec, Event, Member};
///
/// struct Counter;
///
/// impl Codec for Counter {
///     const IS_FANNED_OUT: bool = false;
///
///     fn hello(&self, _member: &Member<'_>, out: &mut Vec<u8>) {
///         out.extend_from_slice(b"HELLO\n"); // and the server says +HELLO
///     }
///
///     fn publish(&self, member: &Member<'_>, text: &[u8], out: &mut Vec<u8>) {
///         out.extend_from_slice(&[b"ADD ", member.room.as_bytes(), b" ", text, b"\n"].concat());
///     }
///
///     fn cut<'a>(&self, bytes: &'a [u8]) -> Option<(Event<'a>, usize)> {
///         let len = bytes.iter().position(|byte| *byte == b'\n')?;
///         let event = match &bytes[..len] {
///             b"+OK" => Event::Acknowledged,
///             b"+HELLO" => Event::Done,
///             b"?" => Event::Answer(b"!\n"),
///             line => Event::Error(line),
///         };
///         Some((event, len + 1))
///     }
///
///     fn goodbye(&self, _out: &mut Vec<u8>) {} // closing is enough
/// }
/// ```
pub trait Codec: 'static {
    /// Whether each member of a room gets what one of them publishes, the sender too: then a message is confirmed when its sender gets it.
    /// Otherwise nobody gets any, and a message is confirmed by the next [`Event::Acknowledged`] on its connection.
    const IS_FANNED_OUT: bool = true;

    /// The bytes by which a member introduces itself and joins its room. When it has, there must be one [`Event::Done`]. Without bytes it
    /// has joined when it is connected.
    fn hello(&self, member: &Member<'_>, out: &mut Vec<u8>);

    /// The bytes that publish a text to the member's room. It is called once for each sender: for the next message the engine counts up the
    /// number where it finds the text in these bytes, in which it must stand once and unchanged.
    fn publish(&self, member: &Member<'_>, text: &[u8], out: &mut Vec<u8>);

    /// What stands first in these bytes, which are not empty, and how long it is; `None` when its end has not come yet. What is not
    /// understood is an [`Event::Error`].
    fn cut<'a>(&self, bytes: &'a [u8]) -> Option<(Event<'a>, usize)>;

    /// The bytes by which a member leaves. When it may close, there must be one [`Event::Done`]. Without bytes it closes at once.
    fn goodbye(&self, out: &mut Vec<u8>);
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its name, which nobody else in its room has: a letter and digits.
    pub name: &'a str,
    /// The name of its room, channel, subject, stream: letters, digits and `-`.
    pub room: &'a str,
}

/// What a server has said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The text of a message in the member's room.
    Message(&'a [u8]),
    /// The next of the connection's own messages is taken, or is durable: whatever the server promises.
    Acknowledged,
    /// What [`Codec::hello`] or [`Codec::goodbye`] asked for is done. One that nobody waits for ends the run.
    Done,
    /// This must be said at once, as to a `PING`.
    Answer(&'static [u8]),
    /// Nothing that anybody waits for.
    Nothing,
    /// A refusal, or what is not understood, in the server's words. It ends the run.
    Error(&'a [u8]),
}
