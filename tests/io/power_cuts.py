#!/usr/bin/env python3
"""Losses of power, simulated. A training is recorded (recorder.cpp), its power is cut at a random point of the record, and the folder is made as a
disk may hold it then (disk.py). Looked at there: every file that is written whole is whole, what had been written when the program went further is
there, and so are as many checkpoints as are kept. Then the training is resumed from that folder, recorded again and cut again. It has to end with the
bits of a run that nobody touched.

Some further cuts are of a lying disk, which syncs nothing. Anything may be missing or damaged there; the training may refuse to resume or begin anew,
but it may not come to other weights, nor pass over a damaged checkpoint in silence.

usage: power_cuts.py library|asynchronous|program|python RECORDER PROGRAM [--cuts N] [--seed N]
"""
import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

import disk


class Library:
    """resume_program: C++, checkpoints in the middle of epochs too, weights at the end."""
    keep, checkpoints, weights, growing, refused = 2, "run/", "weights.safetensors", (), {3}

    def command(self, program):
        return [program, "run", "weights.safetensors"]

    def complete(self, root):
        pass


class Asynchronous(Library):
    """The same, with a thread that writes."""

    def command(self, program):
        return [*super().command(program), "--asynchronous"]


class Program(Library):
    """ingot train: recipe.json, run.json, metrics.jsonl and the report as well, in a folder that it makes itself."""
    checkpoints, weights, refused = "deep/run/checkpoints/", "deep/run/model.safetensors", {6, 7}
    growing = ("deep/run/metrics.jsonl", "deep/run/events.")
    figures = None  # of the first run

    def command(self, program):
        return [program, "train", "spirals", "--epochs", "20", "--set", "width=48", "--quiet", "--resume", "--out", "deep/run"]

    def complete(self, root):
        """Every line of the metrics is whole, and all that a run has which nobody touched are there, with the same losses."""
        found = {}
        for line in (root / "deep/run/metrics.jsonl").read_text().splitlines():
            at = json.loads(line)
            key = at["step"], "test_loss" in at
            check(key not in found, "metrics.jsonl: twice:", line)
            found[key] = at.get("loss", at.get("test_loss"))
        self.figures = self.figures or found
        lost = {k for k in self.figures if found.get(k) != self.figures[k]}
        check(not lost, "metrics.jsonl: lost or changed:", sorted(lost))
        for name in ("recipe.json", "run.json"):
            json.loads((root / "deep/run" / name).read_text())


class Python(Library):
    """ingot.Checkpoint, and ingot.save to one file again and again."""
    checkpoints, refused = "deep/run/", {1}
    source = """
import ingot, os
from ingot import nn
from ingot.utils.data import DataLoader, TensorDataset
ingot.manual_seed(5)
net = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.2), nn.ReLU(), nn.Linear(64, 1))
opt = ingot.optim.AdamW(net.parameters(), lr=1e-2)
x = ingot.randn(32, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4, shuffle=True)
os.makedirs("deep/run", exist_ok=True)
ckpt = ingot.Checkpoint("deep/run", net, opt, loader, keep=2)
for epoch in range(ckpt.resume(), 8):
    for a, b in loader:
        opt.zero_grad()
        ((net(a) - b) ** 2).mean().backward()
        opt.step()
    ckpt.save(epoch + 1)
    ingot.save({"epoch": epoch + 1, "model": net.state_dict()}, "latest.safetensors")
ingot.save(net.state_dict(), "weights.safetensors")
"""

    def command(self, program):
        return [program, "-c", self.source]


def check(condition, *what):
    if not condition:
        raise SystemExit("FAILED: " + " ".join(map(str, what)))


def is_checkpoint(case, path):
    return path.startswith(case.checkpoints) and re.fullmatch(r"ckpt-\d+\.safetensors", path[len(case.checkpoints):]) is not None


def written_whole(case, path):
    """Whether it is put in place in one go: not a lock, a temporary file, or one that grows."""
    return not path.endswith(".lock") and ".tmp-" not in path and not path.startswith(case.growing)


class Watch:
    """What must be there after a cut, while the record of a run is played back."""

    def __init__(self, case, d):
        self.case, self.disk = case, d
        self.before = {p: c for p, c in disk.flat(d.now()).items() if written_whole(case, p)}
        self.contents = {p: [c] for p, c in self.before.items()}  # that a path has had, the last one at the end
        self.due = dict(self.before)  # the contents that must be there, or later ones
        self.placed = {}              # put in place by a write that may not have returned yet

    def _short(self, path):
        return path[len(self.disk.root) + 1:]

    def apply(self, e):
        self.disk.apply(e)
        if e.what in "RL" and written_whole(self.case, self._short(e.second)):
            path = self._short(e.second)
            self.placed[path] = bytes(self.disk.node(e.second).data)
            self.contents.setdefault(path, []).append(self.placed[path])
        elif e.what == "U":
            for known in (self.due, self.placed):
                known.pop(self._short(e.path), None)
        elif e.what in "OC":  # the program has gone on to the next file
            self.returned()

    def returned(self):
        self.due |= self.placed
        self.placed = {}

    def look(self, contents):
        """What is wrong with the contents after a cut, or None."""
        files = disk.flat(contents)
        for path, content in files.items():
            if written_whole(self.case, path) and content not in self.contents.get(path, ()):
                return f"{path} is not whole"
        for path, content in self.due.items():
            had = self.contents[path]
            if path not in files or had.index(files[path]) < had.index(content):
                return f"{path} was written and is lost"
        saved = [p for p in self.contents if is_checkpoint(self.case, p) and p not in self.placed]
        there = [p for p in files if is_checkpoint(self.case, p)]
        if len(there) < min(self.case.keep, len(saved)):
            return f"{len(there)} checkpoints are left of {len(saved)}"
        return None


