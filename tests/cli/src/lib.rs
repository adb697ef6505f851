//! Starts the built program with an environment of its own, and judges what it left.
//!
//! [`Run`] is a start, [`Running`] a process, [`Finished`] its end; the rest makes the folders that tests hand to it.
#![allow(clippy::unwrap_used)]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use coli_test_common::{assembled, built, fixture};
use serde_json::Value;
use tempfile::TempDir;

/// After this long a process hangs.
const HANG: Duration = Duration::from_secs(60);
const BLINK: Duration = Duration::from_millis(5);
/// Where no Vulkan is, so that what tests see does not depend on the drivers of the machine.
const NO_VULKAN: &str = "/nonexistent/libvulkan.so";

/// A start of the program: no Vulkan and no environment but what is added, in a folder that has nothing to do with the source tree.
#[derive(Debug)]
pub struct Run {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    dir: PathBuf,
    stdin: Option<Vec<u8>>,
}

/// A process that has not been waited for. It is ended where the test ends first.
pub struct Running {
    what: String,
    child: Child,
    stdout: Option<Stream>,
    stderr: Option<Stream>,
}

/// What a process left.
#[derive(Debug)]
pub struct Finished {
    /// The start, for messages.
    pub what: String,
    /// The exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    /// All of standard output.
    pub stdout: String,
    /// All of standard error.
    pub stderr: String,
}

/// Reads a pipe as it fills.
struct Stream {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl Run {
    /// The built program.
    pub fn coli<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Self {
        Self::of(&built::program(), args)
    }

    /// Another program.
    pub fn of<A: AsRef<OsStr>>(program: &Path, args: impl IntoIterator<Item = A>) -> Self {
        let args = args.into_iter().map(|arg| arg.as_ref().into()).collect();
        Self { program: program.into(), args, env: Vec::new(), dir: std::env::temp_dir(), stdin: None }
    }

    /// Starts it with this set up by a shell, such as `ulimit -f 1`.
    #[cfg(unix)]
    pub fn after(self, setting: &str) -> Self {
        let script = format!("{setting}; exec \"$0\" \"$@\"");
        let mut args = vec!["-c".into(), script.into(), self.program.into_os_string()];
        args.extend(self.args);
        Self { program: "/bin/sh".into(), args, ..self }
    }

    /// Starts it as a terminal does, with no signal ignored, even where whoever runs the tests has some ignored: a shell does that with
    /// Ctrl-C for what it starts in the background.
    #[cfg(unix)]
    pub fn reachable(self) -> Self {
        let env = Path::new("/usr/bin/env");
        let takes_signals = || Command::new(env).args(["--default-signal", "true"]).output().is_ok_and(|tried| tried.status.success());
        if !takes_signals() {
            return self;
        }
        let mut args = vec!["--default-signal".into(), self.program.into_os_string()];
        args.extend(self.args);
        Self { program: env.into(), args, ..self }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().into());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(OsString::from));
        self
    }

    /// Adds a variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.into(), value.as_ref().into()));
        self
    }

    /// Starts it in this folder.
    pub fn dir(mut self, dir: &Path) -> Self {
        self.dir = dir.into();
        self
    }

    /// Gives it these bytes on its standard input, which else is empty.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Starts it and waits for its end.
    pub fn finish(&self) -> Finished {
        self.start().finish()
    }

    /// Starts it.
    pub fn start(&self) -> Running {
        self.spawn(Stdio::piped(), Stdio::piped())
    }

    /// Starts it with nobody at the other end of its standard output, and waits for its end.
    pub fn finish_without_stdout(&self) -> Finished {
        self.spawn(broken_pipe(), Stdio::piped()).finish()
    }

    /// Starts it with nobody at the other end of its standard error, and waits for its end.
    pub fn finish_without_stderr(&self) -> Finished {
        self.spawn(Stdio::piped(), broken_pipe()).finish()
    }

    /// Starts it with its standard output going into a file, and waits for its end.
    pub fn finish_into(&self, file: fs::File) -> Finished {
        self.spawn(file.into(), Stdio::piped()).finish()
    }

    fn spawn(&self, stdout: Stdio, stderr: Stdio) -> Running {
        let mut command = Command::new(&self.program);
        command.args(&self.args).env_clear().env("COLI_VK_LOADER", NO_VULKAN).envs(self.env.iter().cloned()).current_dir(&self.dir);
        let stdin = if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() };
        let started = command.stdin(stdin).stdout(stdout).stderr(stderr).spawn();
        let mut child = started.unwrap_or_else(|error| panic!("{}: {error}", self.program.display()));
        if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), self.stdin.clone()) {
            // A program that does not read its input is no reason to fail here.
            std::thread::spawn(move || pipe.write_all(&bytes));
        }
        let stdout = child.stdout.take().map(Stream::read);
        let stderr = child.stderr.take().map(Stream::read);
        Running { what: format!("{self:?}"), child, stdout, stderr }
    }
}

