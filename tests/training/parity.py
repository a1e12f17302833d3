#!/usr/bin/env python3
"""Is training a model with Ingot training it with PyTorch? From the same weights and batches: the gradients of the first step agree to
1e-5, and the curve of the loss stays within three times the drift of PyTorch itself. That drift is the distance between PyTorch's curves
with 1 and with 2 threads, or between those of a batch and the same batch in reverse order, whichever is larger: many of PyTorch's kernels
round alike for any number of threads, and then only the order of the samples shows what another order of sums does to a curve.

usage: parity.py --program build/release/tests/parity_train MODEL... [--steps N]

PyTorch is looked for in this Python and in $INGOT_VENV; where it is not, the test says so and exits with 77. The bound is never less than
two roundings of the loss itself."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile


def find_torch():
    try:
        import torch  # noqa: F401
        return
    except ImportError:
        pass
    venv = pathlib.Path(os.environ.get("INGOT_VENV", pathlib.Path.home() / ".cache/ingot/venv"))
    python = venv / "bin/python"
    if python.exists() and pathlib.Path(sys.prefix).resolve() != venv.resolve():
        os.execv(python, [str(python), *sys.argv])
    print("parity: skipped, PyTorch is not there (tools/setup.sh --torch installs it)")
    sys.exit(77)


find_torch()
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import torch_models  # noqa: E402


def pictures(steps, batch, shape, generator):
    means = torch.randn(10, *shape, generator=generator)
    for _ in range(steps):
        y = torch.randint(0, 10, (batch,), generator=generator)
        yield means[y] + torch.randn(batch, *shape, generator=generator), y


def texts(steps, batch, length, vocabulary, generator):
    # A language that can be learned: each sign mostly follows from the one before.
    follows = torch.randint(0, vocabulary, (vocabulary,), generator=generator)
    for _ in range(steps):
        t = torch.randint(0, vocabulary, (batch, length + 1), generator=generator)
        for i in range(length):
            keep = torch.rand(batch, generator=generator) < 0.8
            t[:, i + 1] = torch.where(keep, follows[t[:, i]], t[:, i + 1])
        yield t[:, :-1].contiguous(), t[:, 1:].contiguous()


def picture_loss(m, x, y):
    return F.cross_entropy(m(x), y)


def text_loss(m, x, y):
    return F.cross_entropy(m(x).flatten(0, 1), y.flatten())


def sgd(p):
    return torch.optim.SGD(p, lr=0.005, momentum=0.9)


def adamw(p):
    return torch.optim.AdamW(p, lr=3e-4)


CASES = {
    "lenet": (torch_models.LeNet, lambda n, g: pictures(n, 64, (1, 28, 28), g), picture_loss, sgd),
    "resnet18": (torch_models.ResNet18, lambda n, g: pictures(n, 16, (3, 32, 32), g), picture_loss, sgd),
    "vit": (torch_models.ViT, lambda n, g: pictures(n, 16, (3, 64, 64), g), picture_loss, adamw),
    "gpt": (torch_models.GPT, lambda n, g: texts(n, 8, 64, 96, g), text_loss, adamw),
    "lstm": (torch_models.CharLSTM, lambda n, g: texts(n, 16, 48, 96, g), text_loss, adamw),
}


def train(name, init, data, threads):
    make, _, loss_of, optimiser = CASES[name]
    torch.set_num_threads(threads)
    model = make()
    model.load_state_dict(init)
    opt = optimiser(model.parameters())
    losses, gradients = [], {}
    for step, (x, y) in enumerate(data):
        loss = loss_of(model, x, y)
        opt.zero_grad()
        loss.backward()
        if step == 0:
            gradients = {n: p.grad.clone() for n, p in model.named_parameters()}
        opt.step()
        losses.append(loss.item())
    return np.array(losses), gradients


def check(name, steps, program):
    torch.manual_seed(1)
    make, batches, _, _ = CASES[name]
    init = {k: v.clone() for k, v in make().state_dict().items()}
    data = list(batches(steps, torch.Generator().manual_seed(2)))
    with tempfile.TemporaryDirectory() as folder:
        np.savez(folder + "/init.npz", **{k: v.numpy() for k, v in init.items()})
        arrays = {}
        for i, (x, y) in enumerate(data):
            arrays[f"x.{i}"], arrays[f"y.{i}"] = x.numpy(), y.numpy()
        np.savez(folder + "/data.npz", **arrays)
        done = subprocess.run([program, name, folder, str(steps)])
        if done.returncode != 0:
            return [f"{name}: parity_train failed ({done.returncode})"]
        ours = dict(np.load(folder + "/ours.npz"))
    one, gradients = train(name, init, data, 1)
    two, _ = train(name, init, data, 2)
    reverse, _ = train(name, init, [(x.flip(0), y.flip(0)) for x, y in data], 1)
    problems = []
    worst = 0.0
    for path, want in gradients.items():
        error = (torch.from_numpy(ours["grad." + path]).double() - want.double()).norm() / want.double().norm().clamp_min(1e-12)
        worst = max(worst, float(error))
        if error > 1e-5:
            problems.append(f"{name}: the gradient of {path} differs by {error:.2e}")
    threads, order = np.maximum.accumulate(np.abs(one - two)), np.maximum.accumulate(np.abs(one - reverse))
    bound = np.maximum(3 * np.maximum(threads, order), 2.0**-22 * np.abs(one))
    off = np.minimum(np.abs(ours["loss"] - one), np.abs(ours["loss"] - two))
    if (off > bound).any():
        step = int(np.argmax(off > bound))
        problems.append(f"{name}: step {step}: loss {ours['loss'][step]:.7f}, PyTorch {one[step]:.7f} and {two[step]:.7f}, bound {bound[step]:.1e}")
    print(f"{name}: loss {one[0]:.4f} -> {one[-1]:.4f} in {steps} steps; first gradients within {worst:.1e}; "
          f"largest distance {off.max():.1e}, PyTorch's own drift {threads[-1]:.1e} by threads, {order[-1]:.1e} by order")
    if not one[-1] < one[0]:
        problems.append(f"{name}: PyTorch's own loss did not fall, the case says nothing")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("models", nargs="+", choices=sorted(CASES))
    options = parser.parse_args()
    problems = []
    for name in options.models:
        problems += check(name, options.steps, options.program)
    for p in problems:
        print("FAILED", p)
    sys.exit(1 if problems else 0)


main()
