//! The crate on drivers that are really there, each in a process of its own, since a loader reads its environment once.
//!
//! A test starts this program again as `child` with a scenario and a driver's variables, and looks at what it printed: that the scenario
//! ran to its end, and that the validation layer, where there is one, had nothing to say. Drivers are looked for in the system (Lavapipe)
//! and in `drivers/lavapipe` and `drivers/swiftshader` in cargo's target folder, where a person puts them. One that is absent is a line
//! that begins with SKIPPED.

#![allow(clippy::unwrap_used)]

mod probe;
mod scenarios;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A driver, and how a program runs with it.
struct Driver {
    name: &'static str,
    /// What the driver's own file is called.
    manifest: Option<PathBuf>,
    /// A program that runs ours with a newer C library.
    runner: Option<PathBuf>,
    /// The validation layer.
    layers: Layers,
    /// More variables.
    variables: Vec<(&'static str, &'static str)>,
}

/// The validation layer for a driver.
enum Layers {
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

/// The folder `drivers` beside cargo's profiles: this program lies in `<target>/<profile>/deps`.
fn folder() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.ancestors().nth(3).unwrap().join("drivers")
}

/// Where the system describes its drivers.
const SYSTEM: &[&str] = &["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"];
const SYSTEM_LAYERS: &str = "/usr/share/vulkan/explicit_layer.d";

fn existing(path: PathBuf) -> Option<PathBuf> {
    path.exists().then_some(path)
}

fn system_lavapipe() -> Option<Driver> {
    let listed = SYSTEM.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let mut found = listed.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("lvp_icd") && name.ends_with(".json")
    });
    Some(Driver {
        name: "the system's Lavapipe",
        manifest: Some(found.next()?),
        runner: None,
        layers: Layers::of(SYSTEM_LAYERS, LAYER),
        variables: Vec::new(),
    })
}

fn newer_lavapipe() -> Option<Driver> {
    let place = folder().join("lavapipe");
    Some(Driver {
        name: "the newer Lavapipe",
        manifest: None,
        runner: Some(existing(place.join("run"))?),
        layers: Layers::of(place.join("root/usr/share/vulkan/explicit_layer.d"), LAYER),
        variables: Vec::new(),
    })
}

fn of_swiftshader(name: &'static str, manifest: &str) -> Option<Driver> {
    let place = folder().join("swiftshader");
    Some(Driver {
        name,
        manifest: Some(existing(place.join(manifest))?),
        runner: None,
        layers: Layers::of(place.join("layers"), "validation.json"),
        variables: Vec::new(),
    })
}

fn swiftshader() -> Option<Driver> {
    of_swiftshader("SwiftShader", "swiftshader_icd.json")
}

fn mock() -> Option<Driver> {
    of_swiftshader("the mock driver", "mock_icd.json")
}

impl Driver {
    fn with(mut self, variable: &'static str, value: &'static str) -> Self {
        self.variables.push((variable, value));
        self
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
        }
        command.envs(self.variables.iter().copied());
        command
    }
}

/// Starts `child` with a scenario; what it printed, standard error behind standard output.
fn start(command: &mut Command, scenario: &str) -> (Output, String) {
    let words = ["child", "--exact", "--nocapture", "--test-threads=1"];
    let output = command.args(words).arg(format!("{MARK}{scenario}")).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output, text)
}

/// Runs scenarios on a driver: each must run to its end, without a word from the validation layer.
fn run(driver: Option<Driver>, name: &str, scenarios: &[&str]) {
    let Some(driver) = driver else { return skipped(name, "is not there") };
    if matches!(driver.layers, Layers::Absent) {
        skipped("the validation layer", &format!("is not there for {}", driver.name));
    }
    for scenario in scenarios {
        let (output, text) = start(&mut driver.command(), scenario);
        assert!(output.status.success(), "{scenario} on {}: {:?}\n{text}", driver.name, output.status);
        assert!(text.contains(&format!("RAN {scenario}\n")), "{scenario} on {} did not run\n{text}", driver.name);
        assert!(!complains(&text), "{scenario} on {}: the validation layer complains\n{text}", driver.name);
    }
}

