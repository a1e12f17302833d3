#!/usr/bin/env python3
"""Runs of ingot train are never lost or mixed up: folders that hold a run, changed settings and data, two processes, full disks, hostile names, labels and files."""
import json
import os
import pathlib
import resource
import struct
import subprocess
import time

from common import INGOT, check, folder, run


def contents(path):
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file() and p.name != ".lock"}


def refused(home, code, words, *args, where="run", **more):
    """It exits with the code and one line that has these words, and leaves the run as it was."""
    before = contents(home / where)
    _, err = run(*args, "--out", where, cwd=home, code=code, **more)
    check(len(err.strip().splitlines()) == 1, args, "gave more than one line:", err)
    for w in words:
        check(w in err, args, "does not say", repr(w), ":", err)
    check(contents(home / where) == before, args, "changed the run")


def overwriting(home):
    """Finding checkpoints, it says so; --fresh keeps them; --resume wants the same run."""
    run("train", "spirals", "--epochs", 4, "--out", "run", cwd=home)
    first = contents(home / "run")
    again = ["there are checkpoints of step 40 in run", "--resume", "--fresh"]
    refused(home, 7, again, "train", "spirals", "--epochs", 4)
    refused(home, 7, again, "train", "spirals", "--epochs", 2000, "--set", "seed=2")
    for change, shown in ((["--lr", 0.5], "lr 0.02 -> 0.5"), (["--set", "seed=9"], "seed 1 -> 9"), (["--batch", 80], "batch "),
                          (["--set", "weight_decay=0.3"], "weight_decay"), (["--freeze", "head.*"], "--freeze (none) -> head.*")):
        refused(home, 7, ["other settings", shown, "--accept-changes", "run/recipe.json"], "train", "spirals", "--epochs", 4, *change, "--resume")
    refused(home, 7, ["epochs 4 -> 5"], "train", "spirals", "--epochs", 5, "--resume")
    refused(home, 2, ["--fresh", "do not go together"], "train", "spirals", "--resume", "--fresh")
    out, _ = run("train", "spirals", "--epochs", 6, "--resume", "--accept-changes", "--out", "run", cwd=home)
    check("resumed at step 40" in out and "epochs 4 -> 6" in out, out)
    longer = contents(home / "run")
    out, _ = run("train", "spirals", "--epochs", 4, "--fresh", "--out", "run", cwd=home)
    check("run/old-1" in out, out)
    check(contents(home / "run/old-1") == longer, "--fresh did not keep the old run")
    check((home / "run/model.safetensors").read_bytes() == first["model.safetensors"], "--fresh did not begin anew")
    # Without its checkpoints a trained network is not overwritten either.
    for f in (home / "run/checkpoints").glob("*"):
        f.unlink()
    refused(home, 7, ["trained network", "--fresh"], "train", "spirals", "--epochs", 4)
    refused(home, 7, ["no checkpoint to resume from", "--fresh"], "train", "spirals", "--epochs", 4, "--resume")


def lost_identity(home):
    """Without a usable run.json the settings are recipe.json's; without either, nothing is continued unasked."""
    home = home / "lost"
    home.mkdir()
    run("train", "spirals", "--epochs", 4, "--out", "run", "--quiet", cwd=home)
    other = ["train", "spirals", "--epochs", 5, "--set", "seed=9", "--resume"]
    for text in (None, "{bad", "{}", "[1]", '{"settings": {}}', '{"settings": 3}'):
        (home / "run/run.json").unlink(missing_ok=True) if text is None else (home / "run/run.json").write_text(text)
        refused(home, 7, ["other settings", "seed 1 -> 9"], *other)
    for text in (None, "[", "{}", "[]"):
        (home / "run/recipe.json").unlink(missing_ok=True) if text is None else (home / "run/recipe.json").write_text(text)
        for bad in ("[1]", "{}", None):
            (home / "run/run.json").unlink(missing_ok=True)
            if bad:
                (home / "run/run.json").write_text(bad)
            if text == "{}":  # a recipe that sets nothing: the defaults
                refused(home, 7, ["other settings"], *other)
            else:
                refused(home, 7, ["does not record the settings", "--accept-changes", "--fresh"], *other)
    out, _ = run(*other, "--accept-changes", "--out", "run", cwd=home)
    check("resumed at step 40" in out and "not compared" in out, out)
    # With recipe.json alone the settings are compared; data in files cannot be.
    small = ["train", "chars", "--set", "steps=6", "--set", "width=16", "--set", "context=16", "--batch", 4, "--set", "data=t.txt", "--quiet"]
    (home / "t.txt").write_text("abcdefgh " * 3000)
    run(*small, "--out", "text", cwd=home)
    whole = json.loads((home / "text/run.json").read_text())
    for record in ({k: v for k, v in whole.items() if k != "data"}, {}):
        (home / "text/run.json").write_text(json.dumps(record))
        refused(home, 7, ["the data", "not known", "--accept-changes"], *small, "--resume", where="text")
    out, _ = run(*small[:-1], "--resume", "--accept-changes", "--out", "text", cwd=home)
    check("the data" in out, out)


