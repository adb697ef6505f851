//! Where Vulkan's loader may lie. A table and a pure function; [`crate::Instance`] opens what it names.

use std::path::{Path, PathBuf};

/// A family of systems, by how their libraries are named and found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Linux, and what is like it.
    Linux,
    /// Windows.
    Windows,
    /// macOS.
    MacOs,
}

impl System {
    /// The system that this program was built for.
    pub const fn here() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Linux
        }
    }

    /// The loader's names, the best first. On macOS a driver alone, MoltenVK, does as well.
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Linux => &["libvulkan.so.1"],
            Self::Windows => &["vulkan-1.dll"],
            Self::MacOs => &["libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib"],
        }
    }
}

/// What decides where the loader is looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The loader itself, when a person names it (`COLI_VK_LOADER`): nothing else is then tried.
    pub loader: Option<PathBuf>,
    /// The program's folder.
    pub program: Option<PathBuf>,
    /// The system's folder of libraries: System32.
    pub system: Option<PathBuf>,
}

/// What to try, in order. On Windows only full paths, since a bare name would be looked for in the current directory as well; elsewhere
/// bare names, which the system's linker finds.
pub fn candidates(system: System, places: &Places) -> Vec<PathBuf> {
    if let Some(loader) = &places.loader {
        return vec![loader.clone()];
    }
    let names = system.names().iter();
    match system {
        System::Linux => names.map(PathBuf::from).collect(),
        System::MacOs => {
            let beside = places.program.iter().flat_map(|folder| system.names().iter().map(move |name| folder.join(name)));
            names.map(PathBuf::from).chain(beside).collect()
        }
        System::Windows => {
            let folders = [&places.program, &places.system].into_iter().flatten().filter(|folder| is_full(folder));
            folders.flat_map(|folder| system.names().iter().map(move |name| folder.join(name))).collect()
        }
    }
}

/// Whether a path of Windows is a full one, on whatever system this runs: a drive or a share begins it.
fn is_full(folder: &Path) -> bool {
    let text = folder.to_string_lossy();
    let bytes = text.as_bytes();
    folder.is_absolute() || text.starts_with(r"\\") || matches!(bytes, [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_system_has_its_names() {
        let bare = |system| candidates(system, &Places::default());
        assert_eq!(bare(System::Linux), [PathBuf::from("libvulkan.so.1")]);
        assert_eq!(bare(System::MacOs), ["libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib"].map(PathBuf::from));
        // Without folders there is nothing on Windows that is safe to try.
        assert!(bare(System::Windows).is_empty());
    }

    #[test]
    fn windows_looks_in_the_programs_folder_then_in_the_systems_and_never_in_the_current_one() {
        let places = Places { loader: None, program: Some(r"C:\coli".into()), system: Some(r"C:\Windows\System32".into()) };
        let found = candidates(System::Windows, &places);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with(r"C:\coli") && found[1].starts_with(r"C:\Windows\System32"));
        let relative = Places { program: Some("bin".into()), ..Places::default() };
        assert!(candidates(System::Windows, &relative).is_empty());
    }

    #[test]
    fn a_named_loader_is_the_only_one_tried() {
        let places = Places { loader: Some("/opt/l.so".into()), program: Some("/p".into()), system: Some("/s".into()) };
        for system in [System::Linux, System::Windows, System::MacOs] {
            assert_eq!(candidates(system, &places), [PathBuf::from("/opt/l.so")]);
        }
    }
}
