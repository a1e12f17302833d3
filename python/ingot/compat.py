"""Coming from PyTorch.

    mine.load_state_dict(torch_model.state_dict())      # names and shapes are PyTorch's
    print(ingot.check(mine, reference=torch_model, inputs=(x,)))

check() runs both models on the same inputs, layer by layer, forward and backward, and names the first layer that leaves its error
bound. `guide()` prints what differs between the two libraries."""
from . import _ingot
from ._ingot import Tensor

GUIDE = """From PyTorch to Ingot

1. Change the imports: `import ingot as torch`, `import ingot.nn as nn`, `import ingot.nn.functional as F`.
2. Weights: `model.load_state_dict(torch_model.state_dict())`, or ingot.save/ingot.load (safetensors).
3. What differs:
   - Nothing runs until a value is needed (item(), printing, numpy(), optimizer.step()); errors of shapes and types come at the call,
     a bad index when the value is computed. INGOT_EAGER=1 runs each op at its line.
   - optimizer.step() clears gradients that the program does not use after it; step(keep_gradients=True) keeps them.
   - from_numpy() copies (share=True shares); an array of .numpy() shares memory until the tensor is changed in place.
   - dtypes: float64, float32, float16, bfloat16, int64, int32, int16, int8, uint8, bool. No complex, no sparse, no quantised tensors.
   - DataLoader's workers are threads.
4. Compare: `ingot.check(model, reference=torch_model, inputs=(x,))`.
"""


def guide():
    print(GUIDE)


class Report:
    """What check() found: rows of (path, kind of layer, pass, worst difference, bound), and the first that is too large."""

    def __init__(self):
        self.rows = []
        self.first = None

    def __bool__(self):
        return self.first is None

    def add(self, path, kind, which, worst, bound, text=""):
        row = (path, kind, which, worst, bound, text)
        self.rows.append(row)
        if self.first is None and (text or not worst <= bound):
            self.first = row

    def __repr__(self):
        if self.first is None:
            worst = max((r[3] for r in self.rows), default=0.0)
            return f"all {len(self.rows)} comparisons agree; the largest difference is {worst:.2e}"
        path, kind, which, worst, bound, text = self.first
        what = text or f"differs by {worst:.2e}, the bound is {bound:.2e}"
        lines = [f"first difference: {which} of {path or 'the model'} ({kind}): {what}"]
        lines += [f"  {'!' if r is self.first else ' '} {r[2]:8} {r[0] or '(model)':40} {r[3]:.2e} of {r[4]:.2e}" for r in self.rows]
        return "\n".join(lines)


def from_torch(x):
    """PyTorch's tensors in a nest of tuples, lists and dicts as Ingot's: copies."""
    import torch

    if isinstance(x, torch.Tensor):
        return _ingot.from_dlpack(x.detach().contiguous(), copy=True) if x.numel() else _ingot.tensor(x.detach().numpy())
    if isinstance(x, (tuple, list)):
        return type(x)(from_torch(v) for v in x)
    if isinstance(x, dict):
        return {k: from_torch(v) for k, v in x.items()}
    return x


def to_torch(x):
    """Ingot's tensors as PyTorch's: copies."""
    import torch

    if isinstance(x, Tensor):
        return torch.from_dlpack(x.detach()).clone()
    if isinstance(x, (tuple, list)):
        return type(x)(to_torch(v) for v in x)
    if isinstance(x, dict):
        return {k: to_torch(v) for k, v in x.items()}
    return x


def _tensors(x, kind, out):
    if isinstance(x, kind):
        out.append(x)
    elif isinstance(x, (tuple, list)):
        for v in x:
            _tensors(v, kind, out)
    elif isinstance(x, dict):
        for v in x.values():
            _tensors(v, kind, out)
    return out


def _difference(mine, theirs, floor=1e-6):
    """The largest difference, against the largest element, or against floor where that is larger."""
    a, b = mine.detach().to(_ingot.float64), from_torch(theirs.detach().double())
    if tuple(a.shape) != tuple(b.shape):
        return None, f"shape {list(a.shape)} for {list(b.shape)}"
    if not a.numel():
        return 0.0, ""
    scale = max(float(b.abs().max()), floor)
    worst = float((a - b).abs().max()) / scale
    return (worst, "") if worst == worst else (float("inf"), "NaN")


