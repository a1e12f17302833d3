#!/usr/bin/env python3
"""PyTorch's own op database (torch.testing._internal) through Ingot: every sample of every op that both have, forward and gradient,
float32 on the CPU.

    PYTHONPATH=build/release/python python tests/python/op_database.py [NAME...] [--samples N] [--json FILE] [--quiet]

Per op it prints how many samples were tried, agreed, differed, or use what Ingot does not have; then how many names agree in all
samples. Exit status 1 when an op differs.

A sample that does not agree with PyTorch's float32 numbers is held to a third party, at the same tolerance: PyTorch's own function in
float64, and for gradients the central differences of that function (not its gradient formula). What agrees with that counts as agreeing,
is counted again under "by float64", and is printed with the error of both programs."""
import argparse
import itertools
import json
import math
import sys
import types
import warnings

try:
    import expecttest  # noqa: F401
except ImportError:  # common_utils wants it for other purposes
    stub = types.ModuleType("expecttest")
    stub.TestCase = __import__("unittest").TestCase
    stub.assert_expected_inline = None
    sys.modules["expecttest"] = stub

try:
    import torch
except ImportError:
    print("op_database: skipped, PyTorch is not installed (tools/setup.sh --torch installs it)")
    sys.exit(77)
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

import ingot  # noqa: E402

warnings.simplefilter("ignore")

# Ops whose arguments the database gives in another order than the function takes them.
F = ingot.nn.functional
TURNED = {
    "nn.functional.embedding": lambda weight, index, **k: F.embedding(index, weight, **k),
    "where": lambda self, condition, other: ingot.where(condition, self, other),
    "einsum": lambda operands, equation: ingot.einsum(equation, *operands),
    "T": lambda x: x.T, "mT": lambda x: x.mT,
    "block_diag": lambda *x: ingot.block_diag(*x),
    "split_with_sizes": lambda x, n, dim=0: x.split(n, dim),
    "zero_": lambda x: x.clone().zero_(), "fill": lambda x, value: x.clone().fill_(value),
    "polygamma": lambda x, n: ingot.polygamma(n, x), "special.polygamma": lambda x, n: ingot.polygamma(n, x),
    "nn.functional.upsample_nearest": lambda x, *a, **k: F.interpolate(x, *a, mode="nearest", **k),
    "nn.functional.upsample_bilinear": lambda x, *a, **k: F.interpolate(x, *a, mode="bilinear", align_corners=True, **k),
}
# Drawn at random, or without values to compare; and what is about PyTorch's storage.
SKIP = ("rand", "randn", "randint", "uniform", "normal", "exponential", "geometric", "cauchy", "log_normal", "bernoulli", "multinomial",
        "empty", "new_empty", "empty_like", "randint_like", "rand_like", "randn_like", "empty_permuted", "empty_strided", "new_empty_strided",
        "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.alpha_dropout",
        "nn.functional.feature_alpha_dropout", "nn.functional.rrelu", "as_strided", "resize_", "resize_as_", "to_sparse", "polar",
        "normal_", "nn.functional.feature_alpha_dropout", "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d")
DTYPES = {getattr(torch, n): getattr(ingot, n) for n in ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
                                                         "bool")}


class Missing(Exception):
    """Ingot does not have this."""


def find(name):
    """Ingot's function of this name: of the package, or a method."""
    if name in TURNED:
        return TURNED[name]
    if name.startswith("__") or name in ("view", "expand", "repeat", "new_zeros", "new_ones", "new_full"):
        return getattr(ingot.Tensor, name, None)
    place = ingot
    for part in name.split("."):
        place = getattr(place, part, None)
        if place is None:
            break
    if place is None or not callable(place) or isinstance(place, type):
        return None if name.startswith("masked.") else getattr(ingot.Tensor, name.rsplit(".")[-1], None)
    return place