def sweeps_and_runs(home):
    """A sweep does not go into the folder of a run, nor a run into that of a sweep."""
    home = home / "mixed"
    home.mkdir()
    trials = ["sweep", "spirals", "--set", "lr=0.01,0.02", "--epochs", 1]
    run("train", "spirals", "--epochs", 1, "--out", "run", "--quiet", cwd=home)
    refused(home, 7, ["holds a run", "--out"], *trials)
    run(*trials, "--out", "sweep", cwd=home)
    for more in ([], ["--resume"], ["--fresh"]):
        refused(home, 7, ["holds a sweep", "--out"], "train", "spirals", "--epochs", 1, *more, where="sweep")
    run(*trials, "--out", "sweep", cwd=home)


def other_data(home):
    """The same settings with another text of the same size are another run."""
    small = ["--set", "steps=6", "--set", "width=16", "--set", "context=16", "--batch", 4, "--set", "data=t.txt"]
    (home / "t.txt").write_text("abcdefgh " * 3000)
    run("train", "chars", *small, "--out", "text", cwd=home)
    (home / "t.txt").write_text("hgfedcba " * 3000)
    refused(home, 7, ["the content of the data"], "train", "chars", *small, "--resume", where="text")
    # True epochs: six steps of four are a small part of one.
    lines = [json.loads(l) for l in (home / "text/metrics.jsonl").read_text().splitlines()]
    check(all(abs(l["epoch"] - l["step"] / lines[0]["step"] * lines[0]["epoch"]) < 1e-9 and l["epoch"] < 0.1 for l in lines), lines)


def damaged(home):
    run("train", "spirals", "--epochs", 4, "--out", "hurt", cwd=home)
    for f in (home / "hurt/checkpoints").glob("*.safetensors"):
        f.write_bytes(f.read_bytes()[:100])
    before = contents(home / "hurt/checkpoints")
    _, err = run("train", "spirals", "--epochs", 4, "--resume", "--out", "hurt", cwd=home, code=6)
    check("--fresh" in err and contents(home / "hurt/checkpoints") == before, "damaged checkpoints:", err)


def two_processes(home):
    long = ["train", "spirals", "--epochs", "100000", "--out", "busy", "--quiet"]
    first = subprocess.Popen([INGOT, *long], cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(400):
            if (home / "busy/metrics.jsonl").exists():
                break
            time.sleep(0.02)
        for more in ([], ["--resume"], ["--fresh"]):
            _, err = run(*long, *more, cwd=home, code=7)
            check("another process works in busy" in err and str(first.pid) in err, err)
    finally:
        first.terminate()
        _, err = first.communicate(timeout=60)
    check(first.returncode == 143, "the first process:", first.returncode, err)


def limited(size):
    """For a child: no file larger than this, as on a disk without room. Signals are as a shell leaves them."""
    def prepare():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return prepare


def no_room(home):
    """Checkpoints that cannot be written end no training; what is left unwritten at the end has a separate status."""
    args = [INGOT, "train", "spirals", "--set", "width=256", "--epochs", "20", "--out", "full", "--quiet"]
    done = subprocess.run(args, cwd=home, capture_output=True, text=True, preexec_fn=limited(120_000))
    check(done.returncode == 8, "a limit on files:", done.returncode, done.stderr)
    check("is not saved" in done.stderr and "The training continues" in done.stderr and done.stderr.count("is not saved") >= 5, done.stderr)
    check(not list((home / "full/checkpoints").glob("*.tmp*")) and not (home / "full/model.safetensors").exists(), "pieces were left")
    done = subprocess.run([*args, "--resume"], cwd=home, capture_output=True, text=True)
    check(done.returncode == 0 and (home / "full/model.safetensors").exists(), "with room again:", done.stderr)
    # So little that not even code can be made: one sentence, no signal.
    done = subprocess.run([*args[:-3], "--out", "tiny"], cwd=home, capture_output=True, text=True, preexec_fn=limited(1000))
    check(done.returncode == 8 and len(done.stderr.strip().splitlines()) <= 30, done.returncode, done.stderr[-500:])


def png(path, value):
    import zlib
    rows = b"".join(b"\0" + bytes([value] * 48) for _ in range(16))
    chunk = lambda k, d: struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d))
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def names(home):
    """Names of folders that are not UTF-8 or very long, and folders without images."""
    images = ["train", "images", "--set", "image_size=16", "--set", "width=4", "--set", "layers=1", "--epochs", 1, "--batch", 4, "--quiet"]
    for data, classes in {"odd": [b"caf\xe9", b"tea"], "long": [b"n" * 250, b"tea"], b"d\xe9p\xf4t": [b"one", b"two"]}.items():
        for k, name in enumerate(classes):
            where = os.path.join(os.fsencode(home), os.fsencode(data), name)
            os.makedirs(where)
            for i in range(12):
                png(os.path.join(where, b"%d.png" % i), 40 + 150 * k + i)
    refused(home, 2, ["caf\\xe9", "UTF-8", "Rename"], *images, "--set", "data=odd")
    run(*images, "--set", "data=long", "--out", "long-run", cwd=home)
    check((home / "long-run/samples/00.png").exists(), "samples are not numbered")
    done = subprocess.run([os.fsencode(INGOT), *[os.fsencode(str(a)) for a in images], b"--set", b"data=d\xe9p\xf4t", b"--out", b"r\xe9sum\xe9"], cwd=home, capture_output=True)
    check(done.returncode == 0, "a path that is not UTF-8:", done.stderr)
    done = subprocess.run([os.fsencode(INGOT), b"predict", b"r\xe9sum\xe9", b"d\xe9p\xf4t", b"--json"], cwd=home, capture_output=True)
    check(done.returncode == 0 and all(json.loads(l) for l in done.stdout.splitlines()), "predict --json:", done.stderr)
    (home / "long/empty").mkdir()
    refused(home, 3, ["long/empty", "has no PNG or JPEG", "remove the folder"], *images, "--set", "data=long")


