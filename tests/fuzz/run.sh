#!/usr/bin/env bash
# Runs every fuzz target for COUNT inputs (1000000 when none is given), one after the other, and prints one line for each.
# What it finds lies in artifacts/TARGET/, the log beside it; the exit code is 1 when something was found.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"

count=${1:-1000000}
[[ $count =~ ^[1-9][0-9]*$ ]] || { echo "run.sh [COUNT]: $count is not a count" >&2; exit 2; }
cargo fuzz --version >/dev/null 2>&1 || { echo "missing: cargo-fuzz; run 'cargo install cargo-fuzz --locked'" >&2; exit 1; }

# The sanitizers need a nightly toolchain; coverage does not.
cargo fuzz build --fuzz-dir . --sanitizer none --target-dir target
triple=$(rustc -vV | sed -n 's/^host: //p')

# Temporary folders in memory, where there is such a place, and gone afterwards.
parent=/dev/shm
[[ -d $parent ]] || parent=${TMPDIR:-/tmp}
TMPDIR=$(mktemp -d -- "$parent/coli-fuzz.XXXXXX")
export TMPDIR
trap 'rm -rf -- "$TMPDIR"' EXIT

run_target() {
    local target=$1 log=artifacts/$1.log dict=() status=0
    mkdir -p "artifacts/$target" "corpus/$target"
    [[ ! -e dict/$target.dict ]] || dict=("-dict=dict/$target.dict")
    "target/$triple/release/$target" -runs="$count" -max_len=4096 -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
        -artifact_prefix="artifacts/$target/" ${dict[@]+"${dict[@]}"} "corpus/$target" "seeds/$target" >"$log" 2>&1 || status=$?
    summary "$target" "$log" "$status"
    return "$status"
}

# What libFuzzer said last of coverage, and how long it took.
summary() {
    local last runs seconds verdict=clean
    last=$(grep -o 'cov: [0-9]* ft: [0-9]* corp: [0-9]*' "$2" | tail -n 1 || true)
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$2")
    seconds=$(sed -n 's/^Done .* in \([0-9]*\) second.*/\1/p' "$2")
    [[ $3 == 0 ]] || verdict="FOUND, see $2"
    echo "$1: ${runs:-?} inputs, ${seconds:-?} s, ${last:-no coverage}, $verdict"
}

found=0
for source in targets/*.rs; do
    target=${source##*/}
    run_target "${target%.rs}" || found=1
done
exit "$found"
