#!/usr/bin/env bash
# Installs what Ingot needs, by package name, on Debian 12+ and Ubuntu 22.04+. Does nothing when nothing is missing.
#
#   tools/setup.sh               packages to build, test and run Ingot
#   tools/setup.sh --dev         also clang, clang-format and clang-tidy
#   tools/setup.sh --cuda-text   also NVRTC, in a Python environment, for the tests that compile CUDA text (no GPU needed)
#   tools/setup.sh --torch       also PyTorch, in the same environment, the peer of bench/compare_cpu
#   tools/setup.sh --python      also what builds and tests the Python package, in the same environment
#
# The Python environment lies outside the source tree, in $INGOT_VENV (by default ~/.cache/ingot/venv).
# Without root the script prints the command to run, and stops.
set -euo pipefail

packages=(g++ cmake ninja-build libhwy-dev doctest-dev libpng-dev zlib1g-dev libjpeg-dev python3 python3-venv)
dev_packages=(clang clang-format clang-tidy)
nvrtc="nvidia-cuda-nvrtc==13.0.88"
torch="torch==2.13.0"
nanobind="nanobind==3.1.0"
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

# install_python NAME==VERSION [more...]: the first one decides whether anything is missing.
install_python() {
  local name="${1%%==*}" version="${1##*==}" found
  for found in "$venv"/lib/python3*/site-packages/"${name//-/_}-$version"*.dist-info; do
    [ -d "$found" ] && return 0
  done
  say "installing $* in $venv"
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv" || fail "could not make a Python environment in $venv"
  "$venv/bin/python" -m pip install --quiet --retries 1 --disable-pip-version-check "$@" || fail "pip could not install $*"
}

install_packages "${packages[@]}"
for option in "$@"; do
  case "$option" in
    --dev) install_packages "${dev_packages[@]}" ;;
    --cuda-text) install_python "$nvrtc" ;;
    --torch) install_python "$torch" numpy ;;
    --python) install_python "$nanobind" scikit-build-core numpy ;;
    *) fail "unknown option $option (there are --dev, --cuda-text, --torch and --python)" ;;
  esac
done
