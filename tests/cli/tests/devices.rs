//! Which device a run takes, and what is said where it cannot be had.

use std::path::Path;

use coli_test_cli::{Run, demo_case, says};
use coli_test_common::drivers::{skipped, system_lavapipe};

fn run(device: &str) -> Run {
    Run::coli(["run", "Elizabeth", "--temp", "0", "-n", "3", "--device", device])
}

/// The same with the system's loader, and this driver alone.
fn run_on(driver: &Path, device: &str) -> Run {
    // An empty variable counts as unset.
    run(device).env("COLI_VK_LOADER", "").env("VK_DRIVER_FILES", driver).env("VK_ICD_FILENAMES", driver)
}

fn has_kernels() -> bool {
    Run::coli(["--version"]).finish().succeeded().stdout.contains("features cpu vulkan")
}

#[test]
fn nobody_who_asked_for_nothing_needs_vulkan() {
    let finished = run("auto").finish().succeeded();
    says(&finished.stderr, &["device cpu (no Vulkan: "]);
    assert_eq!(run("cpu").finish().succeeded().stdout, finished.stdout);
    assert!(demo_case(0).text.starts_with(&finished.stdout), "{finished:#?}");
}

#[test]
fn without_a_loader_a_device_asked_for_is_unmet_with_the_next_step() {
    let error = run("vulkan").finish().failed(4);
    let why = if has_kernels() { "/nonexistent/libvulkan.so" } else { "./coli.sh build --vulkan" };
    says(&error, &["--device vulkan: ", why, "; use --device cpu or leave the option out"]);
}

#[test]
fn a_loader_without_drivers_is_as_good_as_none() {
    let nothing = Path::new("/nonexistent/driver.json");
    says(&run_on(nothing, "vulkan").finish().failed(4), &["--device vulkan: ", "; use --device cpu or leave the option out"]);
    says(&run_on(nothing, "auto").finish().succeeded().stderr, &["device cpu (no Vulkan: "]);
}

/// Lavapipe is a CPU, slower than ours: it is taken by name alone.
#[test]
fn a_driver_on_the_cpu_is_used_when_it_is_asked_for() {
    let driver = system_lavapipe().filter(|_| has_kernels()).and_then(|driver| driver.manifest);
    let Some(driver) = driver else { return skipped("a run on Lavapipe", "needs Lavapipe and Vulkan's kernels") };
    let auto = run_on(&driver, "auto").finish().succeeded();
    says(&auto.stderr, &["device cpu (no Vulkan: ", "llvmpipe", "it is the CPU, used only when it is asked for"]);
    for device in ["vulkan", "0", "llvmpipe"] {
        let finished = run_on(&driver, device).finish().succeeded();
        says(&finished.stderr, &["device llvmpipe", &format!("asked for by --device {device}")]);
        assert_eq!(finished.stdout, auto.stdout);
    }
    for device in ["7", "a card that is not there"] {
        says(&run_on(&driver, device).finish().failed(4), &[&format!("--device {device}: "), "llvmpipe", "; use --device cpu"]);
    }
}
