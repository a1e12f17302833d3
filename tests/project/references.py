#!/usr/bin/env python3
"""What the documents refer to exists: every relative link and its anchor, and every source file that is
named in backticks (`graph/node.h`, `trace.cpp`).

usage: references.py SOURCE_DIR | references.py --self-test"""
import pathlib
import re
import subprocess
import sys
import tempfile

LINK = re.compile(r"\]\(([^)\s]+)\)")
FILE = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:cpp|h|def|py|inc|json|sh|txt))`")
# Files that are named although they are no part of the sources: written by programs, or examples of names.
OTHERS = {"hello.cpp", "recipe.json", "run.json", "sweep.json", "CMakeLists.txt", "cuda.h"}


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def anchors(path):
    """The anchors that code hosts make of a document's headings."""
    headings = re.findall(r"^#+ (.+)$", without_code(path.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def problems_in(document, names, root):
    text = without_code(document.read_text())
    where = document.relative_to(root)
    for link in LINK.findall(text):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path) if path else document
        if not target.exists():
            yield f"{where}: no such file: {link}"
        elif anchor and anchor not in anchors(target):
            yield f"{where}: no such heading: {link}"
    for name in FILE.findall(text):
        if name not in OTHERS and not any(known == name or known.endswith("/" + name) for known in names):
            yield f"{where}: no source file is called {name}"


def check(root):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root,
                            capture_output=True, text=True)
    if listed.returncode == 0:
        files = listed.stdout.split("\n")
    else:  # an unpacked archive
        files = [str(p.relative_to(root)) for p in root.rglob("*") if "build" not in p.parts]
    names = [f for f in files if f and (root / f).is_file()]
    documents = [root / f for f in names if f.endswith(".md")]
    return [p for document in documents for p in problems_in(document, names, root)]


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "a.h").touch()
        good = "# One thing\n[x](#one-thing) [y](b.md#two) `a.h` [z](https://x.org/y)\n```\n[q](none.md)\n```\n"
        (root / "a.md").write_text(good)
        (root / "b.md").write_text("## Two\n")
        assert check(root) == [], check(root)
        for bad in ["[x](#other)", "[x](c.md)", "[x](b.md#three)", "`c.h`", "`d/a.h`"]:
            (root / "a.md").write_text(good + bad)
            assert len(check(root)) == 1, bad


if sys.argv[1:] == ["--self-test"]:
    self_test()
else:
    found = check(pathlib.Path(sys.argv[1]).resolve())
    if found:
        sys.exit("\n".join(found))
