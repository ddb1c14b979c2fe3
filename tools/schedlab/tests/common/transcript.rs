//! Whole sessions in golden files.

use super::{Lab, testing::assert_golden};

impl Lab {
    /// Runs command lines one after the other, each as [`Lab::call`] does. Fails unless all of
    /// them print and end as `tests/golden/NAME` has it: `$` a command line, then its standard
    /// output, `!` a line of standard error, `?` an exit status other than 0. The usage after the error
    /// of a command line that clap refuses does not count.
    #[track_caller]
    pub fn assert_session(&self, name: &str, lines: &[&str]) {
        let folder = format!("{}/", self.path("").display()).replace("//", "/");
        let mut all = String::new();
        for line in lines {
            let ended = self.call(line);
            all += &format!("$ {line}\n{}", ended.out);
            let is_usage = ended.err.starts_with("error: ");
            let is_kept = |line: &&str| !is_usage || !line.is_empty();
            for line in ended.err.lines().take_while(is_kept) {
                all += &format!("! {line}\n");
            }
            if ended.code != Some(0) {
                all += &format!("? {}\n", ended.code.expect("it is not killed"));
            }
        }
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
        assert_golden(name, all.replace(&folder, "@").replace(root, "#"));
    }
}
