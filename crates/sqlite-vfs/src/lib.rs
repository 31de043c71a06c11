//! SQLite on files that a program provides: a safe trait, and the glue under it.
