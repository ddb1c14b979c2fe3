//! What has gone wrong.

/// What has gone wrong, the first few of it in words.
#[derive(Default)]
pub struct Errors {
    pub count: usize,
    pub first: Vec<String>,
}

impl Errors {
    pub fn add(&mut self, what: String) {
        self.count += 1;
        if self.first.len() < 10 {
            self.first.push(what);
        }
    }
}
