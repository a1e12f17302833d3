#!/usr/bin/env python3
"""The array API standard's own test suite (data-apis/array-api-tests, a copy outside this project) over ingot.array_api.

    PYTHONPATH=build/release/python python tests/python/array_api_suite.py FOLDER [FILE...] [pytest's options]

FOLDER is the copy, with its submodule array-api; FILEs are names such as test_linalg.py (default: all). It runs version 2024.12 of the
standard with 20 examples a test, the same in each run. What needs complex types and fft is left out, as neither is there: the types by
the suite's own switch, the tests of complex special cases and of fft's names, which do not look at it, by name. docs/python.md lists what
fails and why.
ARRAY_API_TESTS_MODULE=array_api_compat.torch runs another library in the same setting.
Needs pytest, pytest-json-report, hypothesis and ndindex."""
import os
import pathlib
import subprocess
import sys

# Parts of the names of tests that need complex types or fft.
LEFT_OUT = ["test_fft.py", "[fft-", "imag(x_i)", "test_vecdot_conj"]


# This file is a plug-in of the pytest that it starts.


def pytest_sessionstart(session):
    # After the suite's own settings: a busy machine is no failure.
    from hypothesis import HealthCheck, settings

    settings.register_profile("patient", settings(), suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")


def pytest_collection_modifyitems(config, items):
    import pytest

    for item in items:
        if any(part in item.nodeid for part in LEFT_OUT):
            item.add_marker(pytest.mark.skip(reason="no complex types, no fft"))


def main():
    if len(sys.argv) < 2 or not (pathlib.Path(sys.argv[1]) / "array_api_tests").is_dir():
        sys.exit(__doc__)
    folder, rest = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    files = [f"array_api_tests/{a}" for a in rest if a.startswith("test_")] or ["array_api_tests"]
    paths = [str(pathlib.Path(p).resolve()) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    paths.append(str(pathlib.Path(__file__).resolve().parent))
    module = os.environ.get("ARRAY_API_TESTS_MODULE", "ingot.array_api")
    environment = dict(os.environ, ARRAY_API_TESTS_MODULE=module, ARRAY_API_TESTS_VERSION="2024.12",
                       ARRAY_API_TESTS_SKIP_DTYPES="complex64,complex128", PYTHONPATH=os.pathsep.join(paths))
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-rf", "-p", "no:cacheprovider", "-p", "array_api_suite",
               "--max-examples", "20", "--disable-deadline", "--derandomize", "--disable-extension", "fft", "--skips-file", os.devnull,
               *(a for a in rest if not a.startswith("test_")), *files]
    return subprocess.run(command, cwd=folder, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
