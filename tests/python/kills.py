#!/usr/bin/env python3
"""A training in Python killed (SIGKILL) again and again, while it starts, at any moment and in the middle of saving, and resumed each time: it ends
with the numbers of a run that was never killed.

    kills.py [KILLS]"""
import os
import random
import signal
import sys
import tempfile
import time

from test_checkpoint import finish, launch, start

KILLS = int(sys.argv[1]) if len(sys.argv) > 1 else 5


def saving(folder):
    return os.path.isdir(folder) and any(".tmp" in name for name in os.listdir(folder))


def killed(folder, mode, rng, usual):
    """Runs it until it is killed or done. Returns whether it was killed, and whether while it saved."""
    if rng.random() < 0.1:
        child, end, aim = launch(folder, mode), time.time() + rng.uniform(0, 0.3), False
    else:
        child, end, aim = start(folder, mode), time.time() + rng.uniform(0, 0.6 * usual), rng.random() < 0.5
    while time.time() < end and child.poll() is None and not (aim and saving(folder)):
        time.sleep(0 if aim else 0.002)
    hit = aim and saving(folder)
    child.send_signal(signal.SIGKILL)
    code, _, err = finish(child)
    if code not in (0, -signal.SIGKILL):
        raise SystemExit(f"exits with {code}: {err}")
    return code != 0, code != 0 and hit


def main():
    rng = random.Random(11)
    with tempfile.TemporaryDirectory() as folder:
        child = start(folder)
        began = time.time()
        want = finish(child)[:2]
        usual = time.time() - began
    kills = in_saves = rounds = 0
    while kills < KILLS:
        # Each round is one run, killed until it comes to its end.
        rounds += 1
        mode = ("plain", "async")[rounds % 2]
        with tempfile.TemporaryDirectory() as folder:
            going = True
            while going and kills < KILLS:
                going, hit = killed(folder, mode, rng, usual)
                kills, in_saves = kills + going, in_saves + hit
            code, out, err = finish(start(folder, mode))
            if (code, out) != want:
                raise SystemExit(f"other numbers after {kills} kills ({mode}): {code}: {out}, not {want[1]}{err}")
            if saving(folder):
                raise SystemExit(f"pieces were left: {os.listdir(folder)}")
    print(f"{kills} kills, {in_saves} of them in the middle of saving, in {rounds} runs: the same numbers")


if __name__ == "__main__":
    main()
