//! Vulkan drivers that tests run on. A loader reads its environment once, so a test that wants a driver starts its own program again with
//! the driver's variables ([`rerun`]); [`chosen`] tells the program that it is such a child.
//!
//! Lavapipe is looked for in the system, a newer one and SwiftShader in `drivers` in cargo's target folder, where `./coli.sh drivers` puts
//! them. One that is absent is a line that begins with SKIPPED.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A driver, and how a program runs with it.
pub struct Driver {
    /// Its name.
    pub name: &'static str,
    /// What the driver's own file is called.
    pub manifest: Option<PathBuf>,
    /// A program that runs ours with a newer C library.
    pub runner: Option<PathBuf>,
    /// The validation layer.
    pub layers: Layers,
    /// More variables.
    pub variables: Vec<(&'static str, &'static str)>,
}

/// The validation layer for a driver.
pub enum Layers {
    /// Not wanted.
    Off,
    /// Wanted, and not there.
    Absent,
    /// Described in this folder.
    At(PathBuf),
}

impl Layers {
    fn of(folder: impl Into<PathBuf>, manifest: &str) -> Self {
        let folder = folder.into();
        if folder.join(manifest).exists() { Self::At(folder) } else { Self::Absent }
    }
}

/// What the layer's description is called where a distribution packs it.
const LAYER: &str = "VkLayer_khronos_validation.json";
/// Where the system describes its drivers and layers.
const SYSTEM: &[&str] = &["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"];
const SYSTEM_LAYERS: &str = "/usr/share/vulkan/explicit_layer.d";
/// Tells a child that it is one, and on which device it runs.
const CHOSEN: &str = "COLI_TEST_DEVICE";
/// Tells a child to stage weights (`1`) or to map them (`0`).
pub const STAGED: &str = "COLI_TEST_STAGED";
/// Tells a child where the built program is, since a runner's children are not found by their own name.
pub(crate) const HOME: &str = "COLI_TEST_HOME";

/// The device that this program is a child for, as `--device` names it; `None` where it is no child.
pub fn chosen() -> Option<String> {
    variable(CHOSEN)
}

/// Whether weights are to be staged or mapped, where the parent says so.
pub fn staged() -> Option<bool> {
    variable(STAGED).map(|word| word == "1")
}

/// Tells a child that time does not matter.
const LONG: &str = "COLI_TEST_LONG";

/// Whether this is the long matrix.
pub fn is_long() -> bool {
    variable(LONG).is_some()
}

/// Whether the cases of an op, as `name@version`, are wanted: those that `COLI_CASES=matmul,norm` names, of somebody who works on them.
pub fn wants(op: &str) -> bool {
    let name = op.split('@').next().unwrap_or_default();
    let wanted = variable("COLI_CASES").unwrap_or_default();
    wanted.is_empty() || wanted.split(',').any(|one| one == name)
}

#[allow(clippy::disallowed_methods)] // A test's own protocol with its child, and whoever works on tests; the program takes none of it.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The folder `drivers` beside cargo's profiles: a test's program lies in `<target>/<profile>/deps`.
fn folder() -> PathBuf {
    let home = crate::built::home();
    home.parent().unwrap().join("drivers")
}

/// Debian's Lavapipe.
pub fn system_lavapipe() -> Option<Driver> {
    let listed = SYSTEM.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let mut found = listed.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("lvp_icd") && name.ends_with(".json")
    });
    Some(Driver { name: "the system's Lavapipe", manifest: Some(found.next()?), runner: None, layers: validation(), variables: Vec::new() })
}

/// The validation layer that comes with SwiftShader, which is newer than Debian's; else the system's.
fn validation() -> Layers {
    match Layers::of(folder().join("swiftshader/layers"), "validation.json") {
        Layers::At(folder) => Layers::At(folder),
        _ => Layers::of(SYSTEM_LAYERS, LAYER),
    }
}

