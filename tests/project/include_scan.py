#!/usr/bin/env python3
"""Checks which room includes which (docs/architecture.md, "Who may see whom"), and a few rules of the house:

- a room includes its own headers and those of the rooms it may see, always by full name ("graph/node.h");
- nothing outside src/backend/cuda includes a CUDA header;
- what a room's header declares, that room defines (a public header's functions, the rooms in DEFINES); rooms see each
  other in one direction only. tests/project/link_graph.py looks at the compiled objects for the same;
- thread_local appears in the files in THREAD_LOCAL alone: what changes what a line does is in graph/thread_state.h;
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

import definitions

# Room -> the rooms it may see besides itself, in the order of docs/architecture.md, "Who may see whom".
SEES = {
    "base": [],
    "graph": ["base"],
    "codegen": ["base", "graph"],
    "runtime": ["base", "graph", "codegen"],
    "compile": ["base", "graph", "codegen", "runtime"],
    "backend/null": ["base", "graph", "codegen", "runtime"],
    "backend/cpu": ["base", "graph", "codegen", "runtime"],
    "backend/cuda": ["base", "graph", "codegen", "runtime"],
    "wiring": ["base", "graph", "ops", "autograd", "runtime", "compile", "backend/cpu", "backend/null"],
    "ops": ["base", "graph"],
    "autograd": ["base", "graph", "ops"],
    "nn": ["base", "graph", "ops", "autograd"],
    "optim": ["base", "graph", "ops", "autograd"],
    "io": ["base", "graph", "ops", "nn", "optim"],
    "data": ["base", "graph", "ops", "io"],
    "train": ["base", "graph", "ops", "autograd", "nn", "optim", "io", "data"],
    "distributed": ["base", "graph", "ops", "autograd", "nn", "optim", "runtime"],
    "cli": [],
}
# Single headers a room may see although it may not see their room. All lead down.
DOORS = {
    "ops": {"runtime/storage.h"},  # host data in and out
    "io": {"runtime/storage.h"},  # tensors are read into place
    "data": {"runtime/storage.h"},  # batches are written into their tensors
    "train": {"runtime/backend.h"},  # the name of the tuning file, which a checkpoint keeps
}
# Rooms whose public functions (include/ingot) a room calls besides those that it sees. All lead down, too.
CALLS = {
    "ops": ["runtime"],
    "autograd": ["runtime"],
    "nn": ["runtime", "compile"],
    "optim": ["runtime"],
    "io": ["runtime"],
    "data": ["runtime"],
    "train": ["runtime"],
    "distributed": [],
}
# What wiring defines for rooms below it, and no other room may.
WIRED = {"ingot::make_engine", "ingot::make_builtin_backend"}
# Public header -> the rooms that define its functions. A header that is not named has none, or represents a folder of its room.
DEFINES = {
    "activation.h": ["ops"], "amp.h": ["ops", "optim"], "attention.h": ["ops"], "autograd.h": ["graph", "ops", "autograd"],
    "capture.h": ["graph", "compile"], "checkpoint.h": ["train"], "conv.h": ["ops"], "creation.h": ["ops"],
    "device.h": ["base", "graph", "runtime"], "devices.h": ["runtime"], "distributed.h": ["distributed"], "dropout.h": ["ops"],
    "dtype.h": ["base"], "elementwise.h": ["ops"], "environment.h": ["base"], "error.h": ["base"], "fit.h": ["train"],
    "indexing.h": ["ops"], "inplace.h": ["ops"], "interop.h": ["ops"], "io.h": ["io"], "linalg.h": ["ops"], "loss.h": ["ops"],
    "movement.h": ["ops"], "norm.h": ["ops"], "pool.h": ["ops"], "profile.h": ["runtime", "compile"],
    "random.h": ["graph", "ops"], "reductions.h": ["ops"], "resample.h": ["ops"], "rnn.h": ["ops"],
    "runtime.h": ["graph", "compile", "backend/cpu", "ops"], "shape.h": ["base"], "sorting.h": ["ops"], "source.h": ["base"],
    "state.h": ["ops"], "tensor.h": ["ops", "autograd"], "texts.h": ["ops"], "version.h": ["base"], "data/": ["data"], "models/": ["nn"],
    "nn/": ["nn"], "optim/": ["optim"],
}
# Files with thread-local variables. Everything that changes what a line of the user's program does is in ThreadState.
THREAD_LOCAL = {
    "src/base/thread.h": "the macro",
    "src/base/source.cpp": "the user's line, which Error asks for",
    "src/graph/thread_state.h": "ThreadState",
    "src/graph/thread_state.cpp": "ThreadState and ThreadLists",
    "src/graph/node.cpp": "free lists of nodes and cells; what a thread that ends leaves to others",
    "src/backend/cpu/support/threads.cpp": "scratch memory of the CPU's threads, and which thread is inside a job",
    "src/backend/cpu/conv/dnnl/module.cpp": "the stream of oneDNN, in a separate library",
    "src/backend/cuda/runtime/gpu.cpp": "the driver's current context, as this thread last set it",
}
# The public headers without tensors in them: any room may include them. Those that declare what the front end does are
# the front end's.
BASE_HEADERS = {"device.h", "devices.h", "dtype.h", "environment.h", "error.h", "shape.h", "source.h", "version.h"}
FRONT_END_HEADERS = {"ingot.h", "ops.h", "autograd.h", "nn.h", "models.h", "optim.h", "data.h", "io.h",
                     "activation.h", "attention.h", "conv.h", "creation.h", "dropout.h", "elementwise.h", "indexing.h", "inplace.h", "linalg.h",
                     "loss.h", "movement.h", "norm.h", "pool.h", "random.h", "reductions.h", "resample.h", "rnn.h", "sorting.h"}
MIDDLE = {"graph", "runtime", "compile"}
FRONT_END = {"ops", "autograd", "nn", "optim", "data", "io", "train", "distributed", "cli"}
CUDA_HEADER = re.compile(r"^(cuda|nvrtc|cublas|cudnn|nccl|nvml|curand|cufft|cusolver|cusparse|nvJitLink|cupti)\w*(\.h|/)")
NODE_OF = r"[^;{}\n]*\b(?:node_of|current|held_input)\([^;{}\n]*\)"
OUTLIVES = re.compile(
    rf"\bNode\s*\*\s*\w+\s*={NODE_OF}\.get\(\)\s*[;,]"
    rf"|&\s*\w+\s*={NODE_OF}->\w+\s*[;,]"
    rf"|\bfor\s*\([^;{{}}\n]*[^:]:[^:]{NODE_OF}->\w+\s*\)")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
THREAD = re.compile(r"\b(?:thread_local|INGOT_THREAD_LOCAL)\b")
ENVIRONMENT = re.compile(r"\b(?:secure_)?getenv\b|\benviron\b")
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\\\n])\'', re.S)


def room_of(path):
    """'backend/cpu' for 'backend/cpu/matmul.h', 'graph' for 'graph/node.h', None where there is no room."""
    parts = path.split("/")
    two = "/".join(parts[:2])
    return two if two in SEES else parts[0] if parts[0] in SEES else None


def rooms_of(public_header):
    """The rooms that define the functions of ingot/..."""
    folder = public_header.split("/")[0] + "/"
    return DEFINES.get(public_header) or DEFINES.get(folder, [])


def cycle():
    """A circle of rooms that see or call each other, or None."""
    def walk(room, path):
        if room in path:
            return path[path.index(room):] + [room]
        for other in SEES[room] + CALLS.get(room, []):
            found = walk(other, path + [room])
            if found:
                return found
        return None
    return next(filter(None, (walk(room, []) for room in SEES)), None)


def misplaced(files):
    """What is defined in another room than the one whose header declares it. files: path -> text."""
    def room(path):
        return room_of(path[len("src/"):]) if path.startswith("src/") else None
    homes = {path: rooms_of(path[len("include/ingot/"):]) for path in files if path.startswith("include/ingot/")}
    return [f"{path}:{line}: {what}; {room(path)} is not the room of that header"
            for path, line, name, what in definitions.misplaced(files, room, homes) if not (room(path) == "wiring" and name in WIRED)]


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
            return f"{room} may not see the front end" if name in FRONT_END_HEADERS and room not in rooms_of(name) else None
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


def lines_with(pattern, text):
    """The lines on which code has the pattern."""
    code = COMMENT_OR_TEXT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    return [code.count("\n", 0, match.start()) + 1 for match in pattern.finditer(code)]


def environment_reads(path, text):
    """The lines on which a file of the library reads the environment past base/env.h."""
    if path == "src/base/env.cpp" or not path.startswith(("include/", "src/", "python/")):
        return []
    return lines_with(ENVIRONMENT, text)


def thread_locals(path, text):
    """The lines on which a file that is not listed has thread-local state."""
    if path in THREAD_LOCAL or not path.startswith(("include/", "src/", "python/")):
        return []
    return lines_with(THREAD, text)


def scan(root):
    problems, files, texts = [], 0, {}
    for folder in ("include", "src", "tests", "examples", "bench", "python"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in {".h", ".cpp", ".def", ".cu", ".inc", ".cc"}:
                continue
            files += 1
            path, text = file.relative_to(root).as_posix(), file.read_text()
            if folder in ("include", "src"):
                texts[path] = text
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
            for line in thread_locals(path, text):
                problems.append(f"{path}:{line}: has thread-local state: see graph/thread_state.h, or list the file with its reason")
    problems += misplaced(texts)
    problems += [f"{path}: has no thread-local state any more: take it from THREAD_LOCAL" for path in THREAD_LOCAL
                 if not lines_with(THREAD, texts.get(path, ""))]
    if cycle():
        problems.append("rooms see each other in a circle: " + " -> ".join(cycle()))
    for room in SEES:
        folder = root / "src" / room
        if not folder.is_dir():
            continue
        if not (folder / "README.md").exists():
            problems.append(f"src/{room}: has no README.md")
        # A list names its files relative to its own folder.
        lists = [(root / "src", "src/CMakeLists.txt")] + [(f.parent, f) for f in [*folder.rglob("*.cmake"), *folder.glob("CMakeLists.txt")]]
        lists = [(folder if at == root / "src" else at, (root / f).read_text()) for at, f in lists]
        for file in sorted(folder.rglob("*.cpp")):
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
    for path, lines in (("src/io/file.cpp", [3, 4]), ("src/graph/thread_state.cpp", []), ("tests/main.cpp", [])):
        found = thread_locals(path, "// thread_local\nint x;\nthread_local int a;\nINGOT_THREAD_LOCAL int b;\n")
        assert found == lines, (path, found)
    definitions.self_test(misplaced)
    SEES["base"].append("ops")
    assert cycle() == ["base", "ops", "base"], cycle()
    SEES["base"].remove("ops")
    print(f"include scan: {len(good) + len(bad)} planted includes judged rightly, and so are definitions in other rooms, thread-local state and what reads the environment")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        sys.exit(0)
    file_count, found = scan(pathlib.Path(sys.argv[1]))
    print("\n".join(found) if found else f"include scan: {file_count} files, all includes allowed")
    sys.exit(1 if found else 0)
