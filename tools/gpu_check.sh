#!/usr/bin/env bash
# Runs on the machine with the GPU, on what tools/gpu_bundle.sh put together: tests first, then benchmarks, a table last.
#
#   gpu_check.sh [FOLDER] [STAGE...]      stages: info gpu ops random models more numerics program bench time sanitize python; without a name: info gpu ops
#                                         random models bench, in this order
#   BENCH='REGEX' picks benchmark cases; SECONDS_EACH bounds each stage (240). Logs go to $OUT, or to ./gpu_logs.
set -u
here="$(cd "${1:-build/gpu}" && pwd)"
shift || true
stages=("$@")
[ ${#stages[@]} -gt 0 ] || stages=(info gpu ops random models bench)
logs="${OUT:-$PWD/gpu_logs}"
limit="${SECONDS_EACH:-240}"
mkdir -p "$logs"
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export INGOT_CUDA_PLUGIN="$here/lib/libingot_cuda.so"
# A fresh folder for this run: in a known folder another user could have put machine code before. INGOT_CACHE_DIR names one to keep.
umask 077
if [ -z "${INGOT_CACHE_DIR:-}" ]; then
  INGOT_CACHE_DIR="$(mktemp -d)" || exit 1
  trap 'rm -rf "$INGOT_CACHE_DIR"' EXIT
fi
export INGOT_CACHE_DIR
mkdir -p "$INGOT_CACHE_DIR"
[ -f "$here/kernels.tar.gz" ] && [ ! -d "$INGOT_CACHE_DIR/cubin" ] && tar -C "$INGOT_CACHE_DIR" --no-same-owner --no-same-permissions -xzf "$here/kernels.tar.gz"
# A Python environment's libraries, where the system has none.
if [ -z "${INGOT_VENV:-}" ] && command -v python3 >/dev/null; then
  INGOT_VENV="$(python3 -c 'import sys; print(sys.prefix)')" && export INGOT_VENV
fi
table=""

# stage NAME COMMAND...: runs it with a limit, keeps the log, notes pass or fail.
stage() {
  local name="$1" begin rc what
  shift
  begin=$SECONDS
  timeout -k 5 "$limit" "$@" >"$logs/$name.log" 2>&1
  rc=$?
  case $rc in 0) what=pass ;; 124 | 137) what="TIMEOUT" ;; *) what="FAIL ($rc)" ;; esac
  table+=$(printf '%-18s %-12s %4d s  %s' "$name" "$what" "$((SECONDS - begin))" "$(grep -aE 'assertions:' "$logs/$name.log" | tail -1)")$'\n'
  echo "=== $name: $what"
  tail -n "${LINES_EACH:-12}" "$logs/$name.log" | cut -c1-220
}

for s in "${stages[@]}"; do
  case "$s" in
    info)
      { nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm --format=csv; ldconfig -p | grep -E 'libcuda\.so|libnvrtc\.so|cublasLt|libcudnn\.so'; ls "$INGOT_CACHE_DIR"/cubin 2>/dev/null | wc -l; } >"$logs/info.log" 2>&1
      cat "$logs/info.log"
      ;;
    gpu) stage gpu "$here/bin/test_gpu" ;;
    program)  # examples, and the program's commands that need no data
      for e in "$here"/bin/example_*; do stage "$(basename "$e")" "$e" --device cuda; done
      stage profile env INGOT_TEST_DEVICE=cuda "$here/bin/test_profile"
      stage profile_gpt2 "$here/bin/ingot" profile gpt2 --device cuda --steps 5
      stage program_bench "$here/bin/ingot" bench --seconds 1
      stage plan_gpt2 "$here/bin/ingot" plan gpt2 --device cuda ;;
    ops)
      # Compiling is most of the work, and done by one thread per process: several processes share the cases.
      stage ops bash -c 'fails=0; for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do INGOT_TEST_DEVICE=cuda INGOT_TEST_SHARD=$i/16 "$0/bin/test_op" -tc="*forward*,*computed*" >"$1/ops$i.log" 2>&1 & pids[$i]=$!; done
        for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do wait "${pids[$i]}" || fails=1; grep -a "assertions:" "$1/ops$i.log"; done
        grep -ahE "ERROR:|threw" "$1"/ops[0-9]*.log | cut -c1-200 | sort | uniq -c | sort -rn | head -${FAILURES:-25}; exit $fails' "$here" "$logs"
      ;;
    random) stage random env INGOT_TEST_DEVICE=cuda INGOT_RANDOM_PROGRAMS="${PROGRAMS:-60}" "$here/bin/test_random_programs" ;;
    models)
      stage optim env INGOT_TEST_DEVICE=cuda "$here/bin/test_optim"
      stage nn env INGOT_TEST_DEVICE=cuda "$here/bin/test_nn"
      for name in layers_golden optimisers guard models fit mixed; do stage "$name" env INGOT_TEST_DEVICE=cuda "$here/bin/test_$name"; done
      stage data env INGOT_TEST_DEVICE=cuda "$here/bin/test_data_device"
      ;;
    more)
      for t in neural_op golden golden_index models semantics; do stage "$t" env INGOT_TEST_DEVICE=cuda "$here/bin/test_$t"; done
      ;;
    numerics) # curves beside PyTorch's, and planned beside measured memory
      export INGOT_TEST_DEVICE=cuda
      stage parity python3 "$here/tests/training/parity.py" --program "$here/bin/parity_train" gpt lstm --steps 200
      stage parity_bf16 python3 "$here/tests/training/parity.py" --program "$here/bin/parity_train" gpt lstm --steps 100 --bf16
      stage plan python3 "$here/tests/cli/plan.py" "$here/bin/ingot" --all --device cuda
      unset INGOT_TEST_DEVICE
      ;;
    bench)
      stage bench "$here/bin/ingot-bench-gpu" --only "${BENCH:-.}"
      ;;
    python) # the package brings its own libraries
      unset INGOT_CUDA_PLUGIN
      stage python_cuda env PYTHONPATH="$here/python" python3 "$here/tests/python/test_cuda.py" -v
      stage python_examples env PYTHONPATH="$here/python" INGOT_TEST_DEVICE=cuda python3 "$here/tests/python/test_examples.py"
      for name in interop training; do stage "python_$name" env PYTHONPATH="$here/python" python3 "$here/tests/python/test_$name.py"; done
      stage python_bench python3 "$here/bench/compare_gpu" --python --bench "$here/bin/ingot-bench-gpu" --only "${BENCH:-.}"
      export INGOT_CUDA_PLUGIN="$here/lib/libingot_cuda.so"
      ;;
    time) stage time env INGOT_DEBUG=time "$here/bin/ingot-bench-gpu" --quick --only "${BENCH:-gpt2-124M}" ;;
    sanitize)
      stage memcheck compute-sanitizer --tool memcheck "$here/bin/test_gpu" -tc='b:*,d:*,e:*'
      stage racecheck compute-sanitizer --tool racecheck "$here/bin/test_gpu" -tc='d:*'
      ;;
  esac
done
cp "$INGOT_CACHE_DIR"/tuning-*.txt "$logs/" 2>/dev/null
echo
echo "--- benchmarks"
cat "$logs/bench.log" 2>/dev/null | cut -c1-200
echo "--- stages"
printf '%s' "$table"