/// A newer Lavapipe, with cooperative matrix.
pub fn newer_lavapipe() -> Option<Driver> {
    let place = folder().join("lavapipe");
    let runner = place.join("run");
    runner.exists().then(|| Driver {
        name: "the newer Lavapipe",
        manifest: None,
        runner: Some(runner),
        layers: Layers::of(place.join("root/usr/share/vulkan/explicit_layer.d"), LAYER),
        variables: Vec::new(),
    })
}

/// SwiftShader.
pub fn swiftshader() -> Option<Driver> {
    let place = folder().join("swiftshader");
    let manifest = place.join("swiftshader_icd.json");
    manifest.exists().then(|| Driver {
        name: "SwiftShader",
        manifest: Some(manifest),
        runner: None,
        layers: Layers::of(place.join("layers"), "validation.json"),
        variables: Vec::new(),
    })
}

impl Driver {
    /// The same with another variable.
    #[must_use]
    pub fn with(mut self, variable: &'static str, value: &'static str) -> Self {
        self.variables.push((variable, value));
        self
    }

    /// The same for the long matrix.
    #[must_use]
    pub fn long(self) -> Self {
        self.with(LONG, "1")
    }

    /// The same without the validation layer, which costs more than the work on tiny models.
    #[must_use]
    pub fn unvalidated(self) -> Self {
        Self { layers: Layers::Off, ..self }
    }

    fn command(&self) -> Command {
        let program = std::env::current_exe().unwrap();
        let mut command = match &self.runner {
            Some(runner) => {
                let mut command = Command::new(runner);
                command.arg(program);
                command
            }
            None => Command::new(program),
        };
        command.env_remove("VK_INSTANCE_LAYERS").env_remove("VK_LAYER_PATH").env_remove("DISPLAY");
        command.env("LP_NUM_THREADS", "0").env("LP_NATIVE_VECTOR_WIDTH", "256");
        if let Some(manifest) = &self.manifest {
            // The first is the newer name, the second that of older loaders.
            command.env("VK_DRIVER_FILES", manifest).env("VK_ICD_FILENAMES", manifest);
        }
        if let Layers::At(layers) = &self.layers {
            command.env("VK_LAYER_PATH", layers).env("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation");
            command.env("VK_LAYER_VALIDATE_SYNC", "1");
        }
        command.envs(self.variables.iter().copied());
        command
    }
}

/// Starts this program again on a driver, with these arguments of the harness, and expects every test that it runs to pass, at least
/// `least` of them, without a word from the validation layer.
pub fn rerun(driver: Option<Driver>, what: &str, arguments: &[&str], least: usize) {
    let Some(driver) = driver else { return skipped(what, "is not there: ./coli.sh drivers fetches it") };
    if !coli_kernels::Kernels::are_built() {
        return skipped(what, "has nothing to run: Vulkan's kernels are not built in, as ./coli.sh test does it");
    }
    if matches!(driver.layers, Layers::Absent) {
        skipped("the validation layer", &format!("is not there for {}", driver.name));
    }
    let mut command = driver.command();
    command.env(CHOSEN, "vulkan").env(HOME, crate::built::home()).arg("--test-threads=1").args(arguments);
    let output = command.output().unwrap();
    let text = printed(&output);
    assert!(output.status.success(), "on {}: {:?}\n{text}", driver.name, output.status);
    let passed = text.split("test result: ok. ").nth(1).and_then(|rest| rest.split(' ').next()).and_then(|word| word.parse().ok());
    assert!(passed.is_some_and(|passed: usize| passed >= least), "on {}: fewer than {least} tests ran\n{text}", driver.name);
    assert!(!complains(&text), "on {}: the validation layer complains\n{text}", driver.name);
}

fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn complains(text: &str) -> bool {
    let signs = ["VUID-", "SYNC-HAZARD", "Validation Error", "Validation Warning"];
    signs.iter().any(|sign| text.contains(sign))
}

/// Past the harness's capture, so that nobody misses it.
pub fn skipped(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr().lock(), "SKIPPED: {what} {why}");
}
