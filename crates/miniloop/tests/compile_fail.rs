//! What must not compile: uses of a group by which a member could outlive what it borrows or fail where nobody can, and of the attributes
//! where there is nothing that they could do. `wrong/` has the programs. The header of each ends with the errors that it is refused with:
//! whatever compiles this package compiles them, so it is the code that counts, and the words only where there is no code.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The errors that the compiler has for a program that uses this package.
fn errors(program: &Path) -> Vec<String> {
    let (package, folder) = (Path::new(env!("CARGO_MANIFEST_DIR")), Path::new(env!("CARGO_TARGET_TMPDIR")).join("wrong"));
    fs::create_dir_all(folder.join("src")).unwrap();
    let manifest = format!(
        "[package]\nname = \"wrong\"\nedition = \"2024\"\n[workspace]\n\
         [dependencies.miniloop]\npath = {package:?}\nfeatures = [\"macros\"]\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::copy(package.join("../../Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    fs::copy(program, folder.join("src/main.rs")).unwrap();
    let mut check = Command::new(env!("CARGO"));
    check.args(["check", "--offline", "--quiet", "--target-dir", "target"]).current_dir(&folder);
    let said = check.output().unwrap();
    let said = String::from_utf8(said.stderr).unwrap();
    said.lines().filter(|line| line.starts_with("error") && !line.starts_with("error: could not compile")).map(str::to_owned).collect()
}

#[test]
fn what_must_not_compile_does_not_g1() {
    let programs = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrong")).unwrap();
    let programs: Vec<_> = programs.map(|entry| entry.unwrap().path()).collect();
    assert!(!programs.is_empty());
    for program in programs {
        let source = fs::read_to_string(&program).unwrap();
        let expected: Vec<_> =
            source.lines().filter_map(|line| line.strip_prefix("//! ").filter(|line| line.starts_with("error"))).collect();
        let errors = errors(&program);
        let are_alike = errors.len() == expected.len() && errors.iter().zip(&expected).all(|(error, expected)| error.starts_with(expected));
        assert!(are_alike && !expected.is_empty(), "{program:?}: {errors:#?}");
    }
}
