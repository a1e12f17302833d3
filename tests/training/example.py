#!/usr/bin/env python3
"""Runs examples/train.cpp on a small made-up data set with Fashion-MNIST's file format: five epochs, the loss falls, and a second start
finds that all is done.

usage: example.py PROGRAM"""
import gzip
import pathlib
import random
import struct
import subprocess
import sys
import tempfile


def write_idx(path, magic, dims, data):
    with gzip.open(path, "wb", 1) as f:
        f.write(struct.pack(">" + "i" * (1 + len(dims)), magic, *dims) + bytes(data))


program = pathlib.Path(sys.argv[1]).resolve()
random.seed(1)
count = 512
labels = [random.randrange(10) for _ in range(count)]
images = bytearray()
for label in labels:
    for row in range(28):
        for column in range(28):
            inside = row // 5 == label % 5 and column // 14 == label // 5
            images.append(min(255, (180 if inside else 20) + random.randrange(40)))
with tempfile.TemporaryDirectory() as work:
    folder = pathlib.Path(work) / "data" / "fashion-mnist"
    folder.mkdir(parents=True)
    for part in ("train", "t10k"):
        write_idx(folder / f"{part}-images-idx3-ubyte.gz", 2051, [count, 28, 28], images)
        write_idx(folder / f"{part}-labels-idx1-ubyte.gz", 2049, [count], labels)
    first = subprocess.run([program, "cpu"], cwd=work, capture_output=True, text=True)
    print(first.stdout, first.stderr)
    lines = first.stdout.split("\n")
    losses = [float(line.split()[3]) for line in lines if line.startswith("epoch")]
    assert first.returncode == 0 and len(losses) == 5, "five epochs were expected"
    assert losses[4] < 0.5 * losses[0], "the loss did not fall"
    second = subprocess.run([program, "--device", "cpu"], cwd=work, capture_output=True, text=True)
    assert second.returncode == 0 and second.stdout == "", "the second start should find everything done"
print("ok")
