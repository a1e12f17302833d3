#!/usr/bin/env python3
"""Compiles and runs the C++ code in the documents. A block without main() is a fragment: it is put into one, with
the umbrella header and `using namespace ingot` before it. A block marked ```cpp-excerpt is only shown."""
import pathlib
import tempfile

import common

o = common.options()
documents = sorted([*o.source.glob("*.md"), *(o.source / "docs").rglob("*.md")])
count = 0
with tempfile.TemporaryDirectory(prefix="ingot-documents-") as temporary:
    work = pathlib.Path(temporary)
    prefix = work / "ingot"
    common.install(o.build, prefix)
    for document in documents:
        for line, code in common.blocks(document, "cpp"):
            where = f'#line {line} "{document.relative_to(o.source)}"\n'
            if "int main" in code:
                text = where + code
            else:
                text = f"#include <ingot/ingot.h>\n#include <cstdio>\n#include <iostream>\nusing namespace ingot;\nint main() {{\n{where}{code}\n}}\n"
            (work / "block.cpp").write_text(text)
            common.run([o.compiler, "-std=c++20", *common.WARNINGS, "-Wno-unused-variable", "block.cpp", f"-I{prefix}/include",
                        f"-L{prefix}/lib", "-lingot", "-o", "block"], cwd=work)
            common.run([work / "block"], cwd=work, env=common.library_environment(prefix))
            print(f"ok: {document.relative_to(o.source)}:{line}")
            count += 1
print(f"{count} code blocks compiled and run")
