#!/usr/bin/env python3
"""Some of ingot-bench-gpu's cases written in Python: what the package adds to a step.

  PYTHONPATH=build/release/python python bench/peers/gpu_ingot.py [--device cuda] [--only REGEX] [--quick] [--list]

One JSON line per case, measured as ingot-bench-gpu does: several iterations between two synchronisations, the median of samples.
bench/compare_gpu --python compares the two. --device cpu runs the same on the CPU (for a look at the script, on the small cases).
"""
import argparse
import json
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import ingot as torch
import ingot.nn as nn
import ingot.nn.functional as F
from cpu_ingot import GPT

CASES = {}


def case(name):
    def keep(fn):
        CASES[name] = fn
        return fn

    return keep


def gelu_chain(x):
    return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


@case("gelu-chain-64M-fwd")
def gelu_forward():
    x = torch.randn(1 << 26).eval_()
    return lambda: gelu_chain(x).eval_()


@case("gelu-chain-64M-fwdbwd")
def gelu_both():
    x, g = torch.randn(1 << 26).eval_().requires_grad_(True), torch.ones(1 << 26).eval_()

    def go():
        x.grad = None
        y = gelu_chain(x)
        y.backward(g)
        torch.eval(y, x.grad)

    return go


@case("softmax-8192x8192-float32")
def softmax():
    x = torch.randn(8192, 8192).eval_()
    return lambda: torch.softmax(x, -1).eval_()


def mlp():
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1)

    def step(x, target):
        optimizer.zero_grad()
        F.cross_entropy(model(x), target).backward()
        optimizer.step()

    return step, torch.randn(64, 784).eval_(), torch.randint(0, 10, (64,)).eval_()


@case("mlp-784-256-10-B64-fp32")
def mlp_loop():
    step, x, target = mlp()
    return lambda: step(x, target)


@case("mlp-784-256-10-B64-fp32-capture")
def mlp_capture():
    step, x, target = mlp()
    captured = torch.capture(step)
    return lambda: captured(x, target)


def gpt(layers, heads, width, context, vocabulary, batch):
    model = GPT(layers, heads, width, context, vocabulary, bias=True, gelu="tanh").to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, master_weights=True)
    x, target = (torch.randint(0, min(vocabulary, 50257), (batch, context)).eval_() for _ in range(2))

    def go():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).view(-1, vocabulary).float(), target.view(-1))
        loss.backward()
        optimizer.step()

    return go


@case("chargpt-6x384-B64-T256-bf16")
def chargpt():
    return gpt(6, 6, 384, 256, 65, 64)


@case("gpt2-124M-train-B32-T1024-bf16")
def gpt2():
    return gpt(12, 12, 768, 1024, 50304, 32)


def measure(name, quick):
    run = CASES[name]()
    torch.synchronize()
    begin = time.perf_counter()
    run()
    torch.synchronize()
    first = time.perf_counter() - begin
    for _ in range(4):
        run()

    def sample(n):
        torch.synchronize()
        t = time.perf_counter()
        for _ in range(n):
            run()
        torch.synchronize()
        return (time.perf_counter() - t) / n

    inner = max(5, min(500, int(20e-3 / sample(1))))
    times = []
    for i in range(3 if quick else 9):
        if i < 3 or time.perf_counter() - begin < 20:
            times.append(sample(inner))
    print(json.dumps(dict(case=name, peer="ingot-python", ms=round(sorted(times)[len(times) // 2] * 1e3, 5), first_s=round(first, 3))), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        print("\n".join(CASES))
        return
    torch.set_default_device(options.device)
    for name in CASES:
        if re.search(options.only, name):
            measure(name, options.quick)


if __name__ == "__main__":
    main()
