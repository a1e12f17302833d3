#!/usr/bin/env python3
"""Is training a model with Ingot training it with PyTorch? From the same weights and batches: the gradients of the first step agree to
1e-5, and the curve of the loss stays within three times PyTorch's own drift between 1 and 2 threads.

Many of PyTorch's kernels round alike for any number of threads, so for some models that drift says nothing of what another rounding does to
a curve. The models of ALIKE are such: they are held to three times the largest of the drifts between threads, between a batch and the same
batch in reverse order, and between this processor's instructions and the next older ones (PyTorch as it runs on another computer), and the test
says by how much they pass the first bound. For them it also prints how far both programs are from PyTorch's float64 curve and
gradients, and how far a curve without any rounding would be beyond the first bound; the gradients and the curve of Ingot may be off float64's by
no more than one and a half times what PyTorch's are.

With --bf16 the question is another: trained in bfloat16 (by Autocast, and with bfloat16 parameters and float32 masters), is the curve as near
to PyTorch's float32 curve as PyTorch's own in the same mode (on the GPU where it has one) is? Its largest distance may be at most 1.5 times theirs.

usage: parity.py --program build/release/tests/parity_train MODEL... [--steps N] [--bf16]

PyTorch is looked for in this Python and in $INGOT_VENV; where it is not, the test says so and exits with 77. No bound is less than
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
    print("parity: skipped, PyTorch is not installed (tools/setup.sh --torch installs it)")
    sys.exit(77)


find_torch()
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import torch_models  # noqa: E402


def images(steps, batch, shape, generator):
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


def wide(logits):
    return logits.float() if logits.dtype == torch.bfloat16 else logits


def image_loss(m, x, y):
    return F.cross_entropy(wide(m(x)), y)


def text_loss(m, x, y):
    return F.cross_entropy(wide(m(x)).flatten(0, 1), y.flatten())


def sgd(p):
    return torch.optim.SGD(p, lr=0.005, momentum=0.9)


def adamw(p):
    return torch.optim.AdamW(p, lr=3e-4)


CASES = {
    "lenet": (torch_models.LeNet, lambda n, g: images(n, 64, (1, 28, 28), g), image_loss, sgd),
    "resnet18": (torch_models.ResNet18, lambda n, g: images(n, 16, (3, 32, 32), g), image_loss, sgd),
    "vit": (torch_models.ViT, lambda n, g: images(n, 16, (3, 64, 64), g), image_loss, adamw),
    "gpt": (torch_models.GPT, lambda n, g: texts(n, 8, 64, 96, g), text_loss, adamw),
    "lstm": (torch_models.CharLSTM, lambda n, g: texts(n, 16, 48, 96, g), text_loss, adamw),
}


# Models whose curves another order of rounding moves by more than another number of threads does, and why.
ALIKE = {
    "vit": "PyTorch's layers round nearly alike for any number of threads, and AdamW's first step goes by the signs of the gradients",
}


def train(name, init, data, threads=1, dtype=torch.float32, device="cpu", mode=""):
    make, _, loss_of, optimiser = CASES[name]
    torch.set_num_threads(threads)
    if mode == "master":
        dtype = torch.bfloat16
    model = make().to(device, dtype)
    model.load_state_dict(init)
    masters = [p.detach().float().requires_grad_() if mode == "master" else p for p in model.parameters()]
    opt = optimiser(masters)
    losses, gradients = [], {}
    for step, (x, y) in enumerate(data):
        x, y = x.to(device), y.to(device)
        with torch.autocast(device, torch.bfloat16, enabled=mode == "autocast"):
            loss = loss_of(model, x.to(dtype) if x.is_floating_point() else x, y)
        model.zero_grad()
        loss.backward()
        if step == 0:
            gradients = {n: p.grad.clone() for n, p in model.named_parameters()}
        if mode == "master":
            for p, m in zip(model.parameters(), masters):
                m.grad = p.grad.float()
        opt.step()
        if mode == "master":
            with torch.no_grad():
                for p, m in zip(model.parameters(), masters):
                    p.copy_(m)
        losses.append(loss.item())
    return np.array(losses), gradients


def older_instructions(name, folder, steps):
    """PyTorch's curve as a processor without this one's newest instructions draws it."""
    newest = "AVX512" in torch.backends.cpu.get_cpu_capability()
    names = ("avx2", "AVX2", "AVX2") if newest else ("default", "SSE4_2", "SSE41")
    environment = dict(os.environ, **dict(zip(("ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA"), names)))
    subprocess.run([sys.executable, __file__, "--curve", folder, "--steps", str(steps), name], env=environment, check=True)
    return np.load(folder + "/curve.npy")


def curve(name, folder, steps):
    init, data = np.load(folder + "/init.npz"), np.load(folder + "/data.npz")
    batches = [(torch.from_numpy(data[f"x.{i}"]), torch.from_numpy(data[f"y.{i}"])) for i in range(steps)]
    np.save(folder + "/curve.npy", train(name, {k: torch.from_numpy(v) for k, v in init.items()}, batches)[0])


def distance(a, b):
    return float((a.double() - b.double()).norm() / b.double().norm().clamp_min(1e-12))


def wider_drift(name, init, data, folder, ours, one, gradients, bound):
    """The drift of a model of ALIKE, and what is wrong with its gradients and its distance from float64."""
    reverse, _ = train(name, init, [(x.flip(0), y.flip(0)) for x, y in data])
    older = older_instructions(name, folder, len(data))
    exact, truth = train(name, init, data, threads=2, dtype=torch.float64)
    order, machine = (np.maximum.accumulate(np.abs(one - other)) for other in (reverse, older))
    own = max(distance(torch.from_numpy(ours["grad." + path]), g) for path, g in truth.items())
    theirs = max(distance(gradients[path], g) for path, g in truth.items())
    print(f"{name}: PyTorch's own drift {order[-1]:.1e} by order, {machine[-1]:.1e} by instructions; from float64 are the curves "
          f"{np.abs(ours['loss'] - exact).max():.1e} (Ingot), {np.abs(one - exact).max():.1e} (PyTorch), "
          f"{np.abs(older - exact).max():.1e} (PyTorch, older instructions), the gradients {own:.1e} (Ingot), {theirs:.1e} (PyTorch)")
    problems = [f"{name}: gradients are {own:.1e} from float64's, PyTorch's {theirs:.1e}"] if own > 1.5 * theirs else []
    far, farther = np.abs(ours["loss"] - exact).max(), max(np.abs(one - exact).max(), np.abs(older - exact).max())
    print(f"{name}: a curve without rounding, the float64 one, is {(np.abs(one - exact) / bound).max():.2f} times the bound from threads")
    if far > 1.5 * farther:
        problems.append(f"{name}: the curve is {far:.1e} from float64's, PyTorch's {farther:.1e}")
    return np.maximum(order, machine), problems


def compare(name, init, data, folder, ours):
    one, gradients = train(name, init, data)
    two, _ = train(name, init, data, threads=2)
    problems = []
    apart = {path: distance(torch.from_numpy(ours["grad." + path]), want) for path, want in gradients.items()}
    problems += [f"{name}: the gradient of {path} differs by {d:.2e}" for path, d in apart.items() if d > 1e-5]
    threads = np.maximum.accumulate(np.abs(one - two))
    off = np.minimum(np.abs(ours["loss"] - one), np.abs(ours["loss"] - two))
    smallest = 2.0**-22 * np.abs(one)
    bound = np.maximum(3 * threads, smallest)
    times = off / bound
    print(f"{name}: loss {one[0]:.4f} -> {one[-1]:.4f} in {len(data)} steps; first gradients within {max(apart.values()):.1e}; largest distance "
          f"{off.max():.1e}, PyTorch's own drift by threads {threads[-1]:.1e}, at most {times.max():.2f} times the bound from that")
    if name in ALIKE:
        drift, more = wider_drift(name, init, data, folder, ours, one, gradients, bound)
        problems += more
        if times.max() > 1:
            print(f"{name}: MISSES three times the drift by threads ({int((times > 1).sum())} steps): {ALIKE[name]}")
        bound = np.maximum(bound, 3 * drift)
    if (off > bound).any():
        step = int(np.argmax(off > bound))
        problems.append(f"{name}: step {step}: loss {ours['loss'][step]:.7f}, PyTorch {one[step]:.7f} and {two[step]:.7f}, bound {bound[step]:.1e}")
    if not one[-1] < one[0]:
        problems.append(f"{name}: PyTorch's own loss did not fall, the case says nothing")
    return problems


def compare_bf16(name, init, data, mode, ours):
    exact, _ = train(name, init, data, threads=2)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    band, _ = train(name, init, data, threads=2, device=device, mode=mode)
    own, theirs = np.abs(ours["loss"] - exact).max(), np.abs(band - exact).max()
    print(f"{name}: {mode}: loss {exact[0]:.4f} -> {exact[-1]:.4f} in {len(data)} steps (float32), {ours['loss'][-1]:.4f} (Ingot), {band[-1]:.4f} (PyTorch "
          f"on {device}); largest distance from float32 {own:.1e} (Ingot), {theirs:.1e} (PyTorch)")
    return [f"{name}: {mode} is {own / theirs:.2f} times as far from float32 as PyTorch"] if not own <= 1.5 * theirs else []


def check(name, steps, program, bf16):
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
        problems = []
        for mode in ("autocast", "master") if bf16 else ("",):
            done = subprocess.run([program, name, folder, str(steps), *mode.split()])
            if done.returncode != 0:
                return [f"{name}: parity_train failed ({done.returncode})"]
            ours = dict(np.load(folder + "/ours.npz"))
            problems += compare_bf16(name, init, data, mode, ours) if bf16 else compare(name, init, data, folder, ours)
        return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program")
    parser.add_argument("--curve", metavar="FOLDER", help="only write PyTorch's curve (older_instructions() starts this)")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("models", nargs="+", choices=sorted(CASES))
    options = parser.parse_args()
    if options.curve:
        return curve(options.models[0], options.curve, options.steps)
    if not options.program:
        parser.error("--program is needed")
    problems = []
    for name in options.models:
        problems += check(name, options.steps, options.program, options.bf16)
    for p in problems:
        print("FAILED", p)
    sys.exit(1 if problems else 0)


main()
