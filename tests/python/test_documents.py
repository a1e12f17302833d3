"""Runs the Python code in README.md and docs/python.md. A block may leave out the imports that the README names."""
import contextlib
import io
import os
import pathlib
import re
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
IMPORTS = "import ingot\nfrom ingot import nn, optim\nimport ingot.nn.functional as F\n"


def blocks(name):
    """(line, code) of each Python block of a document."""
    text = (SOURCE / name).read_text()
    for match in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S):
        yield text.count("\n", 0, match.start(1)) + 1, match[1]


class Documents(unittest.TestCase):
    def test_blocks(self):
        count = 0
        before = os.getcwd()
        for name in ["README.md", "docs/python.md"]:
            for line, code in blocks(name):
                with self.subTest(name=name, line=line), tempfile.TemporaryDirectory() as folder:
                    os.chdir(folder)
                    try:
                        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                            exec(compile(IMPORTS + code, f"{name}:{line}", "exec"), {"__name__": "__main__"})
                    finally:
                        os.chdir(before)
                count += 1
        self.assertGreaterEqual(count, 3)


if __name__ == "__main__":
    unittest.main()
