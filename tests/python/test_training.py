"""Gradients, modules, optimisers, schedules, mixed precision, capture, files, data."""
import os
import tempfile
import unittest

from common import TestCase, ingot, needs_numpy, needs_torch, numpy, to_ingot, torch

nn = ingot.nn
F = ingot.nn.functional


class Gradients(TestCase):
    def test_backward_grad_and_modes(self):
        x = ingot.tensor([1.0, 2.0], requires_grad=True)
        (x * x).sum().backward()
        self.assertEqual(x.grad.tolist(), [2, 4])
        (x * 3).sum().backward()
        self.assertEqual(x.grad.tolist(), [5, 7])
        x.grad = None
        self.assertIsNone(x.grad)
        (g,) = ingot.autograd.grad((x**3).sum(), x, create_graph=True)
        (h,) = ingot.autograd.grad(g.sum(), x)
        self.assertEqual(h.tolist(), [6, 12])
        with ingot.no_grad():
            self.assertFalse((x * 2).requires_grad)
            with ingot.enable_grad():
                self.assertTrue((x * 2).requires_grad)

        @ingot.no_grad()
        def f(v):
            return v * 2

        @ingot.no_grad
        def g2(v):
            return v * 2

        self.assertFalse(f(x).requires_grad)
        self.assertFalse(g2(x).requires_grad)
        self.assertTrue(ingot.is_grad_enabled())

    def test_hooks(self):
        x = ingot.ones(2, requires_grad=True)
        seen = []
        handle = x.register_hook(lambda g: seen.append(g.tolist()) or g * 10)
        (x * 3).sum().backward()
        self.assertEqual(seen, [[3, 3]])
        self.assertEqual(x.grad.tolist(), [30, 30])
        handle.remove()
        (x * 3).sum().backward()
        self.assertEqual(x.grad.tolist(), [33, 33])

    def test_function(self):
        class Clipped(ingot.autograd.Function):
            @staticmethod
            def forward(ctx, x, low):
                ctx.save_for_backward(x)
                return x.clamp(low, 1)

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return g * 2 * x, None

        x = ingot.tensor([0.5, 3.0], requires_grad=True)
        y = Clipped.apply(x, 0)
        self.assertEqual(y.tolist(), [0.5, 1])
        y.sum().backward()
        self.assertEqual(x.grad.tolist(), [1, 6])

    def test_an_exception_in_a_hook_comes_through(self):
        x = ingot.ones(2, requires_grad=True)

        def bad(g):
            raise KeyError("mine")

        x.register_hook(bad)
        with self.assertRaises(KeyError):
            (x * 2).sum().backward()

    def test_gradcheck(self):
        x = ingot.randn(3, dtype=ingot.float64, requires_grad=True)
        self.assertTrue(ingot.autograd.gradcheck(lambda v: (v.sin() * v).sum(), x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(8, 3)
        self.scale = nn.Parameter(ingot.ones(1))
        self.register_buffer("seen", ingot.zeros(1))

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x))) * self.scale


