#!/usr/bin/env python3
"""Kills a training run with SIGKILL again and again, some of the times in the middle of a save, starts it again each time, and compares the
SHA-256 of its final weights with those of a run that nobody touched. Then SIGTERM and Ctrl-C, a damaged newest file, a full disk.

usage: resume.py PROGRAM [--kills N] [--seed N]
"""
import argparse
import hashlib
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("program", type=pathlib.Path)
parser.add_argument("--kills", type=int, default=5)
parser.add_argument("--seed", type=int, default=None)
# A run in the background of a shell ignores Ctrl-C, and so would the programs it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
o = parser.parse_args()
seed = o.seed if o.seed is not None else random.randrange(1 << 30)
print(f"seed {seed}")
random.seed(seed)


def sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fail(what):
    print(f"FAILED: {what}")
    sys.exit(1)


def run(folder, weights, *options, **more):
    return subprocess.run([o.program, folder, weights, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def finish(folder, weights, *options):
    done = run(folder, weights, *options)
    if done.returncode:
        fail(f"exit code {done.returncode}: {done.stderr}")
    return done


def saving(folder):
    return any(".tmp-" in p.name for p in folder.glob("*"))


def kill_at_random(work, name, want, seconds, options):
    """Kills a run o.kills times; every second kill waits for a save to be under way."""
    folder, weights, saves, kill = work / name, work / f"{name}.safetensors", 0, 0
    while kill < o.kills:
        process = subprocess.Popen([o.program, folder, weights, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # As a rule within the first half of a whole run: each run gets somewhere, none gets to the end too soon.
        moment = time.monotonic() + random.uniform(0, seconds * (0.9 if kill % 4 == 3 else 0.4))
        while time.monotonic() < moment and process.poll() is None:
            time.sleep(0.0005)
        if kill % 2 == 0:
            limit = time.monotonic() + seconds
            while not saving(folder) and process.poll() is None and time.monotonic() < limit:
                pass
        hit = saving(folder)
        process.send_signal(signal.SIGKILL)
        if process.wait() == -signal.SIGKILL:
            kill += 1
            saves += hit
        else:
            # It was through: begin again, the rest of the kills should hit something.
            if sha(weights) != want:
                fail(f"{name}: the weights differ after {kill} kills")
            for p in folder.glob("*"):
                p.unlink()
            weights.unlink()
    finish(folder, weights, *options)
    if sha(weights) != want:
        fail(f"{name}: the weights differ after {o.kills} kills")
    print(f"ok: {name}: killed {o.kills} times, {saves} of them during a save; the same weights")
    return saves


with tempfile.TemporaryDirectory(prefix="ingot-resume-") as temporary:
    work = pathlib.Path(temporary)
    start = time.monotonic()
    finish(work / "whole", work / "whole.safetensors")
    seconds = time.monotonic() - start
    want = sha(work / "whole.safetensors")
    if len(list((work / "whole").glob("ckpt-*"))) != 2:
        fail("not the last two files are kept")
    finish(work / "second", work / "second.safetensors", "--no-middle")
    if sha(work / "second.safetensors") != want:
        fail("two untouched runs differ")
    print(f"ok: a run takes {seconds:.2f} s, two of them give the same weights")

    saves = kill_at_random(work, "killed", want, seconds, [])
    saves += kill_at_random(work, "asynchronous", want, seconds, ["--asynchronous"])
    if saves == 0:
        fail("no kill fell into a save")

    # Signals: saved and left with the documented code, in the middle of an epoch.
    folder, weights = work / "signals", work / "signals.safetensors"
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        process = subprocess.Popen([o.program, folder, weights, "--no-middle", "--sleep", "25"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(0.3 + random.uniform(0, 0.2))
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        if process.returncode != code or "saved" not in errors:
            fail(f"{number}: exit code {process.returncode}: {errors}")
    finish(folder, weights, "--no-middle")
    if sha(weights) != want:
        fail("the weights differ after SIGTERM and SIGINT")
    print("ok: SIGTERM and Ctrl-C save, exit with status 143 and 130, and the run resumes to the same weights")

    # A second program in the same folder learns who is there; the first one continues undisturbed.
    folder, weights = work / "two", work / "two.safetensors"
    first = subprocess.Popen([o.program, folder, weights, "--sleep", "10"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not (folder / "ckpt-000001.safetensors").exists() and first.poll() is None:
        time.sleep(0.005)
    for _ in range(5):
        second = run(folder, work / "other.safetensors")
        if second.returncode != 3 or f"in use by process {first.pid} on " not in second.stderr:
            fail(f"two programs in one folder: exit code {second.returncode}: {second.stderr}")
    _, errors = first.communicate(timeout=120)
    if first.returncode or sha(weights) != want:
        fail(f"the first of two programs was disturbed: {errors}")
    print("ok: a second program in the folder is refused")

    # A damaged newest file is reported, the one before is used.
    for damage in ("byte", "cut"):
        newest = sorted((work / "whole").glob("ckpt-*"))[-1]
        content = bytearray(newest.read_bytes())
        if damage == "byte":
            content[len(content) // 2] ^= 1
        newest.write_bytes(content if damage == "byte" else content[:len(content) // 3])
        (work / "whole.safetensors").unlink()
        done = finish(work / "whole", work / "whole.safetensors")
        if newest.name not in done.stderr or "skipped" not in done.stderr:
            fail(f"a damaged file is not reported: {done.stderr}")
        if not newest.exists():
            fail("a damaged file was removed")
        newest.unlink()
        if sha(work / "whole.safetensors") != want:
            fail("the weights differ after a damaged file")
    print("ok: a damaged newest file is reported and the one before used")

    # A disk that is full: the save fails, what was there stays, and the run continues when there is room.
    folder, weights = work / "full", work / "full.safetensors"
    finish(folder, work / "half.safetensors", "--epochs", "2")
    before = {p.name: sha(p) for p in folder.glob("ckpt-*")}

    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

    done = run(folder, weights, preexec_fn=little_room)
    if done.returncode != 3 or "ulimit -f" not in done.stderr:
        fail(f"a save without room: exit code {done.returncode}: {done.stderr}")
    if {p.name: sha(p) for p in folder.glob("ckpt-*")} != before:
        fail("a save without room changed what was there")
    finish(folder, weights)
    if sha(weights) != want:
        fail("the weights differ after a full disk")
    print("ok: a full disk loses nothing")
