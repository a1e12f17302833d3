#!/usr/bin/env python3
"""deploy/train.slurm under a stub srun: preempted in the middle, queued again, it ends with the uninterrupted run's bits."""
import hashlib
import os
import pathlib
import signal
import subprocess
import time

from common import INGOT, SOURCE, check, folder, run

SCRIPT = SOURCE / "deploy" / "train.slurm"
with folder() as name:
    home = pathlib.Path(name)
    (home / "bin").mkdir()
    for tool, text in {"srun": 'exec "$@"', "scontrol": f'echo "$@" >> {home}/requeued'}.items():
        (home / "bin" / tool).write_text(f"#!/bin/sh\n{text}\n")
        (home / "bin" / tool).chmod(0o755)
    recipe, _ = run("recipes", "spirals")
    (home / "long.json").write_text(recipe.replace('"epochs": 60', '"epochs": 3000'))
    run("train", "long.json", "--out", "whole", cwd=home)
    env = os.environ | {"PATH": f"{home}/bin:{os.environ['PATH']}", "RECIPE": "long.json", "OUT": "cut", "INGOT": str(INGOT), "SLURM_JOB_ID": "7"}
    job = subprocess.Popen(["bash", SCRIPT], cwd=home, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    metrics = home / "cut/metrics.jsonl"
    for _ in range(1200):
        if metrics.exists() and metrics.read_text().count("\n") >= 2:
            break
        time.sleep(0.05)
    sent = time.time()
    job.send_signal(signal.SIGTERM)
    out, _ = job.communicate(timeout=60)
    check(job.returncode == 0 and time.time() - sent < 10, job.returncode, out)
    check((home / "requeued").read_text() == "requeue 7\n", "the job was not queued again:", out)
    done = subprocess.run(["bash", SCRIPT], cwd=home, env=env, capture_output=True, text=True)
    check(done.returncode == 0 and "resumed at step" in done.stdout, done.stdout, done.stderr)
    digests = [hashlib.sha256((home / d / "model.safetensors").read_bytes()).hexdigest() for d in ("whole", "cut")]
    check(digests[0] == digests[1], "the queued-again job ends elsewhere")
print("ok")
