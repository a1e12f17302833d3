#!/usr/bin/env bash
# `pip install .` in a fresh environment: the wheel holds the core beside the extension, type stubs and py.typed; `import ingot` works from
# another folder, without the source tree, in under 0.2 s. Takes minutes: it builds the library again, into build/<tag of the wheel>.
#
#   tests/python/wheel_test.sh [PYTHON] [pip's options...]
#
# Exit status 77: pip cannot fetch what builds the wheel.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${1:-python3}
shift || true
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH PYTHONDONTWRITEBYTECODE

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "wheel_test: Python 3.11 or newer is needed"; exit 1; }
"$python" -m venv "$work/venv"
cd "$work"
venv/bin/pip download --quiet --no-deps --dest "$work/tools" scikit-build-core nanobind || { echo "wheel_test: no network"; exit 77; }
venv/bin/pip install --quiet "$@" "$root"
venv/bin/pip install --quiet numpy || echo "wheel_test: without NumPy"
venv/bin/python - "$root" <<'EOF'
import os
import subprocess
import sys

import ingot

folder = os.path.dirname(ingot.__file__)
assert not folder.startswith(sys.argv[1]), folder
held = os.listdir(folder)
for name in ("libingot.so", "_ingot.pyi", "py.typed", "__init__.py", "array_api", "nn", "optim", "utils"):
    assert name in held, (name, held)
assert "softmax" in open(os.path.join(folder, "_ingot.pyi")).read()
maps = open("/proc/self/maps").read()
assert os.path.join(folder, "libingot.so") in maps, "another libingot was loaded"
model = ingot.nn.Linear(2, 1)
optimizer = ingot.optim.SGD(model.parameters(), lr=0.01)
x, y = ingot.tensor([[1.0, 2.0], [3.0, 4.0]]), ingot.tensor([[1.0], [2.0]])
losses = []
for _ in range(20):
    loss = ((model(x) - y) ** 2).mean()
    losses.append(loss.item())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
assert losses[-1] < losses[0], losses
assert ingot.softmax.__doc__ and "exp(x)" in ingot.softmax.__doc__
code = "import time; t = time.process_time(); import ingot; print(time.process_time() - t)"
times = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) for _ in range(5)]
print(f"wheel_test: {ingot.__version__}, import {min(times):.3f} s, libraries {sorted(n for n in held if '.so' in n)}")
assert min(times) < 0.2, times
EOF
