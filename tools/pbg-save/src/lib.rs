//! Files that are replaced as a whole, for `pbg-save` and for schedlab.

use std::{
    fs::{self, FileType, Permissions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// Writes a file as a whole or not at all, and makes its folder. Follows symbolic links, and keeps
/// the mode of a file that was there.
///
/// # Errors
/// Those of the file system, and [`destination`]'s. The old file is then unchanged.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    let path = destination(path)?;
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder)?;
    // Beside the file, so that the rename stays within one file system. It is removed if anything
    // fails.
    let mut new = tempfile::Builder::new()
        .prefix(".new-")
        .permissions(Permissions::from_mode(0o666)) // less what the user's umask takes
        .tempfile_in(folder)?;
    if let Ok(found) = fs::metadata(&path) {
        // Before it has any content that others could read.
        new.as_file().set_permissions(found.permissions())?;
    }
    new.write_all(contents.as_ref())?;
    new.persist(&path)?;
    Ok(())
}

/// Returns the file that [`write()`] would write: `path`, or the end of its symbolic links.
///
/// # Errors
/// Something other than a regular file is there: a rename would replace a device.
pub fn destination(path: &Path) -> io::Result<PathBuf> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            let found = kind(found.file_type());
            return Err(io::Error::other(format!(
                "expected a regular file or nothing there, found {found}"
            )));
        }
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Step by step, as a link may point to a file that is not there yet. It ends: links in a
    // circle are an error above.
    let mut path = path.to_owned();
    while let Ok(link) = fs::read_link(&path) {
        path = path.parent().unwrap_or(Path::new("")).join(link);
    }
    Ok(path)
}

fn kind(found: FileType) -> &'static str {
    if found.is_dir() {
        "a folder"
    } else if found.is_fifo() {
        "a pipe"
    } else if found.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn write_changes_one_file_and_leaves_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a.new"), "the user's").unwrap();
        write(&at("a.pbg"), "one").unwrap();
        write(&at("a.pbg"), "two").unwrap();
        assert_eq!(fs::read_to_string(at("a.pbg")).unwrap(), "two");
        assert_eq!(fs::read_to_string(at("a.new")).unwrap(), "the user's");
        write(&at("a.new"), "three").unwrap();
        write(&at("of/its/own/a.pbg"), "four").unwrap();
        assert_eq!(names(folder.path()), ["a.new", "a.pbg", "of"]);

        // An empty name is refused only when the new file gets its name.
        let before = names(Path::new("."));
        assert!(write(Path::new(""), "five").is_err());
        assert_eq!(names(Path::new(".")), before);
    }

    #[test]
    fn old_file_keeps_its_mode_and_new_one_has_the_usual() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = |name| fs::metadata(at(name)).unwrap().permissions().mode() & 0o777;
        fs::write(at("usual"), "").unwrap();
        write(&at("new"), "new").unwrap();
        assert_eq!(mode("new"), mode("usual"));
        // No umask leaves the first alone, and the second is not the usual.
        for kept in [0o666, 0o600] {
            fs::set_permissions(at("new"), Permissions::from_mode(kept)).unwrap();
            write(&at("new"), "newer").unwrap();
            assert_eq!(mode("new"), kept);
        }
    }

    #[test]
    fn link_stays_and_its_end_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("kept")).unwrap();
        symlink("kept/a.pbg", at("first")).unwrap();
        symlink(at("first"), at("second")).unwrap();
        for text in ["not there before", "there before"] {
            write(&at("second"), text).unwrap();
            assert_eq!(fs::read_to_string(at("kept/a.pbg")).unwrap(), text);
            assert!(at("first").is_symlink() && at("second").is_symlink());
        }
        assert_eq!(names(&at("kept")), ["a.pbg"]);
        symlink("circle", at("circle")).unwrap();
        assert!(write(&at("circle"), "").is_err());
    }

    /// Only looks at devices: a test must not replace one by a file.
    #[test]
    fn other_than_a_regular_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let null = folder.path().join("null");
        symlink("/dev/null", &null).unwrap();
        for (path, found) in [
            (folder.path(), "a folder"),
            (Path::new("/dev/null"), "a device"),
            (&null, "a device"),
        ] {
            assert_eq!(
                destination(path).unwrap_err().to_string(),
                format!("expected a regular file or nothing there, found {found}")
            );
        }
        assert!(write(folder.path(), "").is_err());
    }
}
