//! Compiles every kernel to SPIR-V and packs the modules into one file, which the crate embeds.
//!
//! The op library is linked into this script, so cargo runs it again when a GLSL text, a variant list or the layout of a set changes.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "spirv")]
    spirv::build();
}

#[cfg(feature = "spirv")]
#[path = "src/layout.rs"]
mod layout;
#[cfg(feature = "spirv")]
#[path = "src/pack.rs"]
mod pack;

#[cfg(feature = "spirv")]
mod spirv {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use coli_shaders::device::{Module, modules};

    use super::{layout, pack};

    /// Errors shown of a kernel; more of them mostly follow from the first.
    const SHOWN: usize = 5;

    pub(super) fn build() {
        #[allow(clippy::disallowed_methods)] // Cargo's own word for where a build script writes.
        let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
        if let Err(error) = write(&out) {
            println!("cargo::error={error}");
        }
    }

    fn write(out: &Path) -> Result<(), String> {
        let modules = modules();
        let compiled = compile(&modules, out)?;
        let list: Vec<(&str, &[u8])> = modules.iter().zip(&compiled).map(|(module, spirv)| (module.name.as_str(), &spirv[..])).collect();
        let packed =
            pack::pack(&layout::hash_of_sources(&modules), &list).map_err(|error| format!("the kernels cannot be packed: {error}"))?;
        if packed.len() as u64 > layout::PACKED_MAX {
            return Err(format!("the kernels take {} bytes, packed; at most {} may be embedded", packed.len(), layout::PACKED_MAX));
        }
        std::fs::write(out.join("kernels.bin"), packed).map_err(|error| format!("{}: {error}", out.display()))
    }