class Test:
    def __init__(self, case, recorder, program, work, rng):
        self.case, self.recorder, self.rng = case, recorder, rng
        self.command = case.command(program)
        self.root, self.log, self.start = work / "disk", work / "log", work / "start"
        self.want = None
        self.counts = {"cuts": 0, "looks": 0, "lies": 0, "refused": 0, "damaged": 0}

    def run(self):
        """Runs the program on the folder as it is, which is kept for the play-back; returns what subprocess.run does."""
        shutil.rmtree(self.start, ignore_errors=True)
        shutil.copytree(self.root, self.start)
        self.log.unlink(missing_ok=True)
        return subprocess.run(self.command, cwd=self.root, capture_output=True, text=True, errors="replace", timeout=300,
                              env=os.environ | {"LD_PRELOAD": str(self.recorder), "INGOT_RECORD_FOLDER": str(self.root), "INGOT_RECORD_LOG": str(self.log)})

    def finish(self):
        """Runs it to its end, and compares."""
        done = self.run()
        check(done.returncode == 0, "exits with", done.returncode, done.stderr)
        self.compare()
        return done

    def compare(self):
        sha = hashlib.sha256((self.root / self.case.weights).read_bytes()).hexdigest()
        self.want = self.want or sha
        check(sha == self.want, "other weights")
        self.case.complete(self.root)

    def recorded(self):
        """The record of the last run, and the disk as it was before."""
        now = disk.read(self.root)
        shutil.rmtree(self.root)
        self.start.rename(self.root)
        events = disk.events_of(self.log)
        d = disk.Disk(self.root)
        for e in events:
            d.apply(e)
        check(d.now() == now, "the record is not complete: something was written past the recorder")
        return events

    def states(self, events, points, lies=False):
        """For each of the points, so many records: the watch there, and contents that a loss of power may leave."""
        watch = Watch(self.case, disk.Disk(self.root, lies))
        for n, e in enumerate(events, 1):
            watch.apply(e)
            if n == len(events):
                watch.returned()
            for _ in range(points.count(n)):
                yield watch, watch.disk.after_cut(self.rng)

    def looks(self, events):
        """What is wrong at 100 points of the record: the first that is found, or None."""
        points = self.rng.choices(range(1, len(events) + 1), k=100)
        self.counts["looks"] += len(points)
        return next(filter(None, (watch.look(contents) for watch, contents in self.states(events, points))), None)

    def put(self, contents):
        shutil.rmtree(self.root, ignore_errors=True)
        disk.write(contents, self.root)

    def chain(self, most):
        """A run from the beginning, a cut of a lying disk, and up to `most` true ones, one after the other."""
        self.put({})
        self.finish()
        kept = [p for p in disk.flat(disk.read(self.root)) if is_checkpoint(self.case, p)]
        check(len(kept) == self.case.keep, "not the newest are kept:", kept)
        events = self.recorded()
        self.lie(events)
        self.put({})
        for _ in range(most):
            at = self.rng.choice((len(events), *[self.rng.randint(1, len(events))] * 9))
            watch, contents = next(self.states(events, [at]))
            wrong = watch.look(contents) or self.looks(events)
            check(not wrong, wrong)
            self.put(contents)
            self.finish()
            self.counts["cuts"] += 1
            events = self.recorded()

    def lie(self, events):
        watch, contents = next(self.states(events, [self.rng.randint(1, len(events))], lies=True))
        self.put(contents)
        self.counts["lies"] += 1
        there = sorted(p for p, _ in disk.flat(contents).items() if is_checkpoint(self.case, p))
        whole = [p for p in there if disk.flat(contents)[p] in watch.contents.get(p, ())]
        done = self.run()
        if done.returncode:
            check(done.returncode in self.case.refused, "a lying disk: exits with", done.returncode, done.stderr)
            check(not whole, "a lying disk: refused, with a whole checkpoint:", done.stderr)
            self.counts["refused"] += 1
            return
        check(whole or not there, "a lying disk: resumed, with damaged checkpoints only:", there)
        if there and there[-1] not in whole:
            self.counts["damaged"] += 1
            check("skipped" in done.stderr and pathlib.PurePath(there[-1]).name in done.stderr, "skipped in silence:", there[-1], done.stderr)
        sha = hashlib.sha256((self.root / self.case.weights).read_bytes()).hexdigest()
        check(sha == self.want, "a lying disk: other weights")

    def can_fail(self):
        """Without the syncs of files, and without those of folders, the same looks find something wrong."""
        self.put({})
        self.finish()
        events = self.recorded()
        for what in "FD":
            check(self.looks([e for e in events if e.what != what]), "nothing is found where nothing is synced:", what)


def main():
    cases = {c.__name__.lower(): c for c in (Library, Asynchronous, Program, Python)}
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=cases)
    parser.add_argument("recorder", type=pathlib.Path)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--cuts", type=int, default=5)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    o = parser.parse_args()
    print(f"seed {o.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="ingot-power-") as folder:
        test = Test(cases[o.case](), o.recorder.resolve(), o.program.absolute(), pathlib.Path(folder).resolve(), random.Random(o.seed))
        test.can_fail()
        while test.counts["cuts"] < o.cuts:
            test.chain(min(5, o.cuts - test.counts["cuts"]))
    print(f"ok: {o.case}:", ", ".join(f"{n} {what}" for what, n in test.counts.items()))


if __name__ == "__main__":
    main()
