//! What must not compile: uses of a group by which a member could outlive what it borrows. `wrong/` has a program for each, with what the
//! compiler says to it.

use std::process::Command;

/// The compiler whose words stand in `wrong/`; another one words its errors differently.
const RUSTC: &str = "rustc 1.95.";

#[test]
fn a_member_that_could_outlive_what_it_borrows_does_not_compile_g1() {
    let version = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into())).arg("--version").output().unwrap();
    if !version.stdout.starts_with(RUSTC.as_bytes()) {
        println!("SKIPPED: compile errors are compared with those of {RUSTC}x");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/wrong/*.rs");
}
