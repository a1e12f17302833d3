"""What the tests of the program share: running it, and saying what went wrong."""
import os
import pathlib
import subprocess
import sys
import tempfile

INGOT = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]


def run(*args, cwd=None, code=0, env=None, timeout=240):
    """Runs the program; fails unless it exits with status `code`. Returns stdout and stderr."""
    full = {k: v for k, v in os.environ.items() if k != "INGOT_VENV"} | (env or {})
    done = subprocess.run([INGOT, *map(str, args)], cwd=cwd, env=full, capture_output=True, text=True, errors="replace", timeout=timeout)
    if code is not None and done.returncode != code:
        raise SystemExit(f"ingot {' '.join(map(str, args))}: left with {done.returncode}, not {code}\n{done.stdout}\n{done.stderr}")
    return done.stdout, done.stderr


def check(condition, *what):
    if not condition:
        raise SystemExit("failed: " + " ".join(map(str, what)))


def folder():
    return tempfile.TemporaryDirectory(prefix="ingot-cli-")
