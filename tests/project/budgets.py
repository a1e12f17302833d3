#!/usr/bin/env python3
"""The budgets of a small and quick library: header compile time, stripped size, start of a program."""
import os
import pathlib
import shutil
import statistics
import tempfile

import common

o = common.options()
budget = common.Budget()
with tempfile.TemporaryDirectory(prefix="ingot-budgets-") as temporary:
    work = pathlib.Path(temporary)
    prefix = work / "ingot"
    common.install(o.build, prefix)

    (work / "header.cpp").write_text("#include <ingot/ingot.h>\n")
    for compiler in common.compilers(o.compiler):
        command = [compiler, "-std=c++20", "-O0", *common.WARNINGS, f"-I{prefix}/include", "-c", "header.cpp", "-o", "header.o"]
        cpu, _ = common.cost(command, 9, cwd=work)
        budget.check(f"#include <ingot/ingot.h> with {os.path.basename(compiler)} -O0", cpu, 1.0, "s")

    library = work / "libingot.so"
    shutil.copy((prefix / "lib/libingot.so").resolve(), library)
    common.run(["strip", library])
    budget.check("libingot.so, stripped", library.stat().st_size / 1e6, 10.0, "MB")

    programs = {"an empty program": "#include <ingot/ingot.h>\nint main() { return ingot::version() == nullptr; }\n",
                "the README's program": common.block(o.source / "README.md", "cpp", "int main")}
    for name, code in programs.items():
        (work / "start.cpp").write_text(code)
        common.run([o.compiler, "-std=c++20", "start.cpp", f"-I{prefix}/include", f"-L{prefix}/lib", "-lingot", "-o", "start"], cwd=work)
        environment = common.library_environment(prefix)
        runs = [common.cost([work / "start"], 1, env=environment) for _ in range(21)]
        budget.check(f"{name}, start to end, median CPU time", 1e3 * statistics.median(cpu for cpu, _ in runs), 20, "ms")
        budget.check(f"{name}, start to end, least wall time", 1e3 * min(wall for _, wall in runs), 20, "ms")
budget.finish()