def convert(x, tensors, grad):
    """PyTorch's arguments as Ingot's; pairs of floating tensors that need gradients are collected."""
    if isinstance(x, torch.Tensor):
        if x.dtype not in DTYPES or x.layout is not torch.strided:
            raise Missing(f"tensors of {x.dtype}, {x.layout}")
        y = ingot.from_dlpack(x.detach().contiguous(), copy=True) if x.numel() else ingot.zeros(tuple(x.shape), dtype=DTYPES[x.dtype])
        if grad and x.requires_grad:
            y.requires_grad_(True)
            tensors.append((x, y))
        return y
    if isinstance(x, torch.dtype):
        if x not in DTYPES:
            raise Missing(str(x))
        return DTYPES[x]
    if isinstance(x, torch.device):
        return str(x)
    if isinstance(x, torch.memory_format):
        return None
    if isinstance(x, torch.Size):
        return tuple(x)
    if isinstance(x, (list, tuple)):
        parts = [convert(v, tensors, grad) for v in x]
        return type(x)(parts) if type(x) in (list, tuple) else tuple(parts)
    if isinstance(x, dict):
        return {k: convert(v, tensors, grad) for k, v in x.items()}
    if isinstance(x, complex):
        raise Missing("complex numbers")
    if x is None or isinstance(x, (bool, int, float, str, slice, type(Ellipsis))):
        return x
    raise Missing(type(x).__name__)


def flat(x, kind, out):
    if isinstance(x, kind):
        out.append(x)
    elif isinstance(x, (tuple, list)):
        for v in x:
            flat(v, kind, out)
    elif x is not None:
        out.append(x)
    return out


def tolerance(dtype):
    return (1e-7, 1e-9) if dtype == torch.float64 else (2e-4, 2e-5) if dtype == torch.float32 else (2e-2, 2e-2)


def differs(theirs, mine):
    """What is different between two results, or None."""
    if not isinstance(theirs, torch.Tensor):
        if isinstance(mine, ingot.Tensor):
            mine = mine.item()
        same = mine == theirs or (isinstance(theirs, float) and math.isclose(mine, theirs, rel_tol=1e-5))
        return None if same else f"{mine} for {theirs}"
    if not isinstance(mine, ingot.Tensor):
        return f"{type(mine).__name__} for a tensor"
    if theirs.dtype not in DTYPES:
        raise Missing(str(theirs.dtype))
    if tuple(theirs.shape) != tuple(mine.shape):
        return f"shape {list(mine.shape)} for {list(theirs.shape)}"
    if DTYPES[theirs.dtype] is not mine.dtype:
        return f"{mine.dtype} for {theirs.dtype}"
    if not theirs.numel():
        return None
    a, b = theirs.detach().double(), torch.from_dlpack(mine.detach())
    bad = ~torch.isclose(b.double(), a, *tolerance(theirs.dtype), equal_nan=True)
    if not bad.any():
        return None
    return f"{int(bad.sum())} of {a.numel()} elements, such as {b[bad].flatten()[0].item()} for {a[bad].flatten()[0].item()}"


def in_float64(x):
    if isinstance(x, torch.Tensor):
        return x.detach().to(torch.float64) if x.is_floating_point() else x
    if isinstance(x, (list, tuple)):
        return type(x)(in_float64(v) for v in x)
    return {k: in_float64(v) for k, v in x.items()} if isinstance(x, dict) else x


