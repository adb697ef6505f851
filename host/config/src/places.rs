//! The folders in which plugins and the demo model are looked for, in order.

use std::path::{Path, PathBuf};

use coli_base::{Error, Result};

use crate::environment::Environment;
use crate::table::Key;
use crate::value::{Source, path_list};

/// Folders that were known when the binary was built: those of its source tree. They are the last places looked in, so that a binary run
/// from a build folder works from anywhere. A release has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Baked {
    /// Plugin folders.
    pub plugin_path: Vec<PathBuf>,
    /// The demo model.
    pub demo: Option<PathBuf>,
}

/// The commit of the source tree, empty where it was none.
pub const COMMIT: &str = match option_env!("COLI_COMMIT") {
    Some(commit) => commit,
    None => "",
};

/// The [`Baked`] of the binary that says this. A macro, so that the folders are compiled into that binary and not into this crate: the
/// program of a release is made of the same crates and differs in its `main` alone.
#[macro_export]
macro_rules! baked {
    () => {
        $crate::Baked::from_texts(option_env!("COLI_PLUGIN_PATH"), option_env!("COLI_DEMO"))
    };
}

/// A place to look in, and what put it on the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The folder.
    pub path: PathBuf,
    /// Where it comes from, for messages: `COLI_PLUGIN_PATH`.
    pub origin: &'static str,
    /// Whether a person named it, so that it must be there.
    pub named: bool,
}

const SYSTEM: [&str; 2] = ["/usr/local/lib/coli", "/usr/lib/coli"];
const SOURCE_TREE: &str = "the source tree this binary was built from";

impl Baked {
    /// From the texts of the two variables. A relative path is dropped: it meant the folder of the build.
    pub fn from_texts(plugin_path: Option<&str>, demo: Option<&str>) -> Self {
        let absolute = |text: Option<&str>| path_list(text.unwrap_or_default().as_ref()).into_iter().filter(|path| path.is_absolute());
        let demo = demo.map(PathBuf::from).filter(|path| path.is_absolute());
        Self { plugin_path: absolute(plugin_path).collect(), demo }
    }
}

impl Environment {
    /// The folder that counts as the executable's: `COLI_HOME`, else the folder in which the executable itself lies, not a link to it.
    pub fn home_folder(&self) -> Result<PathBuf> {
        if let Some(home) = self.values.path(Key::Home) {
            return Ok(home.into());
        }
        let found = std::env::current_exe().and_then(std::fs::canonicalize);
        let executable = found.map_err(|error| Error::run(format!("the executable's folder cannot be found ({error}); set COLI_HOME")))?;
        executable.parent().map(Path::to_path_buf).ok_or_else(|| Error::run("the executable has no folder; set COLI_HOME"))
    }

    /// The person's own data folder, where the system has such a thing.
    pub fn user_data_folder(&self) -> Option<PathBuf> {
        let base = self.data_home.clone().or_else(|| Some(self.user_home.as_ref()?.join(".local/share")))?;
        Some(base.join("coli"))
    }

    /// The person's own folder of settings, where the system has such a thing.
    pub fn user_config_folder(&self) -> Option<PathBuf> {
        let base = self.config_home.clone().or_else(|| Some(self.user_home.as_ref()?.join(".config")))?;
        Some(base.join("coli"))
    }