class Modules(TestCase):
    def test_registration(self):
        net = Net()
        self.assertEqual([n for n, _ in net.named_parameters()], ["scale", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"])
        self.assertEqual(list(net.state_dict()), ["scale", "seen", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"])
        self.assertEqual([n for n, _ in net.named_modules()], ["", "fc1", "act", "fc2"])
        net.fc2 = nn.Identity()
        self.assertEqual(len(list(net.parameters())), 3)
        del net.fc1
        with self.assertRaises(AttributeError):
            net.fc1
        with self.assertRaises(AttributeError):
            class Early(nn.Module):
                def __init__(self):
                    self.fc = nn.Linear(1, 1)

            Early()

    def test_modes_hooks_and_apply(self):
        net = Net()
        self.assertFalse(net.eval().fc1.training)
        calls = []
        h1 = net.fc1.register_forward_hook(lambda m, a, out: calls.append("after"))
        h2 = net.fc1.register_forward_pre_hook(lambda m, a: calls.append("before"))
        net(ingot.ones(1, 4))
        self.assertEqual(calls, ["before", "after"])
        h1.remove(), h2.remove()
        net(ingot.ones(1, 4))
        self.assertEqual(len(calls), 2)
        seen = []
        net.fc2.register_full_backward_hook(lambda m, gi, go: seen.append((gi[0].shape, go[0].shape)))
        net(ingot.ones(1, 4)).sum().backward()
        self.assertEqual(seen, [((1, 8), (1, 3))])
        names = []
        net.apply(lambda m: names.append(type(m).__name__))
        self.assertEqual(names[-1], "Net")

    def test_state_round_trip(self):
        a, b = Net(), Net()
        b.load_state_dict(a.state_dict())
        x = ingot.randn(2, 4)
        self.assertEqual(a(x).tolist(), b(x).tolist())
        with self.assertRaises(ingot.ValueError) as caught:
            b.load_state_dict({"fc1.weight": ingot.zeros(1)})
        self.assertIn("missing", str(caught.exception))
        self.assertIn("fc1.weight has shape [1]", str(caught.exception))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.safetensors")
            ingot.save(a.state_dict(), path)
            c = Net()
            c.load_state_dict(ingot.load(path))
            self.assertEqual(a(x).tolist(), c(x).tolist())

    def test_to(self):
        net = Net().to(ingot.float64)
        self.assertIs(net.fc1.weight.dtype, ingot.float64)
        self.assertIsInstance(net.fc1.weight, nn.Parameter)
        self.assertTrue(net.fc1.weight.requires_grad)

    @needs_torch
    def test_weights_from_torch(self):
        reference = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
        mine = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 2))
        mine.load_state_dict(reference.state_dict())
        x = torch.randn(3, 4)
        self.close(mine(to_ingot(x)), reference(x))


class Training(TestCase):
    @needs_torch
    def test_optimisers_follow_torch(self):
        cases = [("SGD", dict(lr=0.1)), ("SGD", dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)), ("Adam", dict(lr=0.01)),
                 ("AdamW", dict(lr=0.01, weight_decay=0.1)), ("RMSprop", dict(momentum=0.5)), ("Adagrad", dict(lr=0.1)),
                 ("Adadelta", dict()), ("Adamax", dict()), ("NAdam", dict()), ("RAdam", dict(lr=0.01, weight_decay=1))]
        for name, options in cases:
            with self.subTest(name=name, **options):
                reference = torch.nn.Linear(4, 3)
                mine = nn.Linear(4, 3)
                mine.load_state_dict(reference.state_dict())
                a = getattr(torch.optim, name)(reference.parameters(), **options)
                b = getattr(ingot.optim, name)(mine.parameters(), **options)
                sa, sb = torch.optim.lr_scheduler.StepLR(a, 2, 0.5), ingot.optim.lr_scheduler.StepLR(b, 2, 0.5)
                for _ in range(6):
                    x = torch.randn(5, 4)
                    for net, opt, sched, v in ((reference, a, sa, x), (mine, b, sb, to_ingot(x))):
                        opt.zero_grad()
                        (net(v) ** 2).mean().backward()
                        opt.step()
                        sched.step()
                self.close(mine.weight, reference.weight)

    @needs_torch
    def test_schedules_have_torchs_values(self):
        import warnings

        warnings.simplefilter("ignore")
        cases = [("StepLR", dict(step_size=3)), ("MultiStepLR", dict(milestones=[2, 5])), ("ExponentialLR", dict(gamma=0.9)),
                 ("CosineAnnealingLR", dict(T_max=5)), ("LinearLR", dict(total_iters=4)), ("ConstantLR", dict(total_iters=3)),
                 ("PolynomialLR", dict(total_iters=6, power=2)), ("CosineAnnealingWarmRestarts", dict(T_0=3, T_mult=2)),
                 ("LambdaLR", dict(lr_lambda=lambda n: 1 / (n + 1))), ("MultiplicativeLR", dict(lr_lambda=lambda n: 0.9)),
                 ("OneCycleLR", dict(max_lr=1.0, total_steps=20)), ("OneCycleLR", dict(max_lr=1.0, total_steps=20, three_phase=True))]
        for name, options in cases:
            with self.subTest(name=name):
                a = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.5)
                b = ingot.optim.SGD([nn.Parameter(ingot.ones(1))], lr=0.5)
                extra = dict(cycle_momentum=False) if name == "OneCycleLR" else {}
                sa = getattr(torch.optim.lr_scheduler, name)(a, **options, **extra)
                sb = getattr(ingot.optim.lr_scheduler, name)(b, **options, **extra)
                for i in range(14):
                    self.assertAlmostEqual(a.param_groups[0]["lr"], b.param_groups[0]["lr"], places=9, msg=f"step {i}")
                    sa.step()
                    sb.step()
        a = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.5)
        b = ingot.optim.SGD([nn.Parameter(ingot.ones(1))], lr=0.5)
        made = []
        for lib, opt in ((torch.optim.lr_scheduler, a), (ingot.optim.lr_scheduler, b)):
            made.append(lib.SequentialLR(opt, [lib.LinearLR(opt, 0.1, total_iters=3), lib.CosineAnnealingLR(opt, 6)], [3]))
        for i in range(9):
            self.assertAlmostEqual(a.param_groups[0]["lr"], b.param_groups[0]["lr"], places=9, msg=f"step {i}")
            for s in made:
                s.step()
        pa, pb = torch.optim.lr_scheduler.ReduceLROnPlateau(a, patience=1), ingot.optim.lr_scheduler.ReduceLROnPlateau(b, patience=1)
        for v in (1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5):
            pa.step(v), pb.step(v)
            self.assertAlmostEqual(a.param_groups[0]["lr"], b.param_groups[0]["lr"], places=9)

    def test_groups_and_resuming(self):
        def make():
            ingot.manual_seed(1)
            net = Net()
            opt = ingot.optim.Adam([{"params": net.fc1.parameters(), "lr": 1e-2}, {"params": net.fc2.parameters()}], lr=1e-3)
            return net, opt

        def steps(net, opt, n):
            for _ in range(n):
                opt.zero_grad()
                (net(ingot.ones(2, 4)) ** 2).mean().backward()
                opt.step()

        net, opt = make()
        self.assertEqual([g["lr"] for g in opt.param_groups], [1e-2, 1e-3])
        steps(net, opt, 3)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "all.safetensors")
            ingot.save({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": 3}, path)
            saved = ingot.load(path)
        self.assertEqual(saved["epoch"], 3)
        other, other_opt = make()
        other.load_state_dict(saved["net"])
        other_opt.load_state_dict(saved["opt"])
        steps(net, opt, 3)
        steps(other, other_opt, 3)
        self.assertEqual(net.fc1.weight.tolist(), other.fc1.weight.tolist())

    def test_options_changed_between_steps(self):
        p = nn.Parameter(ingot.ones(1))
        opt = ingot.optim.SGD([p], lr=0.5)
        opt.param_groups[0]["lr"] = 0.25
        (p * 1).sum().backward()
        opt.step()
        self.assertEqual(p.item(), 0.75)
        opt.zero_grad()
        self.assertIsNone(p.grad)
        opt.param_groups[0]["weight_decay"] = 1.0
        (p * 0).sum().backward()
        opt.step(keep_gradients=True)
        self.assertEqual(p.item(), 0.75 - 0.25 * 0.75)
        self.assertIsNotNone(p.grad)

    def test_mixed_precision_and_clipping(self):
        net = Net()
        opt = ingot.optim.SGD(net.parameters(), lr=0.1)
        scaler = ingot.amp.GradScaler()
        with ingot.amp.autocast("cpu", dtype=ingot.bfloat16):
            self.assertTrue(ingot.amp.is_autocast_enabled())
            y = net.fc1(ingot.ones(2, 4))
            self.assertIs(y.dtype, ingot.bfloat16)
            loss = net(ingot.ones(2, 4)).float().sum()
        before = net.fc1.weight.tolist()
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        self.assertGreater(norm.item(), 0)
        scaler.step(opt)
        scaler.update()
        self.assertNotEqual(before, net.fc1.weight.tolist())
        self.assertEqual(scaler.get_scale(), 65536)

    def test_capture_repeats_a_step(self):
        def make():
            ingot.manual_seed(2)
            net = Net()
            return net, ingot.optim.AdamW(net.parameters(), lr=1e-2)

        def step(net, opt, x):
            opt.zero_grad()
            loss = (net(x) ** 2).mean()
            loss.backward()
            opt.step()
            return {"loss": loss}

        (a, oa), (b, ob) = make(), make()
        captured = ingot.capture(lambda x: step(b, ob, x))
        for i in range(4):
            x = ingot.ones(2, 4) * i
            self.assertEqual(step(a, oa, x)["loss"].item(), captured(x)["loss"].item())
        with self.assertRaises(ingot.StateError):
            ingot.capture(lambda x: x * x.sum().item())(ingot.ones(2))

    def test_explain(self):
        e = ingot.explain(lambda x: (x * 2 + 1).sum(), ingot.ones(100))
        self.assertEqual(e.launches, 1)
        self.assertIn("launches", ingot.plan(ingot.ones(3) + 1))
        x = ingot.ones(64, 64, dtype=ingot.float64)
        e, why = ingot.explain(x @ x), ingot.explain(x @ x, why=True)
        self.assertEqual(e.choices, [("matmul", "packed", ["few rows: it computes in float32 only"])])
        self.assertIn("matmul [packed]", e.text)
        self.assertNotIn("few rows", e.text)
        self.assertIn("not [few rows]: it computes in float32 only", why.text)

    def test_checkpoint(self):
        net = Net()
        x = ingot.randn(2, 4, requires_grad=True)
        net(x).sum().backward()
        g = x.grad.tolist()
        x.grad = None
        ingot.utils.checkpoint.checkpoint(net, x).sum().backward()
        self.assertEqual(g, x.grad.tolist())


class Data(TestCase):
    def test_loader(self):
        from ingot.utils.data import DataLoader, Dataset, TensorDataset, random_split

        class Squares(Dataset):
            def __len__(self):
                return 10

            def __getitem__(self, i):
                return {"x": float(i), "y": i * i}

        for workers in (0, 2):
            batches = list(DataLoader(Squares(), batch_size=4, num_workers=workers))
            self.assertEqual([b["y"].tolist() for b in batches], [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]])
            self.assertIs(batches[0]["x"].dtype, ingot.float64)
        x = ingot.arange(10)
        loader = DataLoader(TensorDataset(x, x * 2), batch_size=3, shuffle=True, drop_last=True)
        self.assertEqual(len(loader), 3)
        seen = [v for a, b in loader for v in a.tolist()]
        self.assertEqual(len(set(seen)), 9)
        a, b = random_split(Squares(), [0.7, 0.3])
        self.assertEqual((len(a), len(b)), (7, 3))

    def test_an_error_in_a_worker_comes_through(self):
        from ingot.utils.data import DataLoader

        class Bad:
            def __len__(self):
                return 4

            def __getitem__(self, i):
                raise KeyError(i)

        with self.assertRaises(KeyError):
            list(DataLoader(Bad(), num_workers=2))

    @needs_numpy
    def test_arrays_are_stacked(self):
        from ingot.utils.data import default_collate

        out = default_collate([(numpy.ones(3, "float32"), 1), (numpy.zeros(3, "float32"), 2)])
        self.assertEqual(out[0].tolist(), [[1, 1, 1], [0, 0, 0]])
        self.assertEqual(out[1].tolist(), [1, 2])


if __name__ == "__main__":
    unittest.main()