/// The writing end of a pipe that nobody reads.
fn broken_pipe() -> Stdio {
    let (_, writer) = std::io::pipe().unwrap();
    writer.into()
}

impl Stream {
    fn read(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let shared = bytes.clone();
        let thread = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(len @ 1..) = pipe.read(&mut piece) {
                shared.lock().unwrap().extend_from_slice(&piece[..len]);
            }
        });
        Self { bytes, thread }
    }

    fn is_empty(&self) -> bool {
        self.bytes.lock().unwrap().is_empty()
    }

    fn has(&self, text: &str) -> bool {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).contains(text)
    }

    fn text(self) -> String {
        self.thread.join().unwrap();
        let bytes = std::mem::take(&mut *self.bytes.lock().unwrap());
        String::from_utf8(bytes).unwrap()
    }
}

impl Running {
    /// The process's number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until something is on its standard output.
    pub fn wait_for_output(&mut self) {
        self.wait_until("no output", |running| running.stdout.as_ref().is_some_and(|stream| !stream.is_empty()).then_some(()));
    }

    /// Waits until this is on its standard error.
    pub fn wait_for_message(&mut self, text: &str) {
        self.wait_until(text, |running| running.stderr.as_ref().is_some_and(|stream| stream.has(text)).then_some(()));
    }

    /// Presses Ctrl-C.
    #[cfg(unix)]
    pub fn interrupt(&self) {
        self.signal("INT");
    }

    /// Sends a signal.
    #[cfg(unix)]
    pub fn signal(&self, name: &str) {
        let sent = Command::new("sh").args(["-c", "kill -\"$1\" \"$0\""]).arg(self.id().to_string()).arg(name).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Finished {
        let status = self.wait_until("no end", |running| running.child.try_wait().unwrap());
        let text = |stream: Option<Stream>| stream.map_or(String::new(), Stream::text);
        let (stdout, stderr) = (text(self.stdout.take()), text(self.stderr.take()));
        Finished { what: std::mem::take(&mut self.what), code: status.code(), stdout, stderr }
    }

    fn wait_until<T>(&mut self, lack: &str, mut sign: impl FnMut(&mut Self) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(sign) = sign(self) {
                return sign;
            }
            assert!(start.elapsed() < HANG, "{lack} after {HANG:?}: {}", self.what);
            std::thread::sleep(BLINK);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Finished {
    /// The lines of standard error.
    pub fn lines(&self) -> Vec<&str> {
        self.stderr.lines().collect()
    }

    /// It worked, and standard error has information only.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:#?}");
        assert!(self.lines().iter().all(|line| is_information(line)), "{self:#?}");
        self
    }

    /// It worked; gives its standard output, which is one JSON value.
    #[track_caller]
    pub fn json(self) -> Value {
        let finished = self.succeeded();
        serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:#?}"))
    }

    /// It failed with this code and nothing on standard output; gives the only line of standard error that is not information, which
    /// is the last one.
    #[track_caller]
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.stdout, "", "{self:#?}");
        self.failed_after_output(code)
    }

    /// [`Finished::failed`], but there may be something on standard output.
    #[track_caller]
    pub fn failed_after_output(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        let lines = self.lines();
        let (last, before) = lines.split_last().unwrap_or_else(|| panic!("no error: {self:#?}"));
        assert!(before.iter().all(|line| is_information(line)), "more than one line of error: {self:#?}");
        assert!(last.starts_with("coli: ") && !is_information(last), "the last line is no error: {self:#?}");
        (*last).into()
    }
}