class Truth:
    """One sample through PyTorch's function in float64: its results, and its derivatives by central differences."""

    def __init__(self, op, sample):
        self.op, self.places = op, []
        self.given = [self.note(v, sample.input if i == 0 else sample.args[i - 1]) for i, v in
                      enumerate(in_float64([sample.input, *sample.args]))]
        self.named = {k: self.note(in_float64(v), v) for k, v in sample.kwargs.items()}

    def note(self, wide, narrow):
        """Remembers which float64 tensor corresponds to which of the sample's."""
        if isinstance(narrow, torch.Tensor):
            self.places.append((narrow, wide))
        elif isinstance(narrow, (list, tuple)):
            for w, n in zip(wide, narrow):
                self.note(w, n)
        return wide

    def results(self):
        with torch.no_grad():
            return flat(self.op.op(*self.given, **self.named), torch.Tensor, [])

    def derivative(self, leaf, chosen, weights, h=1e-5):
        x = next(wide for narrow, wide in self.places if narrow is leaf)
        out = torch.zeros(x.shape, dtype=torch.float64)

        def weighted():
            results = self.results()
            return sum(float((results[i] * w.double()).sum()) for i, w in zip(chosen, weights))

        for at in itertools.product(*map(range, x.shape)):
            old = x[at].item()
            step = h * max(1.0, abs(old))
            x[at] = old + step
            above = weighted()
            x[at] = old - step
            below = weighted()
            x[at] = old
            out[at] = (above - below) / (2 * step)
        return out


def settle(wrong, theirs, mine, truth):
    """None when the two agree after all, by the float64 numbers of truth(); then a line for the report, too."""
    if tuple(theirs.shape) != tuple(mine.shape) or DTYPES.get(theirs.dtype) is not mine.dtype or theirs.dtype != torch.float32:
        return wrong, None
    exact, own = truth(), torch.from_dlpack(mine.detach()).double()
    if not torch.isclose(own, exact, *tolerance(torch.float32), equal_nan=True).all():
        return wrong, None
    off = [float((v - exact).abs().max()) for v in (own, theirs.detach().double())]
    return None, f"largest error against float64 {off[0]:.1e} (Ingot), {off[1]:.1e} (PyTorch)"


def gradients(theirs, mine, pairs, truth, notes):
    """Compares the gradients of all floating results, weighted by fixed numbers."""
    chosen = [i for i, (a, _) in enumerate(zip(theirs, mine)) if isinstance(a, torch.Tensor) and a.requires_grad and a.numel()]
    outs = [(theirs[i], mine[i]) for i in chosen]
    if not outs or not pairs:
        return None
    generator = torch.Generator().manual_seed(7)
    weights = [torch.randn(a.shape, generator=generator, dtype=torch.float64).to(a.dtype) for a, _ in outs]
    expected = torch.autograd.grad([a for a, _ in outs], [x for x, _ in pairs], weights, allow_unused=True)
    keep = [(b, w) for (_, b), w in zip(outs, weights) if b.requires_grad]
    got = [None] * len(pairs)  # no history at all: zeros
    if keep:
        got = ingot.autograd.grad([b for b, _ in keep], [y for _, y in pairs], [ingot.from_dlpack(w, copy=True) for _, w in keep],
                                  allow_unused=True)
    for i, (e, g) in enumerate(zip(expected, got)):
        if e is None and g is None:
            continue
        if e is None:
            e = torch.zeros(tuple(g.shape), dtype=pairs[i][0].dtype)
        if g is None:
            g = ingot.zeros(tuple(e.shape), dtype=DTYPES[e.dtype])
        wrong = differs(e, g)
        if wrong:
            wrong, note = settle(wrong, e, g, lambda i=i: truth.derivative(pairs[i][0], chosen, weights))
            notes.append(f"gradient {i}: {note}")
        if wrong:
            return f"gradient {i}: {wrong}"
    return None


