#!/usr/bin/env bash
# Sets up, builds, runs and tests coli; `./coli.sh help` says how. What this script and cargo print, but for `help`, goes to standard
# error: standard output is the program's (under `test`, the tests').
set -euo pipefail

self=$(readlink -f -- "${BASH_SOURCE[0]}")
root=${self%/*}
target=${CARGO_TARGET_DIR:-$root/target}
# Cargo runs in the source tree; a relative folder means the caller's.
[[ $target == /* ]] || target=$PWD/$target
program=$target/release/coli
# In CI a lock file that does not match the manifests is a failure, not something to mend.
locked=()
[[ -z ${CI:-} ]] || locked=(--locked)

usage() {
    cat <<'END'
./coli.sh installs what is missing, builds in release when a source changed, and then:

  ./coli.sh run "Emma was"   runs coli; every word that is not below goes to it: eval, plugins, --help, --version
  ./coli.sh build            only builds; with --vulkan Vulkan's kernels in any case, otherwise as `run` does: where this machine has a
                             Vulkan driver, or has built them before
  ./coli.sh dist             writes the release archive of this platform into target/dist, or into DIR with --out DIR
  ./coli.sh test             checks format and lints, builds, and runs every test but the long matrix
  ./coli.sh test --all       the same with the long matrix, and with every driver
  ./coli.sh drivers          fetches the software Vulkan drivers that `test` runs on; `test` does it too
  ./coli.sh help             this page
END
}

say() {
    printf 'coli.sh: %s\n' "$*" >&2
}

die() {
    say "$@"
    exit 1
}

# Runs a command in the source tree, where cargo reads .cargo/config.toml. The folders it names are built into the program, so the
# caller's own settings must not take their place.
in_tree() (
    cd -- "$root"
    unset COLI_MODEL COLI_DEMO COLI_PLUGIN_PATH COLI_HOME COLI_VK_SHADERS COLI_VK_LOADER
    export CARGO_TARGET_DIR=$target
    "$@" </dev/null
)

# --- what must be there --------------------------------------------------------------------------------------------------------------

# Checks of a few milliseconds each, since every start makes them.
need_all() {
    need_linker
    need_rust
}

need_linker() {
    ! have_linker || return 0
    install_packages gcc libc6-dev
    have_linker || die "missing: a C compiler to link with (cc) and the C library's development files; install your system's packages"
}

have_linker() {
    command -v cc >/dev/null || return 1
    # On Linux a compiler may be there without the C library's start files, which every link needs.
    [[ $OSTYPE != linux-gnu* || $(cc -print-file-name=crt1.o) == /* ]]
}

# Debian packages, where there is a way; elsewhere the caller's check names what is missing.
install_packages() {
    command -v apt-get >/dev/null && grep -Eqs '^ID(_LIKE)?=.*(debian|ubuntu)' /etc/os-release || return 0
    local as_root=(env)
    if [[ $(id -u) != 0 ]]; then
        command -v sudo >/dev/null || die "missing: the Debian packages $*; run 'apt-get install $*' as root"
        as_root=(sudo env)
    fi
    say "installing the Debian packages $*"
    { "${as_root[@]}" apt-get -qq update &&
        "${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@"; } </dev/null >&2 ||
        die "apt-get could not install: $*"
}

need_rust() {
    command -v cargo >/dev/null || PATH=${CARGO_HOME:-${HOME:-}/.cargo}/bin:$PATH
    local least found version
    least=$(least_rust)
    command -v cargo >/dev/null ||
        die "missing: Rust $least or newer (cargo and rustc); install rustup, then run 'rustup toolchain install stable'"
    found=$(in_tree cargo --version) || die "missing: a Rust toolchain that cargo can use; run 'rustup default stable'"
    version=${found#cargo }
    at_least "${version%% *}" "$least" || die "missing: Rust $least or newer, this is ${version%% *}; run 'rustup update stable'"
}

# The workspace's `rust-version`.
least_rust() {
    local line
    while read -r line; do
        [[ $line =~ ^rust-version\ =\ \"([0-9.]+)\" ]] && echo "${BASH_REMATCH[1]}" && return
    done <"$root/Cargo.toml"
    die "Cargo.toml has no rust-version"
}

# Whether the first version is the second or a later one, by major and minor number.
at_least() {
    local have want
    IFS=. read -r -a have <<<"$1"
    IFS=. read -r -a want <<<"$2"
    ((have[0] > want[0] || (have[0] == want[0] && have[1] >= want[1])))
}

need_checkers() {
    in_tree cargo fmt --version >/dev/null 2>&1 && in_tree cargo clippy --version >/dev/null 2>&1 && return
    command -v rustup >/dev/null || die "missing: rustfmt and clippy; install them for this Rust toolchain"
    say "installing rustfmt and clippy"
    in_tree rustup component add rustfmt clippy >&2 || die "missing: rustfmt and clippy; run 'rustup component add rustfmt clippy'"
}

# shellcheck source=host/kernels/shaderc.sh
source "$root/host/kernels/shaderc.sh"
# shellcheck source=tests/drivers.sh
source "$root/tests/drivers.sh"

# --- what it does --------------------------------------------------------------------------------------------------------------------

# Everything, or with words less: `build --exclude 'coli-test-*'` builds the program and every plugin library. The test crates turn on no
# features, so what one call builds is up to date for the next, whichever came first.
build() {
    [[ -e $program ]] || say "building in release; the first build takes a few minutes"
    in_tree cargo build --release --workspace ${features[@]+"${features[@]}"} ${locked[@]+"${locked[@]}"} "$@" >&2
}

build_product() {
    build --exclude 'coli-test-*' || die "the build failed"
}

# What turns Vulkan's kernels on. Only two crates are compiled anew for it, and both kinds stay in the target folder.
features=()

with_kernels() {
    need_shaderc
    features=(--features coli-app/spirv)
}

# Compiling the compiler takes minutes: nobody without a Vulkan driver should wait for that unasked.
with_kernels_where_useful() {
    if have_shaderc; then
        with_kernels
    elif have_vulkan; then
        # In a shell of its own: where it cannot be built, the CPU still serves.
        (need_shaderc) && with_kernels || say "building without Vulkan's kernels"
    elif [[ ! -e $program ]]; then
        say "this machine has no Vulkan driver: building without Vulkan's kernels; './coli.sh build --vulkan' builds them too"
    fi
}

# The steps that failed.
failed=()

# One step of `test`: its name, then its command.
step() {
    local name=$1
    shift
    say "== $name: $*"
    in_tree "$@" && return
    failed+=("$name")
    return 1
}

run_tests() {
    local long=()
    case "$*" in
    "") ;;
    # The long matrix is the tests marked `#[ignore]`. What else takes long goes here too.
    --all) long=(-- --include-ignored) ;;
    *)
        say "test takes --all or nothing, not: $*"
        exit 2
        ;;
    esac
    need_checkers
    step format cargo fmt --all --check >&2 || true
    with_kernels
    local words=(--release --workspace "${features[@]}" ${locked[@]+"${locked[@]}"})
    step lints cargo clippy "${words[@]}" --all-targets -- -D warnings >&2 || true
    say "== drivers"
    fetch_drivers
    [[ -z ${long[*]-} ]] || failed+=(${absent[@]+"${absent[@]/#/no driver: }"})
    say "== build: program and plugin libraries, which 'cargo test' does not build by itself"
    if build; then
        step tests cargo test "${words[@]}" --no-fail-fast ${long[@]+"${long[@]}"} || true
    else
        failed+=(build "tests (not run)")
    fi
    say_absent
    ((${#failed[@]} == 0)) || die "FAILED: $(join "${failed[@]}")"
    say "all passed: format, lints, build, tests"
}

# At the end, where it is read.
say_absent() {
    local driver
    for driver in ${absent[@]+"${absent[@]}"}; do
        say "SKIPPED: what runs on $driver, which could not be fetched"
    done
}

join() {
    local all
    printf -v all ', %s' "$@"
    echo "${all#, }"
}

case "${1-}" in
"" | help)
    if (($# <= 1)); then
        usage
        exit
    fi
    ;;
esac

need_all
case "$1" in
build)
    case "${*:2}" in
    "") with_kernels_where_useful ;;
    --vulkan) with_kernels ;;
    *) say "build takes --vulkan or nothing, not: ${*:2}" && exit 2 ;;
    esac
    build_product
    say "built $program"
    ;;
drivers)
    (($# == 1)) || { say "drivers takes no words" && exit 2; }
    fetch_drivers
    say_absent
    ((${#absent[@]} == 0)) || die "not every driver could be fetched"
    ;;
dist)
    with_kernels
    # Of the test crates only the one that makes the archive.
    build --exclude 'coli-test-[!d]*' || die "the build failed"
    exec "$target/release/coli-test-dist" "${@:2}"
    ;;
test) run_tests "${@:2}" ;;
*)
    with_kernels_where_useful
    build_product
    exec "$program" "$@"
    ;;
esac