    /// What set the value of a key, for messages.
    fn origin(&self, key: Key) -> &'static str {
        match self.values.get(key) {
            Some((_, Source::Environment(name))) => name,
            Some((_, Source::File(_))) => "coli.toml",
            _ => "the default",
        }
    }

    /// The person's own folder for what can be made again, where the system has such a thing.
    pub fn user_cache_folder(&self) -> Option<PathBuf> {
        let base = self.cache_home.clone().or_else(|| Some(self.user_home.as_ref()?.join(".cache")))?;
        Some(base.join("coli"))
    }

    /// Folders of plugins, in search order. `home` is [`Environment::home_folder`].
    pub fn plugin_places(&self, home: &Path) -> Vec<Place> {
        let mut places: Vec<Place> = Vec::new();
        let origin = self.origin(Key::PluginPath);
        let named = self.values.paths(Key::PluginPath).iter().cloned();
        places.extend(named.map(|path| Place { path, origin, named: true }));
        let mut add = |path: PathBuf, origin| places.push(Place { path, origin, named: false });
        add(home.join("models"), "beside the executable");
        if let Some(data) = self.user_data_folder() {
            add(data.join("models"), "the user's data folder");
        }
        SYSTEM.iter().for_each(|path| add(Path::new(path).join("models"), "the system's folder"));
        self.baked.plugin_path.iter().for_each(|path| add(path.clone(), SOURCE_TREE));
        places
    }

    /// Folders that may hold the demo model, in search order. `home` is [`Environment::home_folder`].
    pub fn demo_places(&self, home: &Path) -> Vec<Place> {
        let beside = Place { path: home.join("demo"), origin: "beside the executable", named: false };
        let named = self.values.path(Key::Demo).map(|path| Place { path: path.into(), origin: self.origin(Key::Demo), named: true });
        let baked = self.baked.demo.clone().map(|path| Place { path, origin: SOURCE_TREE, named: false });
        [Some(beside), named, baked].into_iter().flatten().collect()
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::table::Setting;
    use crate::value::Value;

    fn with(key: Key, value: Value) -> Environment {
        let mut environment = Environment::default();
        environment.values.add(key, value, Source::Environment(Setting::of(key).env));
        environment
    }

    fn paths(places: &[Place]) -> Vec<&str> {
        places.iter().map(|place| place.path.to_str().unwrap()).collect()
    }

    #[test]
    fn plugin_folders_are_in_search_order() {
        let environment = Environment {
            user_home: Some("/u".into()),
            baked: Baked::from_texts(Some("/src/models:relative"), None),
            ..with(Key::PluginPath, Value::Paths(vec!["dev".into(), "/more".into()]))
        };
        let places = environment.plugin_places(Path::new("/opt/coli"));
        let user = "/u/.local/share/coli/models";
        let system = ["/usr/local/lib/coli/models", "/usr/lib/coli/models"];
        assert_eq!(paths(&places), ["dev", "/more", "/opt/coli/models", user, system[0], system[1], "/src/models"]);
        assert_eq!(places[0].origin, "COLI_PLUGIN_PATH");
        assert_eq!(places[6].origin, SOURCE_TREE);
        assert_eq!(places.iter().map(|place| place.named).collect::<Vec<_>>(), [true, true, false, false, false, false, false]);
    }

    #[test]
    fn a_bare_environment_still_has_the_executables_and_the_systems_folders() {
        let places = Environment::default().plugin_places(Path::new("/h"));
        assert_eq!(paths(&places), ["/h/models", "/usr/local/lib/coli/models", "/usr/lib/coli/models"]);
        assert_eq!(paths(&Environment::default().demo_places(Path::new("/h"))), ["/h/demo"]);
    }

    #[test]
    fn the_demo_is_looked_for_beside_the_executable_first() {
        let baked = Baked::from_texts(None, Some("/src/demo"));
        let environment = Environment { baked, ..with(Key::Demo, Value::Path("d".into())) };
        assert_eq!(paths(&environment.demo_places(Path::new("/h"))), ["/h/demo", "d", "/src/demo"]);
    }

    #[test]
    fn empty_and_relative_texts_are_baked_as_nothing() {
        assert_eq!(Baked::from_texts(Some(""), Some("")), Baked::default());
        assert_eq!(Baked::from_texts(Some("models"), Some("demo")), Baked::default());
    }

    #[test]
    fn the_home_folder_is_the_setting_or_where_the_executable_lies() {
        let set = with(Key::Home, Value::Path("/x".into()));
        assert_eq!(set.home_folder().unwrap(), Path::new("/x"));
        let own = Environment::default().home_folder().unwrap();
        assert_eq!(own, std::env::current_exe().unwrap().canonicalize().unwrap().parent().unwrap());
    }

    #[test]
    fn the_data_folder_follows_the_xdg_variable() {
        let xdg = Environment { data_home: Some("/d".into()), user_home: Some("/u".into()), ..Environment::default() };
        assert_eq!(xdg.user_data_folder(), Some("/d/coli".into()));
        assert_eq!(Environment::default().user_data_folder(), None);
        assert_eq!(Environment::default().user_config_folder(), None);
    }
}