    /// Compiles what is new; of the rest there is the result of an earlier run.
    fn compile(modules: &[Module], out: &Path) -> Result<Vec<Vec<u8>>, String> {
        let earlier = Earlier::open(out).map_err(|error| format!("{}: {error}", out.display()))?;
        let next = AtomicUsize::new(0);
        let work = || {
            let compiler = Compiler::new()?;
            let claims = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)).take_while(|at| *at < modules.len());
            Ok(claims.map(|at| (at, earlier.get_or(&modules[at], || compiler.compile(&modules[at])))).collect::<Vec<_>>())
        };
        let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let parts: Vec<Result<Vec<_>, String>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined.map(|part| part.unwrap_or_else(|_| Err("a thread that compiles kernels ended early".into()))).collect()
        });
        let mut results = parts.into_iter().collect::<Result<Vec<_>, String>>()?.into_iter().flatten().collect::<Vec<_>>();
        results.sort_by_key(|(at, _)| *at);
        earlier.keep_only(modules);
        let (mut compiled, mut failed) = (vec![], vec![]);
        for (at, result) in results {
            match result {
                Ok(spirv) => compiled.push(spirv),
                Err(error) => failed.push((&modules[at], error)),
            }
        }
        if failed.is_empty() {
            return Ok(compiled);
        }
        report(&failed, out);
        Err(format!("{} of {} modules of kernels did not compile", failed.len(), modules.len()))
    }

    /// shaderc with our options.
    struct Compiler {
        compiler: shaderc::Compiler,
        options: shaderc::CompileOptions<'static>,
    }

    impl Compiler {
        fn new() -> Result<Self, String> {
            let fault = |error: shaderc::Error| format!("shaderc does not start: {error}");
            let compiler = shaderc::Compiler::new().map_err(fault)?;
            let mut options = shaderc::CompileOptions::new().map_err(fault)?;
            options.set_target_env(shaderc::TargetEnv::Vulkan, shaderc::EnvVersion::Vulkan1_2 as u32);
            options.set_target_spirv(shaderc::SpirvVersion::V1_5);
            // The optimizer's unrolling drops what makes sums `precise`; drivers optimize anyway.
            options.set_optimization_level(shaderc::OptimizationLevel::Zero);
            Ok(Self { compiler, options })
        }

        fn compile(&self, module: &Module) -> Result<Vec<u8>, String> {
            let Module { name, text } = module;
            let kind = shaderc::ShaderKind::Compute;
            let spirv = self.compiler.compile_into_spirv(text, kind, name, "main", Some(&self.options));
            spirv.map(|spirv| spirv.as_binary_u8().to_vec()).map_err(|error| error.to_string())
        }
    }

    /// What earlier runs compiled, by text and options: whoever changes one kernel waits for one kernel.
    struct Earlier(PathBuf);

    impl Earlier {
        fn open(out: &Path) -> std::io::Result<Self> {
            let folder = out.join("modules");
            std::fs::create_dir_all(&folder)?;
            Ok(Self(folder))
        }

        /// The options stand in this file.
        fn name(module: &Module) -> String {
            let parts = [include_str!("build.rs").as_bytes(), module.name.as_bytes(), module.text.as_bytes()];
            let hash = layout::hash(&parts.map(layout::hash).concat());
            format!("{:032x}.spv", u128::from_le_bytes(std::array::from_fn(|at| hash[at])))
        }

        fn get_or(&self, module: &Module, compile: impl FnOnce() -> Result<Vec<u8>, String>) -> Result<Vec<u8>, String> {
            let path = self.0.join(Self::name(module));
            if let Ok(spirv) = std::fs::read(&path) {
                return Ok(spirv);
            }
            let spirv = compile()?;
            // Whole or not there at all; without it the next run compiles again.
            let part = path.with_extension("part");
            let _ = std::fs::write(&part, &spirv).and_then(|()| std::fs::rename(&part, &path));
            Ok(spirv)
        }

        fn keep_only(&self, modules: &[Module]) {
            let names: BTreeSet<String> = modules.iter().map(Self::name).collect();
            let files = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
            for file in files.filter(|file| !names.contains(&*file.file_name().to_string_lossy())) {
                let _ = std::fs::remove_file(file.path());
            }
        }
    }

    /// Says what is wrong, once for each kernel: its modules mostly fail for the same reason.
    fn report(failed: &[(&Module, String)], out: &Path) {
        let mut kernels: BTreeMap<&str, Vec<&(&Module, String)>> = BTreeMap::new();
        for failure in failed {
            let name = failure.0.name.split('.').next().unwrap_or_default();
            kernels.entry(name).or_default().push(failure);
        }
        for failures in kernels.values() {
            let Some((module, error)) = failures.first() else { continue };
            // The text as the compiler got it, to which its line numbers belong.
            let text = out.join(format!("{}.comp", module.name));
            let place =
                if std::fs::write(&text, &module.text).is_ok() { format!("; whole text: {}", text.display()) } else { String::new() };
            let others = if failures.len() > 1 { format!(" and {} more modules of it", failures.len() - 1) } else { String::new() };
            println!("cargo::error=kernel {}{others} did not compile{place}", module.name);
            faults(module, error).iter().take(SHOWN).for_each(|fault| println!("cargo::error=  {fault}"));
        }
    }

    /// The compiler's lines, `name:12: error: what`, each with the line of the text that it means.
    fn faults(module: &Module, error: &str) -> Vec<String> {
        let lines = error.lines().filter(|line| line.contains(": error:"));
        let faults: Vec<String> = lines.map(|line| with_text(module, line)).collect();
        if faults.is_empty() { vec![error.replace('\n', " | ")] } else { faults }
    }

    fn with_text(module: &Module, line: &str) -> String {
        let number = line.strip_prefix(&module.name).and_then(|rest| rest.strip_prefix(':')?.split(':').next()?.parse::<usize>().ok());
        let text = number.and_then(|number| module.text.lines().nth(number.checked_sub(1)?));
        text.map_or_else(|| line.into(), |text| format!("{line}    <- {}", text.trim()))
    }
}
