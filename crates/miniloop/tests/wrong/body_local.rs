//! A member borrows a local of the body's own block, which is gone before the group is.
//! error[E0373]

fn main() {
    let _ = miniloop::run(async {
        miniloop::task_group(async |g| {
            let local = String::from("local");
            g.spawn(async { println!("{local}") });
        })
        .await;
    });
}
