#!/usr/bin/env python3
"""Installs Ingot in a temporary place and builds the README's program outside the tree in both ways the README
shows: with its CMakeLists.txt, and with its one-line command. The build of that one file has a budget."""
import os
import pathlib
import tempfile

import common

o = common.options()
readme = o.source / "README.md"
budget = common.Budget()
with tempfile.TemporaryDirectory(prefix="ingot-package-") as temporary:
    home = pathlib.Path(temporary)
    prefix, project = home / "ingot", home / "hello"
    common.install(o.build, prefix)
    project.mkdir()
    (project / "hello.cpp").write_text(common.block(readme, "cpp", "int main"))
    (project / "CMakeLists.txt").write_text(common.block(readme, "cmake", "find_package(ingot"))

    flags = " ".join(common.WARNINGS)
    common.run(["cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
                f"-DCMAKE_CXX_COMPILER={o.compiler}", f"-DCMAKE_CXX_FLAGS={flags}"], cwd=home)
    cpu, _ = common.cost(["cmake", "--build", project / "build", "--clean-first"], 3, env=dict(os.environ, CCACHE_DISABLE="1"))
    budget.check("hello.cpp built by find_package(ingot)", cpu, 2.0, "s")
    by_cmake = common.run([project / "build/hello"])

    command = common.block(readme, "sh", "-lingot").strip().splitlines()
    command = next(line for line in command if "-lingot" in line)
    environment = dict(os.environ, HOME=str(home))
    for compiler in common.compilers(o.compiler):
        line = command.replace("g++", f"{compiler} {flags}", 1)
        cpu, _ = common.cost(line, 3, shell=True, cwd=project, env=environment)
        budget.check(f"hello.cpp compiled and linked by {os.path.basename(compiler)}", cpu, 2.0, "s")
        by_command = common.run([project / "hello"])
        if by_command != by_cmake:
            print(f"the two programs print different things:\n{by_cmake}\n{by_command}")
            budget.over = True
print(by_cmake, end="")
budget.finish()
