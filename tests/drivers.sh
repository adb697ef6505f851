# shellcheck shell=bash
# Vulkan drivers that need no GPU, for the tests: Debian's Lavapipe, a newer one beside the system, and SwiftShader with a mock driver and a
# newer validation layer. ./coli.sh reads this file and brings `say`, `install_packages`, `cache_folder`, `any_file` and
# `target` along.
#
# Nothing but Debian's own packages is fetched, from the mirror that this machine's apt uses, into the cache that all clones share. Tests
# find it as drivers/lavapipe and drivers/swiftshader in cargo's target folder.

# What could not be had, for people.
absent=()

fetch_drivers() {
    absent=()
    system_driver || absent+=("the system's Lavapipe (mesa-vulkan-drivers, libvulkan1)")
    fetched lavapipe || absent+=("the newer Lavapipe")
    fetched swiftshader || absent+=("SwiftShader, the mock driver and the newer validation layer")
}

system_driver() {
    have_system_driver || (install_packages mesa-vulkan-drivers libvulkan1) && have_system_driver
}

have_system_driver() {
    any_file /usr/share/vulkan/icd.d/lvp_icd*.json && any_file /usr/{lib64,lib/*}/libvulkan.so.1
}

# Fetches one of the drivers, unless it is there, and puts a link to it where the tests look.
fetched() {
    local name=$1 link=$target/drivers/$1 place
    # A folder that a person put there is left alone.
    [[ ! -d $link || -L $link ]] || return 0
    # The number changes with what this script makes.
    place=$(cache_folder)/drivers-1/$name-$(uname -m)
    [[ -d $place ]] || fetch "$name" "$place" || return 1
    mkdir -p "$target/drivers" && ln -sfn "$place" "$link"
}

# In a shell of its own, whose end cleans up: a fetch that is broken off leaves nothing.
fetch() (
    name=$1 place=$2
    mkdir -p "${place%/*}" || exit 1
    if command -v flock >/dev/null; then
        exec {lock}>"$place.lock"
        flock -n "$lock" || { say "another run is fetching $name; waiting for it" && flock "$lock"; }
        [[ ! -d $place ]] || exit 0
        rm -rf "$place".part.*
    fi
    work=$(mktemp -d "$place.part.XXXXXX") || exit 1
    trap 'rm -rf "$work"' EXIT
    chmod 755 "$work"
    say "fetching $name, once on this machine"
    "fetch_$name" "$work" "$place" && rm -rf "$work/apt" && mv "$work" "$place" || { say "$name could not be fetched" && exit 1; }
    say "fetched $name into $place"
)

# Unpacks packages of one of Debian's suites, and what they depend on unless the last word is `alone`, into <folder>/root. Apt keeps its
# books in <folder>/apt for this, so nothing is installed and nobody has to be root.
unpack_packages() {
    local work=$1 suite=$2 mirror key=/usr/share/keyrings/debian-archive-keyring.gpg signed=
    shift 2
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || { say "this takes apt-get and dpkg" && return 1; }
    mirror=$(debian_mirror) || { say "apt's sources have no Debian mirror" && return 1; }
    mkdir -p "$work"/apt/{lists,cache/archives}/partial "$work/root" && : >"$work/apt/status" || return 1
    [[ ! -e $key ]] || signed="[signed-by=$key] "
    echo "deb $signed$mirror $suite main" >"$work/apt/sources.list"
    local apt=(apt-get -qq -y "-oDir::Etc::SourceList=$work/apt/sources.list" -oDir::Etc::SourceParts=/dev/null
        "-oDir::State::Lists=$work/apt/lists" "-oDir::Cache=$work/apt/cache" "-oDir::State::status=$work/apt/status"
        -oAPT::Install-Recommends=0 "-oAPT::Sandbox::User=$(id -un)" -oDebug::NoLocking=1 -oAcquire::Retries=2 -oAcquire::http::Timeout=30)
    "${apt[@]}" update </dev/null >&2 || return 1
    if [[ ${!#} == alone ]]; then
        (cd "$work/apt/cache/archives" && "${apt[@]}" download "${@:1:$#-1}") </dev/null >&2 || return 1
    else
        "${apt[@]}" --download-only install "$@" </dev/null >/dev/null || return 1
    fi
    local package
    for package in "$work"/apt/cache/archives/*.deb; do
        dpkg -x "$package" "$work/root" || return 1
    done
}

debian_mirror() {
    local uri
    while read -r uri; do
        # The archive itself; what apt calls debian-security and the like are others.
        [[ $uri != */debian && $uri != */debian/ ]] || { echo "$uri" && return; }
    done < <(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null)
    return 1
}

