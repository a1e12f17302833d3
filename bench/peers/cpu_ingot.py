#!/usr/bin/env python3
"""Some of ingot-bench's cases written in Python: what the package adds to a step.

  PYTHONPATH=build/release/python python bench/peers/cpu_ingot.py [--only REGEX] [--threads N] [--budget S] [--serve] [--list]

One JSON line per case: case, ms (median), min_ms, iters. bench/compare_cpu --python alternates this with ingot-bench.
"""
import argparse
import gc
import json
import math
import re
import statistics
import sys
import time

import ingot as torch
import ingot.nn as nn
import ingot.nn.functional as F

CASES = {}


def case(fn):
    CASES[fn.__name__] = fn
    return fn


def train_step(model, optimizer, x, target):
    def go():
        optimizer.zero_grad()
        F.cross_entropy(model(x), target).backward()
        optimizer.step()

    return go


@case
def softmax_4096x1024():
    x = torch.randn(4096, 1024).eval_()
    return lambda: torch.softmax(x, -1).eval_()


@case
def mlp_784_256_10_b64_train():
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return train_step(model, optimizer, torch.randn(64, 784).eval_(), torch.randint(0, 10, (64,)).eval_())


class Attention(nn.Module):
    def __init__(self, width, heads, bias):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=bias), nn.Linear(width, width, bias=bias)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (p.view(b, t, self.heads, d // self.heads).transpose(1, 2) for p in self.qkv(x).split(d, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, width, heads, bias, gelu):
        super().__init__()
        self.gelu = gelu
        self.norm1, self.norm2 = nn.LayerNorm(width, bias=bias), nn.LayerNorm(width, bias=bias)
        self.attention = Attention(width, heads, bias)
        self.up, self.down = nn.Linear(width, 4 * width, bias=bias), nn.Linear(4 * width, width, bias=bias)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate=self.gelu))


class GPT(nn.Module):
    def __init__(self, layers, heads, width, context, vocabulary, bias=False, gelu="none"):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads, bias, gelu) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width, bias=bias), nn.Linear(width, vocabulary, bias=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, 0, 0.02)
        self.tokens.weight = self.head.weight

    def forward(self, i):
        x = self.tokens(i) + self.positions(torch.arange(i.size(1)))
        for b in self.blocks:
            x = b(x)
        return self.head(self.norm(x))


@case
def nanogpt_4l4h128_b12_t64_train():
    model = GPT(4, 4, 128, 64, 65)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([dict(params=matrices, weight_decay=0.1), dict(params=rest, weight_decay=0.0)], lr=1e-3, betas=(0.9, 0.99))
    x, t = torch.randint(0, 65, (12, 64)).eval_(), torch.randint(0, 65, (12, 64)).eval_()
    parameters = list(model.parameters())

    def go():
        optimizer.zero_grad()
        F.cross_entropy(model(x).view(-1, 65), t.view(-1)).backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()

    return go


def timed(fn, inner):
    begin = time.perf_counter()
    for _ in range(inner):
        fn()
    return (time.perf_counter() - begin) / inner


def measure(name, budget):
    fn = CASES[name]()
    fn()
    once, begin = timed(fn, 1), time.perf_counter()
    while time.perf_counter() - begin < min(0.4, budget / 3):
        once = min(once, timed(fn, 1))
    inner = max(1, math.ceil(5e-4 / max(once, 1e-9)))
    gc.collect()
    gc.disable()
    times, begin = [], time.perf_counter()
    while (time.perf_counter() - begin < budget or len(times) < 7) and len(times) < 400:
        times.append(timed(fn, inner))
    gc.enable()
    row = dict(peer="ingot-python", case=name, ms=round(statistics.median(times) * 1e3, 5), min_ms=round(min(times) * 1e3, 5),
               iters=len(times) * inner)
    print(json.dumps(row), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--budget", type=float, default=1.5)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.list:
        print("\n".join(CASES))
        return
    for pattern in (line.strip() for line in sys.stdin) if options.serve else [options.only]:
        for name in CASES:
            if re.search(pattern, name):
                measure(name, options.budget)
        if options.serve:
            print(flush=True)


if __name__ == "__main__":
    main()
