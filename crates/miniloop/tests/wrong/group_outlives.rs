//! The future of the group gets out of the block whose variable its members borrow.
//! error[E0597]

fn main() {
    let _ = miniloop::run(async {
        let group = {
            let borrowed = String::from("borrowed");
            miniloop::task_group(async |g| {
                g.spawn(async { println!("{borrowed}") });
            })
        };
        group.await;
    });
}