# Lavapipe of Debian's next release, with the C library that it needs. `run PROGRAM ...` starts a program of this system with that library's
# own loader, which /proc/self/exe then names: the program must be told its folder (COLI_HOME).
fetch_lavapipe() {
    local work=$1 place=$2 libraries loader
    unpack_packages "$work" testing mesa-vulkan-drivers libvulkan1 vulkan-validationlayers || return 1
    libraries=$(first_of "${work}/root/usr/lib/"*/libvulkan_lvp.so) && libraries=${libraries%/*} || return 1
    loader=$(first_of "$libraries"/ld-linux*.so.* "${work}/root/"{,usr/}lib{,64}/ld-linux*.so.*) || return 1
    [[ -e ${work}/root/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json ]] || return 1
    manifest ICD libvulkan_lvp.so 1.4.0 >"$work/lvp_icd.json"
    # The paths are those that the files have once the folder is in its place.
    cat >"$work/run" <<END
#!/usr/bin/env bash
export VK_DRIVER_FILES=$(printf %q "$place/lvp_icd.json") VK_ICD_FILENAMES=$(printf %q "$place/lvp_icd.json")
export VK_LAYER_PATH=$(printf %q "${place}/root/usr/share/vulkan/explicit_layer.d")
exec $(printf %q "$place${loader#"$work"}") --library-path $(printf %q "$place${libraries#"$work"}") "\$@"
END
    chmod +x "$work/run"
    "$loader" --library-path "$libraries" "$(type -P true)" || { say "its C library does not run on this system" && return 1; }
}

# SwiftShader, the mock driver and the layer, out of a browser's package. They need nothing but the C library of this release.
fetch_swiftshader() {
    local work=$1 place=$2 codename name path
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
    unpack_packages "$work" "$codename" chromium-common alone || return 1
    for name in vk_swiftshader VkICD_mock_icd VkLayer_khronos_validation; do
        path=$(first_of "${work}/root/usr/lib/"*/"lib$name.so") || return 1
        path=$place${path#"$work"}
        case $name in
        vk_swiftshader) manifest ICD "$path" 1.3.0 >"$work/swiftshader_icd.json" ;;
        VkICD_mock_icd) manifest ICD "$path" 1.4.0 >"$work/mock_icd.json" ;;
        *) mkdir "$work/layers" && manifest layer "$path" 1.4.0 >"$work/layers/validation.json" ;;
        esac
    done
    # The rest of the package is a browser.
    find "$work/root" -type f ! -name '*.so' -delete
}

# The first of these files that is there.
first_of() {
    local file
    for file in "$@"; do
        [[ ! -e $file ]] || { echo "$file" && return; }
    done
    say "the packages have none of: $*"
    return 1
}

# How Vulkan's loader is told of a driver (ICD) or of the validation layer.
manifest() {
    local version=1.0.1 more=
    [[ $1 != layer ]] || {
        version=1.2.0
        more='"name": "VK_LAYER_KHRONOS_validation", "type": "GLOBAL", "implementation_version": "1", "description": "validation", '
    }
    printf '{"file_format_version": "%s", "%s": {%s"library_path": "%s", "api_version": "%s"}}\n' "$version" "$1" "$more" "$2" "$3"
}
