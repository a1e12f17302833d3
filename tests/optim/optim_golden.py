#!/usr/bin/env python3
"""Writes optim_golden.inc: what PyTorch's optimisers make of a parameter in 8 steps, and PyTorch's schedules of a rate in 25. Run by
hand, with PyTorch installed:
    python3 optim_golden.py > optim_golden.inc
A case is a pair (C++ options, Python options); optim_test of this folder makes the same parameter and gradients."""
import torch
from torch.optim import lr_scheduler as S

f64 = torch.float64


def run(make, dtype=f64):
    p = torch.tensor([[1.0, -2.0, 0.5], [0.25, 3.0, -1.5]], dtype=dtype, requires_grad=True)
    opt = make([p])
    for k in range(8):
        opt.zero_grad()
        (p * p * 0.15 + p * (0.1 * k - 0.2) + torch.sin(p) * 0.1).sum().backward()
        opt.step()
        if k == 3:
            opt.param_groups[0]["lr"] *= 0.5
    return p.detach().flatten().tolist()


O = torch.optim
optimisers = [
    ("SGD", ".lr = 0.1", dict(lr=0.1)),
    ("SGD", ".lr = 0.1, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.01, .maximize = true",
     dict(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.01, maximize=True)),
    ("SGD", ".lr = 0.1, .momentum = 0.9, .nesterov = true", dict(lr=0.1, momentum=0.9, nesterov=True)),
    ("Adam", ".lr = 0.05, .weight_decay = 0.1", dict(lr=0.05, weight_decay=0.1)),
    ("Adam", ".lr = 0.05, .weight_decay = 0.1, .amsgrad = true, .decoupled_weight_decay = true",
     dict(lr=0.05, weight_decay=0.1, amsgrad=True, decoupled_weight_decay=True)),
    ("AdamW", ".lr = 0.05, .betas = {0.8, 0.95}, .weight_decay = 0.1", dict(lr=0.05, betas=(0.8, 0.95), weight_decay=0.1)),
    ("RMSprop", "", dict()),
    ("RMSprop", ".lr = 0.02, .alpha = 0.9, .weight_decay = 0.1, .momentum = 0.8, .centered = true",
     dict(lr=0.02, alpha=0.9, weight_decay=0.1, momentum=0.8, centered=True)),
    ("Adagrad", "", dict()),
    ("Adagrad", ".lr = 0.1, .lr_decay = 0.05, .weight_decay = 0.1, .initial_accumulator_value = 0.2",
     dict(lr=0.1, lr_decay=0.05, weight_decay=0.1, initial_accumulator_value=0.2)),
    ("Adadelta", "", dict()),
    ("Adadelta", ".lr = 0.5, .rho = 0.7, .eps = 1e-3, .weight_decay = 0.1", dict(lr=0.5, rho=0.7, eps=1e-3, weight_decay=0.1)),
    ("Adamax", ".lr = 0.05, .weight_decay = 0.1", dict(lr=0.05, weight_decay=0.1)),
    ("RAdam", ".lr = 0.05, .weight_decay = 0.1", dict(lr=0.05, weight_decay=0.1)),
    ("RAdam", ".lr = 0.05, .betas = {0.9, 0.9}, .weight_decay = 0.1, .decoupled_weight_decay = true",
     dict(lr=0.05, betas=(0.9, 0.9), weight_decay=0.1, decoupled_weight_decay=True)),
]
# A float32 product of momenta inside PyTorch.
rounded = [
    ("NAdam", ".lr = 0.05, .weight_decay = 0.1", dict(lr=0.05, weight_decay=0.1)),
    ("NAdam", ".lr = 0.05, .weight_decay = 0.1, .momentum_decay = 0.01, .decoupled_weight_decay = true, .maximize = true",
     dict(lr=0.05, weight_decay=0.1, momentum_decay=0.01, decoupled_weight_decay=True, maximize=True)),
]
# bfloat16 inside PyTorch's own iteration: compared loosely.
loose = [
    ("Muon", ".lr = 0.05", dict(lr=0.05)),
    ("Muon", '.lr = 0.05, .weight_decay = 0, .nesterov = false, .adjust_lr_fn = "match_rms_adamw"',
     dict(lr=0.05, weight_decay=0, nesterov=False, adjust_lr_fn="match_rms_adamw")),
]


def rates(make, metric=False, steps=25):
    p = torch.zeros(1, requires_grad=True)
    opt = torch.optim.SGD([p], lr=0.5, momentum=0.9)
    s = make(opt)
    result = []
    for k in range(steps):
        result += [opt.param_groups[0]["lr"], opt.param_groups[0]["momentum"]]
        opt.step()
        s.step(abs(k - 6) * 0.1 + 1) if metric else s.step()
    return result


