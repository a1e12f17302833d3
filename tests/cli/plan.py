#!/usr/bin/env python3
"""ingot plan against what ingot train then takes: within 2 % of the measured peak and never below it.

    plan.py INGOT            quick: a few cases
    plan.py INGOT --all [--device cuda]     6 models x 3 batch sizes, with a table
"""
import gzip
import json
import pathlib
import random
import struct
import sys

from common import check, folder, run

EVERYTHING = "--all" in sys.argv
DEVICE = sys.argv[sys.argv.index("--device") + 1] if "--device" in sys.argv else "cpu"

PARTS = ("parameters", "converted_parameters", "optimizer", "data", "batches", "activations", "gradients", "workspace")
CASES = {
    "CNN": ["fashion"],
    "ResNet": ["fashion", "--set", "model=resnet", "--set", "width=16", "--set", "layers=1"],
    "MLP": ["fashion", "--set", "model=mlp", "--set", "width=512", "--set", "layers=3"],
    "GPT": ["chars", "--set", "data=words.txt", "--set", "layers=2"],
    "LSTM": ["chars-lstm", "--set", "data=words.txt", "--set", "width=128"],
    "ResNet again": ["fashion", "--set", "model=resnet", "--set", "layers=1", "--set", "recompute=1"],
    "GPT again": ["chars", "--set", "data=words.txt", "--set", "layers=2", "--set", "recompute=1", "--amp"],
    "GPT in parts": ["chars", "--set", "data=words.txt", "--set", "layers=2", "--set", "accumulate=4"],
}


def write_images(root):
    """6000 images in the format of Fashion-MNIST: more than a loader's threads hold at any time."""
    rng = random.Random(1)
    root.mkdir(parents=True)
    for part, count in (("train", 6000), ("t10k", 1100)):
        for kind, magic, dims in (("images-idx3", 2051, [count, 28, 28]), ("labels-idx1", 2049, [count])):
            n = count * 784 if kind[0] == "i" else count
            data = rng.randbytes(n) if kind[0] == "i" else bytes(rng.randrange(10) for _ in range(n))
            with gzip.open(root / f"{part}-{kind}-ubyte.gz", "wb", 1) as f:
                f.write(struct.pack(">" + "i" * (1 + len(dims)), magic, *dims) + data)


with folder() as name:
    home = pathlib.Path(name)
    write_images(home / "data/fashion-mnist")
    (home / "words.txt").write_text(" ".join(random.Random(1).choice(["the", "cat", "sat", "mat"]) for _ in range(260000)))
    worst = 0
    for model, recipe in CASES.items():
        for batch in (16, 64, 256) if EVERYTHING else (64,):
            args = [*recipe, "--batch", batch, "--device", DEVICE]
            plan = json.loads(run("plan", *args, "--json", cwd=home)[0])
            planned = plan["peak"]
            parts = sum(plan[k] for k in PARTS)
            check(parts == planned and min(plan[k] for k in PARTS) >= 0, "parts of", model, plan)
            check(sum(plan["activations_by_layer"].values()) == plan["activations"] > 0, "layers of", model, plan)
            run("train", *args, "--set", "steps=5", "--out", "run", "--quiet", "--fresh", cwd=home)
            measured = json.loads((home / "run/metrics.jsonl").read_text().splitlines()[-1])["peak_memory"]
            ratio = planned / measured
            print(f"{model:13} batch {batch:4}  planned {planned:12,.0f}  measured {measured:12,}  {100 * (ratio - 1):+.2f} %")
            check(1 <= ratio <= 1.02, model, batch, "is planned with", planned, "and takes", measured)
            worst = max(worst, ratio)
print(f"within {100 * (worst - 1):.2f} %, never below")
