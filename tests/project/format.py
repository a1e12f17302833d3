#!/usr/bin/env python3
"""Every C++ file has the project's format (.clang-format). Other versions of clang-format format some constructs otherwise, so this looks
for version 14 and is skipped without it (tools/setup.sh --dev).

usage: format.py SOURCE_DIR"""
import pathlib
import re
import shutil
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
program = shutil.which("clang-format-14") or shutil.which("clang-format")
version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout if program else ""
if not re.search(r"version 14\.", version):
    print("skipped: clang-format 14 is not here (tools/setup.sh --dev installs it)")
    sys.exit(77)
listed = subprocess.run(["git", "ls-files", "*.h", "*.cpp"], cwd=root, capture_output=True, text=True)
files = listed.stdout.split()
if listed.returncode or not files:
    print("skipped: this is no git checkout")
    sys.exit(77)
done = subprocess.run([program, "--dry-run", "--ferror-limit=1", *files], cwd=root, capture_output=True, text=True)
wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: warning", done.stderr, re.M)))
if wrong:
    print(f"{len(wrong)} of {len(files)} files are not formatted (make format):", *wrong, sep="\n  ")
    sys.exit(1)
print(f"{len(files)} files are formatted")
