"""What the project checks share: options, a temporary installation, measured commands, code blocks of documents."""
import argparse
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time

WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Werror"]


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="g++")
    return parser.parse_args()


def compilers(first):
    """The compiler of the build, and the other one where it is installed."""
    found = [first]
    for name in ("g++", "clang++-14", "clang++"):
        path = shutil.which(name)
        known = {version(c) for c in found}
        if path and version(path) not in known:
            found.append(path)
    return found


def version(compiler):
    return subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout.splitlines()[0].split(" ", 1)[1]


def install(build, prefix):
    run(["cmake", "--install", str(build), "--prefix", str(prefix)])


def run(command, **options):
    """Runs a command, returns what it printed; a failure ends the check with the command and its output."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        line = command if isinstance(command, str) else " ".join(map(str, command))
        print(f"failed ({done.returncode}): {line}\n{done.stdout}")
        sys.exit(1)
    return done.stdout


def cost(command, runs, **options):
    """(CPU seconds, wall seconds), each the least of several runs: what else the machine does hardly counts."""
    cpu, wall = [], []
    for _ in range(runs):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        run(command, **options)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall.append(time.perf_counter() - start)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(cpu), min(wall)


class Budget:
    """Prints each figure beside its limit and remembers whether one was over."""

    def __init__(self):
        self.over = False

    def check(self, what, value, limit, unit):
        self.over |= value >= limit
        print(f"{'OVER' if value >= limit else 'ok':>5}  {what}: {value:.3g} {unit} (budget {limit:g})", flush=True)

    def finish(self):
        sys.exit(1 if self.over else 0)


def blocks(document, language):
    """The fenced code blocks of one language in a Markdown file, with their first line numbers."""
    text = document.read_text()
    for match in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.M | re.S):
        yield text.count("\n", 0, match.start(1)) + 1, match[1]


def block(document, language, containing):
    """The one code block of that language that contains a text."""
    found = [code for _, code in blocks(document, language) if containing in code]
    if len(found) != 1:
        print(f"{document.name}: expected one {language} block with '{containing}', found {len(found)}")
        sys.exit(1)
    return found[0]


def library_environment(prefix):
    return dict(os.environ, LD_LIBRARY_PATH=str(prefix / "lib"))
