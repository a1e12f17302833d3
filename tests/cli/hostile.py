#!/usr/bin/env python3
"""Files, paths and recipes from strangers, given to the program: each ends in a result or in one sentence with the documented exit status, in
little time and memory. The 400 files are those of tests/python/test_hostile.py; with `all`, every command gets every file."""
import json
import os
import pathlib
import resource
import subprocess
import sys
import threading
import time

from common import INGOT, SOURCE, check, folder, run

sys.path.insert(0, str(SOURCE / "tests/python"))
import test_hostile  # noqa: E402

RAW = ("json.exception", "std::", "bad_alloc", "filesystem error", "basic_string", "vector::", "terminate called", "\x1b")
MEMORY = 256 << 20  # and four times the file, beyond what a small file takes


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))  # the machine's, whatever happens
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def measured(args, cwd):
    """Exit status, stdout, stderr, seconds of processor time and bytes at most of a run."""
    with open(cwd / f"out{threading.get_ident()}", "w+b") as out, open(cwd / f"err{threading.get_ident()}", "w+b") as err:
        child = subprocess.Popen([INGOT, *map(str, args)], cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=limited)
        watch = threading.Timer(60, child.kill)
        watch.start()
        _, status, usage = os.wait4(child.pid, 0)
        watch.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        return (child.returncode, out.read().decode(errors="replace"), err.read().decode(errors="replace"), usage.ru_utime + usage.ru_stime,
                usage.ru_maxrss << 10)


COMMANDS = {
    "inspect": (lambda f: ["inspect", f, "--values"], {0, 6}),
    "train": (lambda f: ["train", "spirals", "--set", "steps=1", "--from", f, "--out", f + ".run", "--fresh", "--quiet"], {6}),
    "predict": (lambda f: ["predict", f, "x"], {6}),
    "eval": (lambda f: ["eval", f], {6}),
}


def files(home, every):
    good = {}
    (home / "small.npy").write_bytes(test_hostile.npy("<f4", (2,), b"\0" * 8))
    for name, (args, _) in COMMANDS.items():
        good[name] = measured(args("small.npy"), home)
    cases = []
    for i, (name, data) in enumerate(test_hostile.files()):
        (home / name).write_bytes(data)
        others = ["train", "predict", "eval"]
        cases += [(c, name, len(data)) for c in (["inspect"] + (others if every or i < 40 else [others[i % 3]]))]
    wrong, mutex = [], threading.Lock()

    def work():
        while True:
            with mutex:
                if not cases:
                    return
                command, name, size = cases.pop()
            args, allowed = COMMANDS[command]
            code, out, err, seconds, memory = measured(args(name), home)
            _, _, _, base_seconds, base_memory = good[command]
            complaint = [f"exit status {code}"] if code not in allowed else []
            complaint += [f"says {w!r}" for w in RAW if w in err or w in out]
            if code and (len(err.strip().splitlines()) != 1 or not err.startswith("ingot: ")):
                complaint.append("is not one sentence")
            if seconds > 1 + 2 * base_seconds:
                complaint.append(f"took {seconds:.1f} s")
            if memory > base_memory + MEMORY + 4 * size:
                complaint.append(f"took {memory >> 20} MiB")
            if complaint:
                with mutex:
                    wrong.append(f"{command} {name}: {', '.join(complaint)}: {err[:300]}")

    start = len(cases)
    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(not wrong, "\n" + "\n".join(wrong[:20]))
    check(start >= 800, start)


def many_tensors(home):
    """A table of 120,000 rows takes time in proportion to its rows."""
    def write(count):
        (home / "many.safetensors").write_bytes(
            test_hostile.safetensors({f"t{i}": test_hostile.entry(shape=(0,), offsets=(0, 0)) for i in range(count)}))
        code, out, err, seconds, _ = measured(["inspect", "many.safetensors"], home)
        check(code == 0 and len(out.splitlines()) == count + 2, code, err)
        return seconds
    few, many = write(10_000), write(120_000)
    check(many < 24 * few + 0.2, "120,000 tensors:", many, "s; 10,000:", few, "s")