def labels(home):
    """Labels outside the classes are refused when the data is opened."""
    data = home / "data/mnist"
    data.mkdir(parents=True)
    for value, record in ((-100, 9), (-5, 9), (-1, 0), (10, 15), (2**31 - 1, 3)):
        for part, count in (("train", 32), ("t10k", 16)):
            (data / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">iiii", 2051, count, 28, 28) + bytes(count * 784))
            all_labels = [i % 10 for i in range(count)]
            if part == "t10k":
                all_labels[record] = value
            (data / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">ii", 0x0C01, count) + struct.pack(f">{count}i", *all_labels))
        refused(home, 6, ["data/mnist", str(value)], "train", "digits", "--batch", 8, "--set", "steps=2", "--set", "width=4", "--quiet", where="labels")


def safetensors(path, metadata, tensors):
    header, data = {"__metadata__": metadata}, b""
    for name, values in tensors.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def strangers(home):
    """Files and numbers of strangers: networks that would take forever to build, control characters, amounts out of range."""
    card = json.dumps({"classes": [], "channels": 1, "side": 28, "count": 2})
    for recipe in ({"task": "points", "data": "spirals", "model": "mlp", "layers": 10**9}, {"task": "text", "model": "gpt", "layers": 9999, "vocabulary": 256},
                   {"task": "points", "data": "spirals", "model": "mlp", "width": 10**11}, {"layers": -3}, {"task": 5}):
        safetensors(home / "huge.safetensors", {"ingot.recipe": json.dumps(recipe), "ingot.name": "x", "ingot.card": card}, {"a": [1.0]})
        _, err = run("predict", "huge.safetensors", "x", cwd=home, code=6, timeout=20)
        check("huge.safetensors" in err and len(err.splitlines()) == 1, recipe, err)
    for bad in ("[]", "{", '{"classes": 3}', '{"classes": [], "channels": "x", "side": 1, "count": 1}'):
        safetensors(home / "card.safetensors", {"ingot.recipe": "{}", "ingot.name": "x", "ingot.card": bad}, {"a": [1.0]})
        run("predict", "card.safetensors", "x", cwd=home, code=6)
    safetensors(home / "title.safetensors", {"note": "\x1b]0;owned\x07"}, {"w\x1b[31m": [1.0], "c\u009b2J": [2.0]})
    out, _ = run("inspect", "title.safetensors", cwd=home)
    check("\x1b" not in out and "\u009b" not in out and "\\x1b]0;owned" in out and "w\\x1b[31m" in out, repr(out))
    _, err = run("inspect", "no\x1b[2Jfile", cwd=home, code=3)
    check("\x1b" not in err and "\\x1b[2J" in err, repr(err))
    for args in (["--epochs", 2**63 - 1], ["--set", f"batch={2**64 - 1}"], ["--set", f"epochs={2**63}"], ["--set", "layers=1000000000"], ["--set", "workers=100000"],
                 ["--memory", "1e30"], ["--memory", "1e300GiB"]):
        _, err = run("train", "spirals", *args, "--out", "numbers", cwd=home, code=2)
        check(len(err.splitlines()) == 1 and ("too large" in err or "more memory than any machine has" in err), args, err)
    (home / "sw").mkdir()
    for text in ('{"trials": 3}', '{"trials": [{}]}', "[", "[]", '{"trials": [{"number": "x"}]}'):
        (home / "sw/sweep.json").write_text(text)
        _, err = run("sweep", "spirals", "--set", "lr=0.1,0.2", "--epochs", 1, "--out", "sw", cwd=home, code=6)
        check("sw/sweep.json is damaged" in err, text, err)
    # A log that something else has written to does not stop a run.
    run("train", "spirals", "--epochs", 2, "--out", "log", cwd=home)
    with open(home / "log/metrics.jsonl", "a") as f:
        f.write('{"step": "x"}\n{"step": 3, "loss": []}\n[1]\nno json\n')
    run("train", "spirals", "--epochs", 2, "--out", "log", "--resume", cwd=home)


with folder() as name:
    home = pathlib.Path(name)
    for part in (overwriting, lost_identity, sweeps_and_runs, other_data, damaged, two_processes, no_room, names, labels, strangers):
        start = time.time()
        part(home)
        print(f"{part.__name__}: {time.time() - start:.1f} s")