def run_sample(op, function, sample, grad, notes):
    """None when all agrees, else what does not; raises Missing for what Ingot does not have. What float64 had to settle goes to notes."""
    if sample.kwargs.get("dropout_p"):
        raise Missing("random numbers")
    pairs = []
    given = convert((sample.input, *sample.args), pairs, grad)
    named = convert(sample.kwargs, pairs, grad)
    theirs = flat(op.op(sample.input, *sample.args, **sample.kwargs), torch.Tensor, [])
    try:
        result = function(*given, **named)
        mine = flat(result, ingot.Tensor, [])
        ingot.eval([m for m in mine if isinstance(m, ingot.Tensor)])
    except (ingot.UnsupportedError, NotImplementedError) as e:
        raise Missing(str(e)) from None
    except TypeError as e:
        if "incompatible function arguments" in str(e) or "unexpected keyword" in str(e) or "takes" in str(e):
            raise Missing(str(e).split("\n")[0] + str(named)) from None
        raise
    if len(theirs) != len(mine):
        return f"{len(mine)} results for {len(theirs)}"
    truth = Truth(op, sample)
    for i, (a, b) in enumerate(zip(theirs, mine)):
        wrong = differs(a, b)
        if wrong and isinstance(a, torch.Tensor) and isinstance(b, ingot.Tensor):
            wrong, note = settle(wrong, a, b, lambda i=i: truth.results()[i])
            notes.append(f"result {i}: {note}")
        if wrong:
            return wrong
    return gradients(theirs, mine, pairs, truth, notes) if grad else None


def check(op, limit):
    """Figures of one entry of the database."""
    name = op.name
    row = {"tried": 0, "agreed": 0, "differing": 0, "unsupported": 0, "by_float64": 0, "example": ""}
    function = find(name)
    if function is None:
        return None
    grad = op.supports_autograd
    try:
        samples = list(op.sample_inputs("cpu", torch.float32, requires_grad=grad))[:limit]
    except Exception as e:  # the database's own trouble
        row["example"] = f"no samples: {e}"
        return row
    for sample in samples:
        row["tried"] += 1
        notes = []
        try:
            wrong = run_sample(op, function, sample, grad, notes)
        except Missing as e:
            row["unsupported"] += 1
            row["example"] = row["example"] or f"not there: {e}"
            continue
        except Exception as e:
            wrong = f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
        if wrong is None:
            row["agreed"] += 1
            row["by_float64"] += bool(notes)
            row["example"] = row["example"] or (f"by float64: {notes[0]}" if notes else "")
        else:
            row["differing"] += 1
            row["example"] = f"{wrong} | {sample.summary() if hasattr(sample, 'summary') else ''}"[:300]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--samples", type=int, help="at most this many of each entry; all unless given")
    parser.add_argument("--json")
    parser.add_argument("--quiet", action="store_true", help="only what differs, and the totals")
    options = parser.parse_args()
    rows, absent = {}, []
    for op in op_db:
        full = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
        if options.names and op.name not in options.names and full not in options.names:
            continue
        if op.name in SKIP or op.name.startswith(("fft.", "sparse.", "_", "signal.", "torch.ops", "special.airy")) or torch.float32 not in op.dtypes:
            continue
        torch.manual_seed(0)
        row = check(op, options.samples)
        if row is None:
            absent.append(op.name)
            continue
        rows[full] = row
        if not options.quiet or row["differing"] or row["by_float64"]:
            print(f"{full:45} tried {row['tried']:3}  agreed {row['agreed']:3}  differing {row['differing']:3}  unsupported "
                  f"{row['unsupported']:3}  {row['example']}", flush=True)
    names = {}
    for full, row in rows.items():
        names.setdefault(full.split(".")[0] if not full.startswith(("nn.", "linalg.", "special.", "masked.")) else full, []).append(row)
    good = [n for n, rs in names.items() if sum(r["tried"] for r in rs) and all(r["agreed"] == r["tried"] for r in rs)]
    none_differ = [n for n, rs in names.items() if sum(r["agreed"] for r in rs) and not any(r["differing"] for r in rs)]
    total = {k: sum(r[k] for r in rows.values()) for k in ("tried", "agreed", "by_float64", "differing", "unsupported")}
    print(f"{len(good)} names agree in every sample, {len(none_differ)} in every sample that Ingot has the options for; {len(names)} names tried, "
          f"{len(set(absent))} not there; samples: {total}")
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"rows": rows, "absent": sorted(set(absent)), "agreeing": sorted(good)}, f, indent=1)
    return 1 if total["differing"] else 0


if __name__ == "__main__":
    sys.exit(main())