def sequence(o):
    return S.SequentialLR(o, [S.LinearLR(o, 0.1, 1.0, 5), S.CosineAnnealingLR(o, 8, 0.01), S.ConstantLR(o, 0.5, 3)], [5, 15])


schedules = [
    ("LambdaLR s(o, [](int64_t e) { return 1.0 / (1.0 + static_cast<double>(e)); })", lambda o: S.LambdaLR(o, lambda e: 1.0 / (1.0 + e))),
    ("MultiplicativeLR s(o, [](int64_t e) { return e % 2 ? 0.9 : 1.05; })",
     lambda o: S.MultiplicativeLR(o, lambda e: 0.9 if e % 2 else 1.05)),
    ("StepLR s(o, 4, 0.5)", lambda o: S.StepLR(o, 4, 0.5)),
    ("MultiStepLR s(o, {3, 7, 7, 12}, 0.5)", lambda o: S.MultiStepLR(o, [3, 7, 7, 12], 0.5)),
    ("ConstantLR s(o)", lambda o: S.ConstantLR(o)),
    ("LinearLR s(o)", lambda o: S.LinearLR(o)),
    ("LinearLR s(o, 0.2, 0.6, 9)", lambda o: S.LinearLR(o, 0.2, 0.6, 9)),
    ("ExponentialLR s(o, 0.9)", lambda o: S.ExponentialLR(o, 0.9)),
    ("PolynomialLR s(o, 12, 2)", lambda o: S.PolynomialLR(o, 12, 2)),
    ("CosineAnnealingLR s(o, 9, 0.02)", lambda o: S.CosineAnnealingLR(o, 9, 0.02)),
    ("CosineAnnealingWarmRestarts s(o, 4, 2, 0.01)", lambda o: S.CosineAnnealingWarmRestarts(o, 4, 2, 0.01)),
    ("OneCycleLR s(o, 1.0, {.total_steps = 25})", lambda o: S.OneCycleLR(o, 1.0, total_steps=25)),
    ('OneCycleLR s(o, 1.0, {.epochs = 6, .steps_per_epoch = 5, .pct_start = 0.25, .anneal_strategy = "linear", .div_factor = 10, '
     ".final_div_factor = 100, .three_phase = true})",
     lambda o: S.OneCycleLR(o, 1.0, epochs=6, steps_per_epoch=5, pct_start=0.25, anneal_strategy="linear", div_factor=10,
                            final_div_factor=100, three_phase=True)),
    ("LinearLR a(o, 0.1, 1, 5); CosineAnnealingLR b(o, 8, 0.01); ConstantLR c(o, 0.5, 3); SequentialLR s(o, {a, b, c}, {5, 15})", sequence),
    ("ConstantLR a(o, 0.1, 4); ExponentialLR b(o, 0.9); ChainedScheduler s({a, b})",
     lambda o: S.ChainedScheduler([S.ConstantLR(o, 0.1, 4), S.ExponentialLR(o, 0.9)], o)),
]
plateaus = [
    ("ReduceLROnPlateau s(o, {.factor = 0.5, .patience = 2})", lambda o: S.ReduceLROnPlateau(o, factor=0.5, patience=2)),
    ('ReduceLROnPlateau s(o, {.mode = "max", .factor = 0.5, .patience = 1, .threshold = 0.01, .threshold_mode = "abs", .cooldown = 2, '
     ".min_lr = 0.1})",
     lambda o: S.ReduceLROnPlateau(o, mode="max", factor=0.5, patience=1, threshold=0.01, threshold_mode="abs", cooldown=2, min_lr=0.1)),
]


def numbers(v):
    return "(V{" + ", ".join(repr(float(x)) for x in v) + "})"


print(f"// Written by optim_golden.py with PyTorch {torch.__version__.split('+')[0]}. Do not edit.")
for name, cpp, options in optimisers:
    print(f"OPTIMISER({name}, ({{{cpp}}}), {numbers(run(lambda p: getattr(O, name)(p, **options)))})")
for name, cpp, options in rounded:
    print(f"ROUNDED({name}, ({{{cpp}}}), {numbers(run(lambda p: getattr(O, name)(p, **options)))})")
for name, cpp, options in loose:
    print(f"LOOSE({name}, ({{{cpp}}}), {numbers(run(lambda p: getattr(O, name)(p, **options), torch.float32))})")
for cpp, make in schedules:
    print(f"SCHEDULE(({cpp}), {numbers(rates(make))})")
for cpp, make in plateaus:
    print(f"PLATEAU(({cpp}), {numbers(rates(make, metric=True))})")
