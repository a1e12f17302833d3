#!/usr/bin/env python3
"""Checks which room includes which (docs/architecture.md, "Who may see whom"), and a few rules of the house:

- a room includes its own headers and those of the rooms it may see, always by full name ("graph/node.h");
- nothing outside src/backend/cuda includes a CUDA header;
- python/, src/cli, examples/ and bench/ see only the public headers, <ingot/...>;
- every source file under src/ is listed in its room's sources.cmake, and every room has a README.md;
- under src/, nothing points into the node that a temporary reference (node_of(), current()) holds: a thread that writes
  to the tensor may free it. What the types refuse anyway is not looked for.
- only src/base/env.cpp reads the environment (tests, examples and benchmarks may).

usage: include_scan.py SOURCE_DIR | include_scan.py --self-test
"""
import pathlib
import re
import sys

# Room -> the rooms it may see besides itself.
SEES = {
    "base": [],
    "graph": ["base"],
    "codegen": ["base", "graph"],
    "runtime": ["base", "graph", "codegen"],
    "ops": ["base", "graph"],
    "autograd": ["base", "graph", "ops"],
    "compile": ["base", "graph", "codegen", "runtime"],
    "backend": ["base", "runtime", "backend/cpu", "backend/null"],
    "backend/null": ["base", "graph", "codegen", "runtime"],
    "backend/cpu": ["base", "graph", "codegen", "runtime"],
    "backend/cuda": ["base", "graph", "codegen", "runtime"],
    "nn": ["base", "graph", "ops", "autograd"],
    "optim": ["base", "graph", "ops", "autograd"],
    "data": ["base", "graph", "ops", "io"],
    "io": ["base", "graph", "ops", "nn", "optim"],
    "distributed": ["base", "graph", "ops", "autograd", "nn", "optim", "runtime"],
    "cli": [],
}
# Single headers a room may see although it may not see their room: the narrow doors between rooms.
DOORS = {
    "graph": {"runtime/storage.h"},  # a computed node holds its value
    "ops": {"runtime/storage.h"},  # host data in and out
    "io": {"runtime/backend.h", "runtime/storage.h"},  # the name of the tuning file; tensors are read into place
    "data": {"runtime/storage.h"},  # batches are written into their tensors
}
# The public headers without tensors in them: any room may include them. Those that declare what the front end does are
# the front end's; graph, runtime and compile define functions of the others (eval, explain, memory statistics).
BASE_HEADERS = {"device.h", "devices.h", "dtype.h", "environment.h", "error.h", "shape.h", "source.h", "version.h"}
FRONT_END_HEADERS = {"ingot.h", "ops.h", "autograd.h", "nn.h", "models.h", "optim.h", "data.h", "io.h"}
MIDDLE = {"graph", "runtime", "compile"}
FRONT_END = {"ops", "autograd", "nn", "optim", "data", "io", "distributed", "cli"}
CUDA_HEADER = re.compile(r"^(cuda|nvrtc|cublas|cudnn|nccl|nvml|curand|cufft|cusolver|cusparse|nvJitLink|cupti)\w*(\.h|/)")
NODE_OF = r"[^;{}\n]*\b(?:node_of|current|held_input)\([^;{}\n]*\)"
OUTLIVES = re.compile(
    rf"\bNode\s*\*\s*\w+\s*={NODE_OF}\.get\(\)\s*[;,]"
    rf"|&\s*\w+\s*={NODE_OF}->\w+\s*[;,]"
    rf"|\bfor\s*\([^;{{}}\n]*[^:]:[^:]{NODE_OF}->\w+\s*\)")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
ENVIRONMENT = re.compile(r"\b(?:secure_)?getenv\b|\benviron\b")
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\\\n])\'', re.S)


def room_of(path):
    """'backend/cpu' for 'backend/cpu/matmul.h', 'graph' for 'graph/node.h', None where there is no room."""
    parts = path.split("/")
    two = "/".join(parts[:2])
    return two if two in SEES else parts[0] if parts[0] in SEES else None


def problem(path, quote, header):
    """What is wrong with this include in the file at this path (relative to the project), or None."""
    if CUDA_HEADER.match(header) and not path.startswith("src/backend/cuda/"):
        return "only src/backend/cuda may include a CUDA header"
    if path.startswith("bench/cpu_backend/") and header.startswith(("backend/cpu/", "codegen/", "runtime/", "graph/")):
        return None  # the workshop of the CPU kernels
    if path.startswith(("python/", "src/cli/", "examples/", "bench/")) and quote == '"':
        return None if header.startswith("ingot/") or "/" not in header else "only public headers, <ingot/...>, are seen here"
    if path.startswith("tests/"):
        return None
    if header.startswith("ingot/"):
        name = header[len("ingot/"):]
        room = room_of(path[len("src/"):]) if path.startswith("src/") else None
        if room is None or room in FRONT_END or name in BASE_HEADERS or header in DOORS.get(room, ()):
            return None
        if room in MIDDLE:
            return f"{room} may not see the front end" if name in FRONT_END_HEADERS else None
        return f"{room} may include the base headers of ingot/ only ({', '.join(sorted(BASE_HEADERS))})"
    if quote == "<":
        return None
    if path.startswith("include/"):
        return "a public header includes public headers only"
    if header == "hwy/foreach_target.h" or header.startswith(("hwy/", "oneapi/", "dnnl")):
        return None
    room, target = room_of(path[len("src/"):]), room_of(header)
    if target is None:
        return 'write the room too, as in "graph/node.h"'
    if target == room or target in SEES[room] or header in DOORS.get(room, ()):
        return None
    return f"{room} may not see {target} (it may see: {', '.join(SEES[room]) or 'nothing'})"


