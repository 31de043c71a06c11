//! The hub as its clients and its shell meet it: conversations in virtual time.

mod cold_properties;
mod cold_rooms;
mod crowd;
mod fan_out;
mod heartbeats;
mod lifecycle;
mod order;
mod pausing;
mod properties;
mod protocol;
mod world;
