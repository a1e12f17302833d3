#!/usr/bin/env python3
"""The README shows examples/train.cpp verbatim.

usage: readme_example.py SOURCE_DIR"""
import pathlib
import sys

source = pathlib.Path(sys.argv[1])
program = (source / "examples/train.cpp").read_text()
if f"```cpp-excerpt\n{program}```\n" not in (source / "README.md").read_text():
    sys.exit("README.md does not show examples/train.cpp as it is: copy the file into its code block")
print("README.md shows examples/train.cpp")