def pipes(home):
    """A FIFO in the place of a file: the program does not wait for a writer."""
    def sentence(code, *args):
        start = time.time()
        _, err = run(*args, cwd=home, code=code, timeout=30)
        check(len(err.strip().splitlines()) == 1 and time.time() - start < 20, args, err)
        return err
    for name in ("pipe", "pipe.safetensors", "pipe.json", "pipe.idx", "t.txt"):
        os.mkfifo(home / name)
    for name in ("pipe", "pipe.safetensors", "pipe.json", "pipe.idx"):
        check("pipe" in sentence(3, "inspect", name), name)
        check("pipe" in sentence(3, "train", name, "--out", "o") if name == "pipe.json" else True, name)
    sentence(3, "train", "chars", "--set", "data=t.txt", "--out", "o")
    (home / "model").mkdir()
    os.mkfifo(home / "model/model.safetensors")
    sentence(6, "eval", "model"), sentence(6, "predict", "model", "x")
    sentence(6, "train", "spirals", "--from", "model", "--out", "o")
    (home / "sw").mkdir()
    os.mkfifo(home / "sw/sweep.json")
    sentence(3, "sweep", "spirals", "--set", "lr=0.1,0.2", "--epochs", 1, "--out", "sw")
    run("train", "spirals", "--set", "steps=20", "--out", "run", "--quiet", cwd=home)
    for name in ("run.json", "metrics.jsonl"):
        (home / "run" / name).unlink()
        os.mkfifo(home / "run" / name)
        if name == "run.json":  # recipe.json has the settings
            run("train", "spirals", "--set", "steps=20", "--resume", "--out", "run", "--quiet", cwd=home, timeout=30)
        else:
            sentence(3, "train", "spirals", "--set", "steps=20", "--resume", "--out", "run", "--quiet")


def paths(home):
    """Links in a circle, names that are too long: a sentence of the program's, and no library's."""
    os.symlink("loop", home / "loop")
    for path in ("loop", "x" * 300, "x/" * 3000 + "x"):
        for args in (["inspect", path], ["eval", path], ["predict", path, "y"], ["train", path, "--out", "o"], ["train", "spirals", "--from", path, "--out", "o"],
                     ["train", "chars", "--set", "data=" + path, "--out", "o"], ["train", "images", "--set", "data=" + path, "--set", "image_size=16", "--out", "o"]):
            _, err = run(*args, cwd=home, code=3)
            check(len(err.strip().splitlines()) == 1 and not any(w in err for w in RAW), args[:2], err)
        _, err = run("train", "spirals", "--out", path, cwd=home, code=8)
        check(not any(w in err for w in RAW), err)
    run("train", "spirals", "--set", "steps=5", "--out", "ok", "--quiet", cwd=home)
    out = home / "images"
    (out / "one").mkdir(parents=True)
    os.symlink("nowhere", out / "gone")
    os.symlink("circle", out / "circle")
    _, err = run("train", "images", "--set", "data=images", "--set", "image_size=16", "--out", "o", cwd=home, code=3)
    check("images/one" in err and not any(w in err for w in RAW), err)


def recipes(home):
    """Recipes that are not JSON, or are large and deep."""
    cases = {b'{"task": ': "ends early", b'{"epochs": 1e999}': "too large", b'{"task":"points\xff"}': "not JSON", b"\xff\xfe{}": "not JSON", b"": "ends early",
             b'{\n "lr": 1,\n "lr" 2}': "line 3", b"[" * 200_000: "ends early", b"[1]": "not a recipe", b'{"epochs": "x"}': "epochs",
             b"[" + b"0," * 6_000_000 + b"0]": "bytes"}
    for text, words in cases.items():
        (home / "r.json").write_bytes(text)
        for command in ("train", "plan"):
            _, err = run(command, "r.json", *(["--out", "o"] if command == "train" else []), cwd=home, code=None, timeout=20)
            check(words in err and len(err.strip().splitlines()) == 1 and not any(w in err for w in RAW) and "parse error" not in err, text[:40], err)
        code = 6 if words == "bytes" else 2
        run("plan", "r.json", cwd=home, code=code)


with folder() as name:
    home = pathlib.Path(name)
    for part in (many_tensors, pipes, paths, recipes):
        start = time.time()
        (home / part.__name__).mkdir()
        part(home / part.__name__)
        print(f"{part.__name__}: {time.time() - start:.1f} s")
    start = time.time()
    (home / "files").mkdir()
    files(home / "files", "all" in sys.argv[2:])
    print(f"files: {time.time() - start:.1f} s")
