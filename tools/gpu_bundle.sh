#!/usr/bin/env bash
# Puts what a machine with a GPU needs to test and measure Ingot into one folder: the libraries, the test programs, the
# benchmark and a cache of kernels compiled here. Nothing has to be built or installed there; tools/gpu_check.sh runs it.
#
#   tools/gpu_bundle.sh [BUILD_FOLDER] [TARGET_FOLDER]     (build/release, build/gpu)
#   NO_KERNELS=1 leaves the cache of kernels out.
#   PYTHON_PACKAGE=FOLDER takes the package FOLDER/ingot along (a wheel for that machine's Python, unpacked), with its tests.
set -euo pipefail
cd "$(dirname "$0")/.."
build="${1:-build/release}" target="${2:-build/gpu}"
programs=(bin/ingot bin/ingot-bench-gpu tests/test_gpu tests/test_op tests/test_random_programs tests/test_optim tests/test_data_device
  tests/test_nn tests/test_training tests/test_neural_op tests/test_models tests/test_golden tests/test_golden_index
  tests/test_semantics tests/parity_train tests/test_layers_golden tests/test_optimisers tests/test_guard tests/test_fit tests/test_mixed
  tests/test_profile bin/example_{tensors,same_code,devices,cnn,lstm,gpt,fine_tuning,custom_layer,custom_gradient,custom_optimizer,layers_on_devices,data_parallel,mixed_precision,numpy})

rm -rf "$target"
mkdir -p "$target/lib" "$target/bin"
for program in "${programs[@]}"; do
  if [ -x "$build/$program" ]; then cp "$build/$program" "$target/bin/"; else echo "gpu-bundle: no $program in $build, left out"; fi
done
# Under the name that programs ask for; no links, which do not travel everywhere.
soname=$(readelf -d "$build/lib/libingot.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
cp -L "$build/lib/libingot.so" "$target/lib/$soname"
cp "$build/lib/libingot_cuda.so" "$target/lib/"
[ ! -f "$build/lib/libingot_codecs.so" ] || cp "$build/lib/libingot_codecs.so" "$target/lib/"
# Libraries of this machine that another may not have, by the names the programs ask for.
for library in $(ldd "$target"/lib/* "$target"/bin/* | awk '/libhwy|libpng|libjpeg|libz\./ {print $3}' | sort -u); do
  cp -L "$library" "$target/lib/$(basename "$library")"
done
strip "$target"/bin/* "$target"/lib/* 2>/dev/null || true
cp tools/gpu_check.sh "$target/"
mkdir -p "$target/tests/training" "$target/tests/cli" "$target/bench/peers"
cp tests/training/*.py "$target/tests/training/"
cp tests/cli/*.py "$target/tests/cli/"
cp bench/compare_gpu "$target/bench/" && cp bench/peers/*.py "$target/bench/peers/"
if [ -n "${PYTHON_PACKAGE:-}" ]; then
  mkdir -p "$target/python" "$target/tests/python"
  cp -rL "$PYTHON_PACKAGE/ingot" "$target/python/"
  cp tests/python/common.py tests/python/test_*.py "$target/tests/python/"
  mkdir -p "$target/examples" && cp -r examples/python "$target/examples/"
fi

# Kernels of the benchmarks and of the op tests, compiled for the H200 by the NVRTC of this machine (no GPU is needed): a
# machine with the same NVRTC finds them in the cache.
fake="$PWD/$build/lib/libfake_cuda.so"
if [ -z "${NO_KERNELS:-}" ] && [ -f "$fake" ]; then
  export FAKE_CUDA=null INGOT_CUDA_DRIVER="$fake" INGOT_CUBLASLT="$fake" INGOT_CUDNN="$fake" INGOT_CACHE_DIR="$PWD/$build/kernel_cache" LD_LIBRARY_PATH="$PWD/$target/lib"
  echo "gpu-bundle: compiling kernels for sm_90 (results of these runs mean nothing)"
  timeout 900 "$target/bin/ingot-bench-gpu" --quick --only "${BENCH_ONLY:-.}" >/dev/null || true
  for i in 0 1; do
    INGOT_TEST_SHARD=$i/2 INGOT_TEST_DEVICE=cuda timeout "${OP_SECONDS:-300}" "$target/bin/test_op" -tc='*forward*,*computed*' >/dev/null 2>&1 &
  done
  wait
  tar -C "$INGOT_CACHE_DIR" -czf "$target/kernels.tar.gz" cubin
fi
du -sh "$target" | sed 's/^/gpu-bundle: /'