def check(model, reference, inputs, *, rtol=1e-4, backward=True, load=True):
    """Compares an Ingot model with PyTorch's, layer by layer: every submodule's output in the order they ran, then the gradients of
    every parameter. inputs: a tuple of PyTorch's tensors or Ingot's. With load, the reference's weights are put into the model
    first. A difference is measured against the largest element of the reference (of a gradient, at least a thousandth of the largest of
    all gradients, since one that is 0 in truth is rounding noise); the bound is rtol, and 10 rtol for gradients.
    Returns a Report, which is true when all agrees and prints the first layer that does not."""
    import torch

    if load:
        model.load_state_dict(reference.state_dict())
    inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    theirs_in = tuple(to_torch(x) for x in inputs)
    mine_in = tuple(from_torch(x) for x in theirs_in)
    seen_mine, seen_theirs, handles = [], [], []

    def watch(root, kind, seen):
        for path, m in root.named_modules():
            if path:
                handles.append(m.register_forward_hook(lambda mod, args, out, path=path: seen.append((path, type(mod).__name__, _tensors(
                    out, kind, [])))))

    watch(reference, torch.Tensor, seen_theirs)
    watch(model, Tensor, seen_mine)
    try:
        theirs = _tensors(reference(*theirs_in), torch.Tensor, [])
        mine = _tensors(model(*mine_in), Tensor, [])
    finally:
        for h in handles:
            h.remove()
    report = Report()
    seen_mine.append(("", type(model).__name__, mine))
    seen_theirs.append(("", type(reference).__name__, theirs))
    order = {}
    for path, kind, outs in seen_mine:
        order.setdefault(path, []).append((kind, outs))
    for path, kind, outs in seen_theirs:
        if not order.get(path):
            report.add(path, kind, "forward", float("inf"), rtol, "no layer of this path ran in the Ingot model")
            continue
        _, own = order[path].pop(0)
        for a, b in zip(own, outs):
            worst, text = _difference(a, b)
            report.add(path, kind, "forward", float("inf") if worst is None else worst, rtol, text)
    if backward and report:
        _check_gradients(model, reference, mine, theirs, rtol, report)
    return report


def _check_gradients(model, reference, mine, theirs, rtol, report):
    import torch

    pairs = [(a, b) for a, b in zip(mine, theirs) if b.requires_grad]
    if not pairs:
        return
    generator = torch.Generator().manual_seed(1)
    weights = [torch.randn(b.shape, generator=generator).to(b.dtype) for _, b in pairs]
    reference.zero_grad()
    model.zero_grad()
    torch.autograd.backward([b for _, b in pairs], weights)
    total = None
    for (a, _), w in zip(pairs, weights):
        part = (a * from_torch(w)).sum()
        total = part if total is None else total + part
    total.backward()
    own = dict(model.named_parameters())
    # A gradient that is 0 in truth (a bias before a norm) is rounding noise in both libraries: what that may be is measured against the
    # other gradients, whose terms it is a sum of.
    largest = max((float(p.grad.abs().max()) for p in reference.parameters() if p.grad is not None and p.grad.numel()), default=0.0)
    noise = 1e-3 * largest if largest == largest and largest != float("inf") else 1e-6
    # The last layers' gradients are known first: an error is named where it arises.
    for name, p in reversed(list(reference.named_parameters())):
        if p.grad is None:
            continue
        q = own.get(name)
        if q is None or q.grad is None:
            report.add(name, "parameter", "backward", float("inf"), 10 * rtol, "has no gradient in the Ingot model")
            continue
        worst, text = _difference(q.grad, p.grad, max(noise, 1e-6))
        report.add(name, "parameter", "backward", float("inf") if worst is None else worst, 10 * rtol, text)
    model.zero_grad()
    reference.zero_grad()
