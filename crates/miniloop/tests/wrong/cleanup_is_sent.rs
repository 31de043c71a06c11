//! A clean-up leaves the thread of its task.
//! error[E0277]

fn main() {
    let _ = miniloop::run(async {
        if let Err(cleanup) = miniloop::catch(std::future::pending::<()>()).await {
            std::thread::spawn(move || drop(cleanup));
        }
    });
}