fn complains(text: &str) -> bool {
    text.contains("VUID-") || text.contains("Validation Error") || text.contains("Validation Warning")
}

/// Past the harness's capture, so that nobody misses it.
fn skipped(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr().lock(), "SKIPPED: {what} {why}");
}

/// What marks the argument that names a scenario. The harness takes it for one more filter, which no test has.
const MARK: &str = "scenario:";

/// What other tests start; alone it has nothing to do.
#[test]
fn child() {
    let named = std::env::args().find_map(|argument| argument.strip_prefix(MARK).map(str::to_string));
    if let Some(scenario) = named {
        scenarios::run(&scenario);
        println!("RAN {scenario}");
    }
}

/// What every driver that runs kernels must do.
const ALL: &[&str] = &[
    "copy",
    "copy-staged",
    "copy-window",
    "subgroups",
    "again",
    "indirect",
    "stamps",
    "cache",
    "memory",
    "limit",
    "fresh",
    "dropped",
    "kernels",
    "misuse",
    "threads",
    "bound",
    "robust",
    "bound-misuse",
    "close",
];

#[test]
fn the_systems_lavapipe() {
    run(
        system_lavapipe(),
        "the system's Lavapipe (Debian's mesa-vulkan-drivers and libvulkan1)",
        &[ALL, &["facts", "import", "probe", "lavapipe"]].concat(),
    );
}

#[test]
fn the_systems_lavapipe_with_narrow_and_wide_subgroups() {
    for width in ["128", "512"] {
        let driver = system_lavapipe().map(|driver| driver.with("LP_NATIVE_VECTOR_WIDTH", width));
        run(driver, "the system's Lavapipe", &["subgroups", "copy"]);
    }
}

#[test]
fn the_newer_lavapipe() {
    run(newer_lavapipe(), "the newer Lavapipe (drivers/lavapipe)", &[ALL, &["facts", "import", "probe", "newer-lavapipe"]].concat());
}

#[test]
fn swiftshader_without_small_types() {
    run(swiftshader(), "SwiftShader (drivers/swiftshader)", &[ALL, &["facts", "probe-refused", "swiftshader"]].concat());
}

/// Whatever GPU this machine has, with the loader's own search.
#[test]
fn the_machines_own_card() {
    let card = || Driver {
        name: "this machine's own card",
        manifest: None,
        runner: None,
        layers: Layers::of(SYSTEM_LAYERS, LAYER),
        variables: Vec::new(),
    };
    let (output, text) = start(&mut card().command(), "card");
    assert!(output.status.success() && text.contains("RAN card\n"), "{text}");
    let there = text.contains("CARD ") && !text.contains("CARD none");
    run(there.then(card), "a card of this machine", ALL);
}

#[test]
fn the_mock_driver_runs_nothing_and_is_not_believed() {
    // Its own validation is off: it answers what it likes.
    let driver = mock().map(|driver| Driver { layers: Layers::Off, ..driver });
    run(driver, "the mock driver (drivers/swiftshader)", &["mock"]);
}

#[test]
fn a_loader_without_a_driver() {
    let Some(driver) = system_lavapipe() else { return skipped("the system's loader", "is not there") };
    let nowhere = Driver { manifest: Some(folder().join("no such driver.json")), layers: Layers::Off, ..driver };
    run(Some(nowhere), "a loader without a driver", &["no-driver"]);
}

#[test]
fn without_a_loader() {
    let (output, text) = start(&mut Command::new(std::env::current_exe().unwrap()), "no-loader");
    assert!(output.status.success() && text.contains("RAN no-loader\n"), "{text}");
}

#[test]
fn the_validation_layer_is_heard() {
    let drivers = [system_lavapipe(), newer_lavapipe(), swiftshader()].into_iter().flatten();
    let mut heard = 0;
    for driver in drivers.filter(|driver| matches!(driver.layers, Layers::At(_))) {
        let (output, text) = start(&mut driver.command(), "invalid");
        assert!(output.status.success() && complains(&text), "{}: nothing was said of an invalid module\n{text}", driver.name);
        heard += 1;
    }
    if heard == 0 {
        skipped("the validation layer", "is not there for any driver");
    }
}
