//! The device form of an op that a plugin brings, on drivers that are there: it passes its cases, and one that is wrong or asks for too
//! much is told from one that is right.
//!
//! Each driver runs in a process of its own, which this program starts again as `child`, since a loader reads its environment once.
#![allow(clippy::unwrap_used)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use coli_app::engine;
use coli_chain::program::OpTable;
use coli_chain::vulkan::{VulkanDevice, try_form};
use coli_config::{Baked, Environment};
use coli_kernels::Kernels;
use coli_test_common::built;
use coli_test_plugins::outside;
use coli_vk::choose::{Wanted, choose};
use coli_vk::{Device, Instance, Options};

/// Marks the argument of `child`.
const MARK: &str = "plugin:";

fn device(robust: bool) -> Arc<VulkanDevice> {
    let instance = Instance::open(&["libvulkan.so.1".into()]).unwrap();
    let devices = instance.devices().unwrap();
    let chosen = choose(&devices, &Wanted::Best { cpu: true }).unwrap();
    let device = Device::open(&instance, &devices[chosen.at], &Options { robust, ..Options::default() }).unwrap();
    Arc::new(VulkanDevice::new(device, Arc::new(Kernels::open(None, None).unwrap())).unwrap())
}

/// What the trial says of the op `turn` and of the op `decay` of the plugin in this folder.
fn trial(folder: &Path, robust: bool) -> [Result<(), String>; 2] {
    let values = [("COLI_HOME", folder.as_os_str()), ("COLI_PLUGIN_PATH", folder.as_os_str())];
    let environment = Environment::from_values(values.map(|(key, value)| (key.into(), value.into())), Baked::default()).unwrap();
    let plugins = engine::discover_plugins(None, &environment).unwrap();
    let model = engine::describe(&outside::golden(), &plugins).unwrap().model;
    let (device, ops) = (device(robust), ["outside.turn@1", "outside.decay@1"]);
    let mut table = OpTable::library();
    ops.iter().for_each(|op| assert!(table.add(op, model.own_op(op))));
    ops.iter().for_each(|op| model.own_devices().allow(op));
    ops.map(|op| try_form(&model.own_cases(op).unwrap(), &table, &device, Duration::from_secs(60)))
}

#[test]
fn child() {
    let Some(folder) = std::env::args().find_map(|argument| argument.strip_prefix(MARK).map(PathBuf::from)) else { return };
    let [turn, decay] = trial(&folder, true);
    println!("TURN {turn:?}\nDECAY {decay:?}");
    println!("PLAIN {:?}", trial(&folder, false)[0]);
}

/// What a child prints of a plugin on a driver.
fn run(driver: &Path, feature: &str) -> String {
    let folder = outside::folder(feature, "id", "id");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env("VK_DRIVER_FILES", driver).env("VK_ICD_FILENAMES", driver).env_remove("DISPLAY").env("LP_NUM_THREADS", "0");
    let words = ["child", "--exact", "--nocapture", "--test-threads=1"];
    let output = command.args(words).arg(format!("{MARK}{}", folder.path().display())).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("DECAY "), "{driver:?} {feature}: {:?}\n{text}", output.status);
    text
}

/// Descriptions of drivers that run on the CPU: the system's Lavapipe, and SwiftShader in `drivers` of cargo's target folder.
fn drivers() -> Vec<PathBuf> {
    let listed = std::fs::read_dir("/usr/share/vulkan/icd.d").into_iter().flatten().flatten().map(|entry| entry.path());
    let lavapipe = listed.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("lvp_icd")));
    let swiftshader = built::home().parent().unwrap().join("drivers/swiftshader/swiftshader_icd.json");
    lavapipe.take(1).chain(swiftshader.exists().then_some(swiftshader)).collect()
}

#[test]
fn the_device_form_passes_its_cases_or_is_told_why_not() {
    let drivers = if Kernels::are_built() { drivers() } else { vec![] };
    if drivers.is_empty() {
        let line = "SKIPPED: no driver, or no kernels built in (feature `spirv`), so no plugin's op ran on a device\n";
        std::io::stderr().lock().write_all(line.as_bytes()).unwrap();
        return;
    }
    for driver in drivers {
        let text = run(&driver, "");
        assert!(text.contains("TURN Ok(())\n"), "{driver:?}\n{text}");
        assert!(text.contains("DECAY Err(\"case `halves`: ") && text.contains("brings no device form"), "{driver:?}\n{text}");
        assert!(text.contains("PLAIN Err(") && text.contains("was not opened with robust access"), "{driver:?}\n{text}");
        let text = run(&driver, "wrong_device");
        assert!(text.contains("TURN Err(\"case `by one`: port `y` is off by "), "{driver:?}\n{text}");
        let text = run(&driver, "bad_device");
        assert!(text.contains("capability PhysicalStorageBufferAddresses: not one of the list"), "{driver:?}\n{text}");
    }
}
