"""Programs whose plans never end: once the plan cache is full, resident memory moves by less than 5 %, and what the cache counts never
exceeds its limit. Run with names of programs, or with none for all."""
import os
import random
import subprocess
import sys

# MiB that plans may take: enough that one plan is a small part. How far memory may move then: oneDNN's primitives are shared by plans
# and counted for each, so that what is held for the same count changes.
LIMIT = {"reinforcement": 256, "convolutions": 256}
MOST = {"convolutions": 0.1}


def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")


def reinforcement(ingot, nn, F):
    """600 episodes of different lengths."""
    policy = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = ingot.optim.Adam(policy.parameters(), lr=1e-2)
    for _ in range(600):
        state, logs = ingot.randn(4), []
        for _ in range(random.randint(5, 60)):
            p = F.softmax(policy(state), -1)
            logs.append(ingot.log(p[int(ingot.multinomial(p, 1).item())]))
            state = ingot.randn(4)
        rewards = ingot.tensor([float(len(logs) - i) for i in range(len(logs))])
        loss = -(ingot.stack(logs) * (rewards - rewards.mean()) / (rewards.std() + 1e-6)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def experts(ingot, nn, F):
    """2,000 steps of a mixture of experts, each with another number of rows."""
    gate, all_experts = nn.Linear(16, 4), nn.ModuleList([nn.Linear(16, 16) for _ in range(4)])
    optimizer = ingot.optim.Adam([*gate.parameters(), *all_experts.parameters()], lr=1e-3)
    for _ in range(2000):
        x = ingot.randn(64, 16)
        weight, which = F.softmax(gate(x), -1).max(-1)
        out = ingot.zeros(64, 16)
        for e, expert in enumerate(all_experts):
            rows = (which == e).nonzero().squeeze(1)
            if len(rows):
                out = out.index_add(0, rows, expert(x[rows]) * weight[rows].unsqueeze(1))
        loss = (out - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        yield


def shapes(ingot, nn, F):
    """1,500 steps of random shapes."""
    layer = nn.Linear(16, 16)
    for _ in range(1500):
        x = ingot.randn(random.randint(1, 40), random.randint(1, 60), 16)
        q = layer(x)
        loss = (F.softmax(q @ q.transpose(1, 2), -1) @ x).pow(2).mean()
        loss.backward()
        loss.item()
        layer.zero_grad()
        yield


def convolutions(ingot, nn, F):
    """1,500 sizes of images, by oneDNN where it is there."""
    first, second = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3)
    for _ in range(1500):
        x = ingot.randn(random.randint(1, 4), 3, random.randint(8, 64), random.randint(8, 64))
        loss = second(first(x).relu()).pow(2).mean()
        loss.backward()
        loss.item()
        first.zero_grad()
        second.zero_grad()
        yield


def numbers(ingot, nn, F):
    """40,000 numbers of Python, which are arguments of one plan."""
    w = ingot.ones(64, 64, requires_grad=True)
    for i in range(40000):
        ingot.autograd.grad((w * (0.1 + i * 1e-4)).sin().sum(), w)[0].sum().item()
        yield


def run(name):
    import ingot

    random.seed(1)
    ingot.manual_seed(1)
    samples, full = [], None
    for i, _ in enumerate(globals()[name](ingot, ingot.nn, ingot.nn.functional)):
        if i % 10 == 0:
            info = ingot.plan_cache_info()
            assert info["bytes"] <= info["limit"], info
            if full is None and info["evicted"]:
                full = len(samples)
            samples.append(resident())
    if name == "numbers":
        assert ingot.plan_cache_info()["plans"] <= 10, ingot.plan_cache_info()
        full = 0
    assert full is not None, f"{name}: the cache was never full: {ingot.plan_cache_info()}"
    # The first evictions are where the heap finds its form.
    flat = samples[full + (len(samples) - full) // 8:]
    moved = (max(flat) - min(flat)) / min(flat)
    print(f"{name}: {len(flat)} samples, {min(flat) >> 20} to {max(flat) >> 20} MiB, {100 * moved:.1f} %", flush=True)
    assert len(flat) >= 10 and moved < MOST.get(name, 0.05), [s >> 20 for s in samples]


if __name__ == "__main__":
    every = ["reinforcement", "experts", "shapes", "convolutions", "numbers"]
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2])
    else:
        failed = [name for name in sys.argv[1:] or every
                  if subprocess.run([sys.executable, __file__, "--run", name], env=os.environ | {"INGOT_PLAN_CACHE_MIB": str(LIMIT.get(name, 64))}).returncode]
        sys.exit(f"not flat: {failed}" if failed else 0)
