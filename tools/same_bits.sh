#!/usr/bin/env bash
# Do two commits train to the same bits? Builds the library of each, trains five models for 20 steps in float32 and with Autocast
# (tests/training/same_bits.cpp), and compares the SHA-256 of their parameters. Exits with status 1 if one differs.
#
#   tools/same_bits.sh OLD [NEW]       (NEW: the working tree)
#
# Bits depend on the processor and the number of threads: both run here, with INGOT_NUM_THREADS (2 by default).
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2; }
export INGOT_NUM_THREADS="${INGOT_NUM_THREADS:-2}"
work="$PWD/build/same_bits"
mkdir -p "$work"

# build NAME COMMIT: the library of that commit, and the program against it.
build() {
  local tree="$work/$1/tree"
  if [ -n "$2" ]; then
    rm -rf "$tree" && git worktree prune
    git worktree add -qf --detach "$tree" "$2"
  else
    tree="$PWD"
  fi
  cmake -S "$tree" -B "$work/$1/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DINGOT_CUDA=OFF -DINGOT_PYTHON=OFF -Wno-dev --log-level=WARNING >/dev/null
  cmake --build "$work/$1/build" --target ingot >/dev/null
  c++ -std=c++20 -O1 tests/training/same_bits.cpp -I"$tree/include" -I"$work/$1/build/include" -L"$work/$1/build/lib" \
    -Wl,-rpath,"$work/$1/build/lib" -lingot -o "$work/$1/same_bits"
  rm -rf "$work/$1/out" && mkdir -p "$work/$1/out"
  "$work/$1/same_bits" "$work/$1/out"
  [ -z "$2" ] || git worktree remove --force "$tree"
}

build old "$1"
build new "${2:-}"
different=0
for file in "$work"/old/out/*.safetensors; do
  name=$(basename "$file" .safetensors)
  if cmp -s "$file" "$work/new/out/$name.safetensors"; then result=same; else result=DIFFERENT different=1; fi
  printf '%-18s %s  %s\n' "$name" "$(sha256sum "$file" | cut -c1-16)" "$result"
done
exit $different
