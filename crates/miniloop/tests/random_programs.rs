//! The loop does what the reference model does, whatever the program (O1 to O10).

mod model;
