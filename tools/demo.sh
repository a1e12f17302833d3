#!/usr/bin/env bash
# What `make demo` shows: a training, its report and predictions; with a GPU, how much faster it is.
#   tools/demo.sh PROGRAM [cuda]      cuda: without a GPU it says what is missing, and fails
set -euo pipefail
ingot="$1" wanted="${2:-}"

if "$ingot" devices --json | grep -q '"cuda'; then
  echo "demo: the same training step on the CPU and on the GPU"
  "$ingot" bench fashion cifar
  gpu=1
elif [ "$wanted" = cuda ]; then
  echo "demo: there is no GPU that Ingot can use:" >&2
  "$ingot" devices >&2
  exit 1
fi
"$ingot" train fashion --out out/fashion --fresh
echo "demo: predictions of the network on test images"
"$ingot" predict out/fashion out/fashion/samples/0[0-4].png --top 1
if [ -z "${gpu:-}" ]; then
  echo "demo: this was the CPU; there is no GPU that Ingot can use here. On a machine with an NVIDIA GPU, \`make gpu\` installs what is needed and trains on it."
fi
