#!/usr/bin/env python3
"""ingot train killed (SIGKILL) again and again, at any moment and in the middle of saving, and resumed each time: it ends with the bits of a run that was never killed.

    kills.py INGOT [KILLS]"""
import hashlib
import pathlib
import random
import signal
import subprocess
import sys
import time

from common import INGOT, check, folder, run

KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
COMMAND = ["train", "spirals", "--epochs", "400", "--set", "width=48", "--quiet"]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


rng = random.Random(7)
with folder() as name:
    home = pathlib.Path(name)
    began = time.time()
    run(*COMMAND, "--out", "whole", cwd=home)
    usual = time.time() - began
    wanted = digest(home / "whole/model.safetensors")
    kills = saving = round_number = 0
    while kills < KILLS:
        # Each round is one run, killed until it comes to its end.
        round_number += 1
        out = home / f"cut{round_number}"
        while kills < KILLS:
            child = subprocess.Popen([INGOT, *COMMAND, "--resume", "--out", out], cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            end = time.time() + rng.uniform(0.02, 0.6 * usual)
            aim, hit = rng.random() < 0.5, False  # at a file that is being written
            while time.time() < end and child.poll() is None:
                if aim and (hit := bool(list(out.glob("checkpoints/*.tmp*")))):
                    break
                time.sleep(0.0005 if aim else 0.005)
            child.send_signal(signal.SIGKILL)
            _, err = child.communicate(timeout=60)
            check(child.returncode in (0, -signal.SIGKILL), "exits with", child.returncode, err.decode(errors="replace"))
            if child.returncode == 0:
                break
            kills, saving = kills + 1, saving + hit
        run(*COMMAND, "--resume", "--out", out, cwd=home)
        check(digest(out / "model.safetensors") == wanted, "another network after", kills, "kills, in", out.name)
        check(not list(out.glob("checkpoints/*.tmp*")), "pieces of checkpoints were left:", list(out.glob("checkpoints/*")))
print(f"{kills} kills, {saving} of them in the middle of saving, in {round_number} runs: the same network")