def environment_reads(path, text):
    """The lines on which a file of the library reads the environment past base/env.h."""
    if path == "src/base/env.cpp" or not path.startswith(("include/", "src/", "python/")):
        return []
    code = COMMENT_OR_TEXT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    return [code.count("\n", 0, match.start()) + 1 for match in ENVIRONMENT.finditer(code)]


def scan(root):
    problems, files = [], 0
    for folder in ("include", "src", "tests", "examples", "bench", "python"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in {".h", ".cpp", ".def", ".cu", ".inc", ".cc"}:
                continue
            files += 1
            path, text = file.relative_to(root).as_posix(), file.read_text()
            for match in INCLUDE.finditer(text):
                wrong = problem(path, match[1], match[2])
                if wrong:
                    line = text.count("\n", 0, match.start(2)) + 1
                    problems.append(f"{path}:{line}: includes {match[2]}: {wrong}")
            for match in OUTLIVES.finditer(text if folder == "src" else ""):
                line = text.count("\n", 0, match.start()) + 1
                problems.append(f"{path}:{line}: outlives the reference it was taken from: {match[0].strip()}")
            for line in environment_reads(path, text):
                problems.append(f"{path}:{line}: reads the environment: use base/env.h, or <ingot/environment.h>")
    for room in SEES:
        folder = root / "src" / room
        if not folder.is_dir():
            continue
        if not (folder / "README.md").exists():
            problems.append(f"src/{room}: has no README.md")
        # A list names its files relative to its own folder.
        lists = [(root / "src", "src/CMakeLists.txt")] + [(f.parent, f) for f in [*folder.rglob("*.cmake"), *folder.glob("CMakeLists.txt")]]
        lists = [(folder if at == root / "src" else at, (root / f).read_text()) for at, f in lists]
        for file in sorted(folder.glob("*.cpp") if room == "backend" else folder.rglob("*.cpp")):
            if not any(file.is_relative_to(at) and re.search(rf"[/\s]{re.escape(file.relative_to(at).as_posix())}\b", names) for at, names in lists):
                problems.append(f"{file.relative_to(root).as_posix()}: is not listed in src/{room}/sources.cmake")
    return files, problems


def self_test():
    good = [
        ("src/graph/node.h", '"', "ingot/shape.h"),
        ("src/compile/fuse.cpp", '"', "runtime/backend.h"),
        ("src/ops/reduce.cpp", '"', "ingot/tensor.h"),
        ("src/compile/run.cpp", '"', "ingot/runtime.h"),
        ("src/backend/cuda/stream.cpp", "<", "cuda.h"),
        ("src/backend/cpu/kernels.cpp", '"', "hwy/foreach_target.h"),
        ("examples/a.cpp", "<", "ingot/ingot.h"),
    ]
    bad = [
        ("src/base/shape.cpp", '"', "graph/node.h"),
        ("src/backend/cpu/map.cpp", '"', "backend/null/null.h"),
        ("src/backend/cpu/map.cpp", '"', "ops/reduce.h"),
        ("src/backend/cpu/map.cpp", '"', "ingot/tensor.h"),
        ("src/compile/fuse.cpp", '"', "backend/cpu/cpu.h"),
        ("src/compile/fuse.cpp", '"', "ingot/ops.h"),
        ("src/runtime/device.cpp", "<", "cuda_runtime.h"),
        ("tests/x.cpp", "<", "cublasLt.h"),
        ("src/graph/node.cpp", '"', "node.h"),
        ("include/ingot/tensor.h", '"', "graph/node.h"),
        ("examples/a.cpp", '"', "graph/node.h"),
    ]
    for fine in ("NodeRef n = node_of(x, op, loc);", "Dims d = node_of(x)->shape;", "Node* n = held.get();",
                 "for (int64_t s : n->shape)", "f(node_of(x)->shape);", "const Dims& s = n->shape;"):
        assert not OUTLIVES.search(fine), fine
    for wrong in ("Node* n = node_of(x, op, loc).get();", "const Dims& s = node_of(x)->shape;",
                  "for (int64_t s : node_of(x, op, loc)->shape)", "auto& s = t.cell()->current()->storage;"):
        assert OUTLIVES.search(wrong), wrong
    for entry in good:
        assert problem(*entry) is None, (entry, problem(*entry))
    for entry in bad:
        assert problem(*entry), entry
    source = '// getenv is not used\n/* environ\n*/ auto s = "a \\" getenv";\nchar q = \'"\'; auto a = std::getenv("X");\nauto b = secure_getenv("X"), c = environ[0];\n'
    for path in ("src/io/file.cpp", "src/base/env.h", "src/cli/system.cpp", "src/backend/cuda/runtime/driver.cpp", "python/src/module.cpp", "include/ingot/io.h"):
        assert environment_reads(path, source) == [4, 5, 5], (path, environment_reads(path, source))
    for path in ("src/base/env.cpp", "tests/main.cpp", "bench/a.cpp", "examples/a.cpp"):
        assert environment_reads(path, source) == [], path
    print(f"include scan: {len(good) + len(bad)} planted includes judged rightly, and so is what reads the environment")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        sys.exit(0)
    file_count, found = scan(pathlib.Path(sys.argv[1]))
    print("\n".join(found) if found else f"include scan: {file_count} files, all includes allowed")
    sys.exit(1 if found else 0)
