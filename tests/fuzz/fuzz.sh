#!/usr/bin/env bash
# Fuzzes the readers of files and of foreign memory with libFuzzer under ASan and UBSan (clang 14 or newer; tools/setup.sh --dev).
#
#   tests/fuzz/fuzz.sh [--seconds N] [--merge] [TARGET...]     (60 seconds each, all targets)
#   --list names the targets.
#   --merge puts what was found into tests/fuzz/corpus, only the inputs that reach something new.
#
# The readers are compiled here with the sanitizers; the rest is libingot of build/release, as it is. What a fuzzer finds along
# the way is kept in build/fuzz/found; an input that fails in build/fuzz/crash-*.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=60 merge=
all=(safetensors npy npz pt idx cifar csv json tokenizer image checkpoint index_json recipe card tuning cubin buffers)
targets=()
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds) seconds="$2" && shift ;;
    --merge) merge=1 ;;
    --list) printf "%s\n" "${all[@]}" && exit ;;
    *) targets+=("$1") ;;
  esac
  shift
done
[ ${#targets[@]} -gt 0 ] || targets=("${all[@]}")
# More time for one input than any file of 20 kB needs, and more memory than a file of that size justifies.
limits=(-timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=512)
clang=$(command -v clang++-14 || command -v clang++) || { echo "fuzz: clang is missing (tools/setup.sh --dev)"; exit 1; }
out=build/fuzz
mkdir -p "$out"
flags=(-std=c++20 -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -Iinclude -Isrc -DINGOT_CODECS_INSIDE=1 -DINGOT_FUZZ_PROGRAM=1)

# The objects that all targets share, compiled again where something they are made from is newer.
objects=()
sources=(src/io/{atomic_file,budget,checkpoint,codecs,file,json,lock,npy,pickle,pt,safetensors,text,weights,zip}.cpp src/io/codecs/*.cpp
  src/data/{loader,readers,resize,tokenizers}.cpp src/nn/module_state.cpp src/optim/{ema,grad_scaler,schedule,slots,state}.cpp
  src/cli/{files,format,models,recipe,step,task,trained}.cpp
  src/backend/cuda/runtime/{private_cache,tuning}.cpp src/base/sha256.cpp src/ops/{common,interop}.cpp python/src/foreign.cpp
  tests/fuzz/{buffer_targets,cuda_targets,file_targets,program_targets,targets}.cpp)
# Is the object older than anything it was made from, or not there?
stale() {
  [ -e "$1" ] && [ -e "$1.d" ] || return 0
  local file
  for file in $(sed 's/^[^:]*://; s/\\$//' "$1.d"); do [ "$1" -nt "$file" ] || return 0; done
  return 1
}
for source in "${sources[@]}"; do
  object="$out/$(echo "$source" | tr / _).o"
  objects+=("$object")
  if stale "$object"; then
    echo "fuzz: compiling $source"
    "$clang" "${flags[@]}" -fsanitize=fuzzer-no-link -MMD -MF "$object.d" -c "$source" -o "$object"
  fi
done
# What targets write to files stays in memory.
export TMPDIR
TMPDIR=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)" ingot-fuzz-XXXXXX)
trap 'rm -rf "$TMPDIR"' EXIT
TIMEFORMAT="%U s of processor time"
failed=0
for target in "${targets[@]}"; do
  program="$out/ingot-fuzz-$target"
  "$clang" "${flags[@]}" -fsanitize=fuzzer -DINGOT_FUZZ_TARGET="\"$target\"" tests/fuzz/fuzzer.cpp "${objects[@]}" -o "$program" \
    -Lbuild/release/lib -Wl,-rpath,"$PWD/build/release/lib" -lingot -lz -lpng -ljpeg -ldl
  mkdir -p "$out/found/$target"
  echo "fuzz: $target for $seconds s"
  if time "$program" -max_total_time="$seconds" "${limits[@]}" -max_len=20000 -artifact_prefix="$out/crash-$target-" \
    -print_final_stats=1 "$out/found/$target" "tests/fuzz/corpus/$target" >"$out/$target.log" 2>&1; then
    grep -E "stat::number_of_executed_units|cov:" "$out/$target.log" | tail -2 | sed "s/^/fuzz: $target: /"
    [ -z "$merge" ] || "$program" -merge=1 -max_len=6000 "tests/fuzz/corpus/$target" "$out/found/$target" >>"$out/$target.log" 2>&1
  else
    echo "fuzz: $target FAILED"
    tail -40 "$out/$target.log"
    failed=1
  fi
done
exit $failed
