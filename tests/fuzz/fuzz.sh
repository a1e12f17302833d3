#!/usr/bin/env bash
# Fuzzes the readers of files with libFuzzer under ASan and UBSan (clang 14 or newer; tools/setup.sh --dev).
#
#   tests/fuzz/fuzz.sh [--seconds N] [--merge] [TARGET...]     (60 seconds each, all targets)
#   --merge puts what was found into tests/fuzz/corpus, only the inputs that reach something new.
#
# The readers are compiled here with the sanitizers; the rest is libingot of build/release, as it is. What a fuzzer finds along
# the way is kept in build/fuzz/found; an input that fails in build/fuzz/crash-*.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=60 merge=
targets=()
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds) seconds="$2" && shift ;;
    --merge) merge=1 ;;
    *) targets+=("$1") ;;
  esac
  shift
done
[ ${#targets[@]} -gt 0 ] || targets=(safetensors npy npz pt idx cifar csv json tokenizer image)
clang=$(command -v clang++-14 || command -v clang++) || { echo "fuzz: clang is not there (tools/setup.sh --dev)"; exit 1; }
out=build/fuzz
mkdir -p "$out"
flags=(-std=c++20 -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -Iinclude -Isrc -DINGOT_CODECS_INSIDE=1)

# The objects that all targets share, compiled again where the source is newer.
objects=()
for source in src/io/{atomic_file,budget,codecs,file,json,npy,pickle,pt,safetensors,zip}.cpp src/io/codecs/*.cpp src/data/{readers,resize,tokenizers}.cpp tests/fuzz/targets.cpp; do
  object="$out/$(echo "$source" | tr / _).o"
  objects+=("$object")
  if [ ! "$object" -nt "$source" ]; then
    echo "fuzz: compiling $source"
    "$clang" "${flags[@]}" -fsanitize=fuzzer-no-link -c "$source" -o "$object"
  fi
done
failed=0
for target in "${targets[@]}"; do
  program="$out/ingot-fuzz-$target"
  "$clang" "${flags[@]}" -fsanitize=fuzzer -DINGOT_FUZZ_TARGET="\"$target\"" tests/fuzz/fuzzer.cpp "${objects[@]}" -o "$program" \
    -Lbuild/release/lib -Wl,-rpath,"$PWD/build/release/lib" -lingot -lz -lpng -ljpeg -ldl
  mkdir -p "$out/found/$target"
  echo "fuzz: $target for $seconds s"
  if "$program" -max_total_time="$seconds" -rss_limit_mb=4096 -malloc_limit_mb=2048 -timeout=120 -max_len=20000 -artifact_prefix="$out/crash-$target-" \
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