/// Whether a line is one of those that tell what the program does.
fn is_information(line: &str) -> bool {
    let Some(text) = line.strip_prefix("coli: ") else { return false };
    let starts = [
        "no model was named, so this is the demo model in ",
        "loaded ",
        "seed ",
        "settings from ",
        "wrote ",
        "converting ",
        "converted ",
        "run ",
    ];
    let parts = [
        "; device ",
        ": all of it fits: ",
        " segments fit: ",
        " prompt tokens at ",
        ": it was found before ",
        " stored tensors are not used, ",
    ];
    starts.iter().any(|start| text.starts_with(start)) || parts.iter().any(|part| text.contains(part))
}

/// `text` has all of these parts.
#[track_caller]
pub fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

/// A continuation of the demo model by the reference implementation.
#[derive(Debug)]
pub struct Case {
    /// The prompt.
    pub prompt: String,
    /// Its ids.
    pub prompt_ids: Vec<u32>,
    /// The 64 most probable ids that follow, one after the other.
    pub tokens: Vec<u32>,
    /// The text of these.
    pub text: String,
}

/// A case of the demo model's reference file.
pub fn demo_case(index: usize) -> Case {
    let case = &fixture::json(&built::demo().join("reference.json"))["cases"][index];
    let text = |key: &str| case[key].as_str().unwrap().to_owned();
    Case {
        prompt: text("prompt"),
        prompt_ids: fixture::ids(&case["prompt_ids"]),
        tokens: fixture::ids(&case["tokens"]),
        text: text("text"),
    }
}

/// The folder of a golden model: reference logits, and no tokenizer.
pub fn golden() -> PathBuf {
    built::root().join("models/olmoe/golden/olmoe")
}

/// The same model as one GGUF file, alone in its folder.
pub fn golden_gguf() -> PathBuf {
    assembled::gguf(&golden().with_file_name("olmoe_gguf"), &golden()).unwrap()
}

/// An empty folder on the file system of the built program, so that files can be linked into it.
pub fn fresh() -> TempDir {
    tempfile::Builder::new().prefix("coli-test-").tempdir_in(built::home()).unwrap()
}

/// The same file under another name. For files that no test writes to.
fn link(from: &Path, to: &Path) {
    if fs::hard_link(from, to).is_err() {
        fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    }
}

/// Makes `to` a folder with the demo model. Its weights must not be written to.
pub fn copy_demo(to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in ["config.json", "generation_config.json", "tokenizer.json"] {
        fs::copy(built::demo().join(name), to.join(name)).unwrap();
    }
    link(&built::demo().join("model.safetensors"), &to.join("model.safetensors"));
}

/// A folder with a copy of the golden model, all of which may be changed.
pub fn copy_golden() -> TempDir {
    let folder = fresh();
    for name in ["config.json", "generation_config.json", "model.safetensors"] {
        fs::copy(golden().join(name), folder.path().join(name)).unwrap();
    }
    folder
}

/// The name of the olmoe plugin's library.
pub fn library_name() -> String {
    format!("{}coli_olmoe{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

/// The built library of the olmoe plugin.
pub fn library() -> PathBuf {
    let path = built::home().join(library_name());
    assert!(path.is_file(), "{} is not built: run ./coli.sh test, or cargo build --release first", path.display());
    path
}

/// Makes the olmoe plugin in `models`, a folder of plugins; gives the plugin's own folder. Its library must not be written to.
pub fn copy_plugin(models: &Path) -> PathBuf {
    let to = models.join("olmoe");
    fs::create_dir_all(&to).unwrap();
    fs::copy(built::plugins().join("olmoe/olmoe.plugin.toml"), to.join("olmoe.plugin.toml")).unwrap();
    link(&library(), &to.join(library_name()));
    to
}

/// A folder laid out like a release: the program, its plugin and its demo model.
pub struct Release {
    folder: TempDir,
}

impl Release {
    /// Makes one.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        let folder = fresh();
        link(&built::program(), &folder.path().join("coli"));
        copy_plugin(&folder.path().join("models"));
        copy_demo(&folder.path().join("demo"));
        Self { folder }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A start of its program.
    pub fn coli<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Run {
        Run::of(&self.path().join("coli"), args)
    }
}

/// Changes a JSON file.
pub fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut json = fixture::json(path);
    change(&mut json);
    fs::write(path, json.to_string()).unwrap();
}
