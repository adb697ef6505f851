# shellcheck shell=bash
# shaderc, which compiles kernels to SPIR-V: its library is built from source, once on a machine, since that takes 700 seconds of a
# processor. ./coli.sh reads this file and brings `say`, `die`, `in_tree`, `install_packages`, `root` and `target` along.

# Where things lie that every clone on this machine shares.
cache_folder() {
    local base=${XDG_CACHE_HOME:-}
    # A relative path is ignored, as the variable's specification says.
    [[ $base == /* ]] || base=${HOME:+$HOME/.cache}
    echo "${base:-$target/cache}/coli"
}

# What the library is called, and where this clone's version of it lies. Another version or compiler has a folder of its own.
shaderc_library=libshaderc_combined.a

shaderc_folder() {
    local version compiler
    version=$(shaderc_version) && compiler=$(compiler_name) && echo "$(cache_folder)/shaderc-$version-$compiler"
}

# The version of shaderc-sys in Cargo.lock: that package has the sources.
shaderc_version() {
    local line found=
    while read -r line; do
        if [[ $line == 'name = "shaderc-sys"' ]]; then
            found=1
        elif [[ $found && $line =~ ^version\ =\ \"(.+)\" ]]; then
            echo "${BASH_REMATCH[1]}"
            return
        fi
    done <"$root/Cargo.lock"
    return 1
}

# Family, version and target of the C++ compiler: gcc-12.2.0-x86_64-linux-gnu.
compiler_name() {
    local compiler=${CXX:-c++} family=gcc version
    command -v "$compiler" >/dev/null || return 1
    [[ $("$compiler" --version) != *clang* ]] || family=clang
    version=$("$compiler" -dumpfullversion 2>/dev/null) || version=$("$compiler" -dumpversion) || return 1
    echo "$family-$version-$("$compiler" -dumpmachine)"
}

# Whether there is a library, so that nothing has to be built: the caller's own (SHADERC_LIB_DIR), else the machine's.
have_shaderc() {
    [[ -z ${SHADERC_LIB_DIR:-} ]] || { [[ -e $SHADERC_LIB_DIR/$shaderc_library ]] && return; }
    local folder
    folder=$(shaderc_folder) && [[ -e $folder/$shaderc_library ]]
}

# Sees to a library and says to cargo where it is. Without that variable the crate would build its own, in each target folder anew.
need_shaderc() {
    if [[ -n ${SHADERC_LIB_DIR:-} ]]; then
        [[ -e $SHADERC_LIB_DIR/$shaderc_library ]] || die "SHADERC_LIB_DIR names $SHADERC_LIB_DIR, which has no $shaderc_library; unset it"
        # Cargo runs in the source tree.
        [[ $SHADERC_LIB_DIR == /* ]] || export SHADERC_LIB_DIR=$PWD/$SHADERC_LIB_DIR
        return
    fi
    local folder
    command -v "${CXX:-c++}" >/dev/null || install_packages g++
    folder=$(shaderc_folder) || die "missing: a C++ compiler (c++) to build shaderc with; install your system's packages"
    [[ -e $folder/$shaderc_library ]] || build_shaderc "$folder" || die "shaderc was not built, so there are no Vulkan kernels"
    export SHADERC_LIB_DIR=$folder
}

# In a shell of its own, whose end cleans up: a build that is broken off leaves nothing.
build_shaderc() (
    folder=$1 lock=
    need_shaderc_tools
    mkdir -p "${folder%/*}" || exit 1
    if command -v flock >/dev/null; then
        exec {lock}>"$folder.lock"
        flock -n "$lock" || { say "another run is building shaderc; waiting for it" && flock "$lock"; }
        [[ ! -e $folder/$shaderc_library ]] || exit 0
        # Left by a build that was killed: nobody else is at work here.
        rm -rf "$folder".part.*
    fi
    work=$(mktemp -d "$folder.part.XXXXXX") || exit 1
    watcher=
    # What the same signal ends may still write while this removes.
    trap '[[ -z $watcher ]] || kill "$watcher" 2>/dev/null || :; rm -rf "$work" || { sleep 1 && rm -rf "$work"; }' EXIT
    write_shaderc_project "$work" || exit 1
    say "building shaderc, once on this machine: about seven minutes on two free cores"
    watch_objects "$work/target" &
    watcher=$!
    # In the foreground, so that Ctrl-C reaches all of it.
    if ! (cd -- "$work" && CARGO_TARGET_DIR=$work/target cargo build --release </dev/null >"$work/log" 2>&1); then
        tail -n 40 "$work/log" >&2
        exit 1
    fi
    made=$(find "$work/target/release/build" -name "$shaderc_library" -path '*/out/lib/*')
    [[ -f $made ]] || { say "cargo built shaderc without $shaderc_library" && exit 1; }
    mkdir "$work/made" && mv "$made" "$work/made/" && mv "$work/made" "$folder" || exit 1
    say "built shaderc into $folder"
)

need_shaderc_tools() {
    local packages=()
    command -v cmake >/dev/null || packages+=(cmake)
    command -v ninja >/dev/null || packages+=(ninja-build)
    command -v git >/dev/null || packages+=(git)
    command -v python3 >/dev/null || packages+=(python3)
    ((${#packages[@]} == 0)) || install_packages "${packages[@]}"
    local tool
    for tool in cmake git python3; do
        command -v "$tool" >/dev/null || die "missing: $tool, which it takes to build shaderc; install your system's packages"
    done
}

# A package whose one dependency is shaderc, with the versions of our lock file.
write_shaderc_project() {
    mkdir "$1/src" && : >"$1/src/lib.rs" && cp "$root/Cargo.lock" "$1/"
    cat >"$1/Cargo.toml" <<END
[package]
name = "shaderc-once"
version = "0.0.0"
edition = "2021"

[dependencies]
shaderc-sys = { version = "=$(shaderc_version)", features = ["build-from-source"] }

[workspace]
END
}

# Says every now and then how far the build is.
watch_objects() {
    local start=$SECONDS plan all made
    # The last `sleep` outlives the build, which must not hold the lock any longer.
    [[ -z $lock ]] || exec {lock}>&-
    # Its output goes nowhere: it may live a little longer than this script.
    while sleep 20 >/dev/null 2>&1; do
        plan=$(find "$1" -name build.ninja 2>/dev/null | head -n 1)
        all=$([[ -z $plan ]] || grep -c '^build .*\.o: ' "$plan")
        made=$(find "$1" -name '*.o' -path '*/CMakeFiles/*' 2>/dev/null | wc -l)
        say "shaderc: $((made)) of ${all:-many} files compiled, $((SECONDS - start)) s"
    done
}

# Whether a program would find a Vulkan loader and a driver here, as far as files tell.
have_vulkan() {
    local data=${XDG_DATA_HOME:-${HOME:-/nowhere}/.local/share}
    any_file /usr/{lib,lib64,lib/*,local/lib}/libvulkan.so.1 {/usr/local,/opt/homebrew}/lib/lib{vulkan,MoltenVK}*.dylib || return 1
    [[ -z ${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-} ]] || return 0
    any_file {/etc,/usr/share,/usr/local/etc,/usr/local/share,/opt/homebrew/etc,/opt/homebrew/share,"$data"}/vulkan/icd.d/*.json
}

# A pattern that matches nothing is a name that nothing has.
any_file() {
    local file
    for file in "$@"; do
        [[ ! -e $file ]] || return 0
    done
    return 1
}
