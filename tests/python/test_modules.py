"""Modules and leaves as they are copied, tied, moved, converted and pickled; hooks; gradient modes; Functions."""
import copy
import gc
import pickle
import unittest
import warnings
import weakref

from common import TestCase, ingot

nn = ingot.nn
F = ingot.nn.functional


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2, bias=False)
        self.second = nn.Linear(2, 2, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("count", ingot.zeros(1))
        self.shared = self.count
        self.activation = F.gelu

    def forward(self, x, scale=1.0):
        return self.second(self.activation(self.first(x))) * scale


def losses(model, optimizer, dtype=ingot.float32, n=3):
    out = []
    for _ in range(n):
        optimizer.zero_grad()
        loss = (model(ingot.ones(1, 2, dtype=dtype)) ** 2).sum()
        loss.backward()
        optimizer.step()
        out.append(loss.item())
    return out


class Copies(TestCase):
    def test_deepcopy_keeps_what_a_leaf_is(self):
        m = Twice()
        m.first.weight.grad = ingot.ones(2, 2)
        c = copy.deepcopy(m)
        self.assertIs(c.second.weight, c.first.weight)
        self.assertIsNot(c.first.weight, m.first.weight)
        self.assertIs(c.activation, F.gelu)
        self.assertEqual(c.first.weight.grad.tolist(), [[1, 1], [1, 1]])
        c.load_state_dict({k: ingot.ones(*v.shape) for k, v in m.state_dict().items()})
        self.assertTrue(c.first.weight.requires_grad)
        with ingot.no_grad():
            c.first.weight.mul_(2)
        self.assertTrue(c.first.weight.requires_grad)
        self.assertEqual(c.first.weight.tolist(), [[2, 2], [2, 2]])
        frozen = nn.Linear(1, 1).requires_grad_(False)
        self.assertEqual([p.requires_grad for p in copy.deepcopy(frozen).parameters()], [False, False])

    def test_copies_and_pickles_of_tensors(self):
        p = nn.Parameter(ingot.ones(2), requires_grad=False)
        p.note = ["a"]
        for q in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
            self.assertIs(type(q), nn.Parameter)
            self.assertFalse(q.requires_grad)
            self.assertEqual(q.note, ["a"])
            self.assertIsNot(q.note, p.note)
        same = copy.copy(p)
        p.fill_(3)
        self.assertEqual(same.tolist(), [3, 3])
        with self.assertRaisesRegex(RuntimeError, "only leaves"):
            copy.deepcopy(ingot.ones(1, requires_grad=True) * 2)

    def test_pickled_modules_that_hold_functions_of_the_core(self):
        for fn in (F.gelu, ingot.relu, ingot.tanh, ingot.Tensor.sigmoid):
            self.assertIs(copy.deepcopy(fn), fn)
            self.assertIs(pickle.loads(pickle.dumps(fn)), fn)
        m = pickle.loads(pickle.dumps(nn.TransformerEncoderLayer(4, 2, 8, activation="gelu")))
        self.assertIs(m.activation, F.gelu)
        encoder = nn.TransformerEncoder(m, 2)
        self.assertTrue(all(p.requires_grad for p in encoder.parameters()))
        for kind in (nn.ReLU(), nn.GELU(approximate="tanh"), nn.ZeroPad2d(1), nn.MaxPool2d(2), nn.BatchNorm1d(3)):
            self.assertEqual(repr(pickle.loads(pickle.dumps(kind))), repr(kind))

    def test_a_parameter_leaves_its_data_alone(self):
        w = ingot.ones(2)
        p = nn.Parameter(w)
        self.assertFalse(w.requires_grad)
        self.assertTrue(p.requires_grad and p.is_leaf)
        q = nn.Parameter(p)
        (q * 2).sum().backward()
        self.assertIsNone(p.grad)


class Conversions(TestCase):
    def test_parameters_stay_themselves(self):
        for change, dtype in ((lambda m: m.double(), ingot.float64), (lambda m: m.to(ingot.bfloat16), ingot.bfloat16),
                              (lambda m: m.half().float().to("cpu", ingot.float64), ingot.float64)):
            m = Twice()
            before, buffer = m.first.weight, m.count
            m.second.weight.requires_grad_(True)
            hooked = []
            before.register_hook(lambda g: hooked.append(g.dtype))
            before.grad = ingot.ones(2, 2)
            change(m)
            self.assertIs(m.first.weight, before)
            self.assertIs(m.second.weight, before)
            self.assertIs(m.count, buffer)
            self.assertIs(before.dtype, dtype)
            self.assertIs(before.grad.dtype, dtype)
            self.assertTrue(before.requires_grad and before.is_leaf)
            before.grad = None
            m(ingot.ones(1, 2, dtype=dtype)).sum().backward()
            self.assertEqual(hooked, [dtype])
            self.assertIs(before.grad.dtype, dtype)

    def test_an_optimiser_made_before_still_trains(self):
        m = Twice()
        optimizer = ingot.optim.SGD(m.parameters(), lr=0.05)
        m.double()
        got = losses(m, optimizer, ingot.float64)
        self.assertLess(got[2], got[0])

    def test_data_is_given_another_tensor(self):
        p = nn.Parameter(ingot.ones(2))
        flat, kept = p.detach(), p.detach().clone()
        p.data = ingot.zeros(3, dtype=ingot.float64)
        self.assertEqual((tuple(p.shape), p.dtype, p.requires_grad), ((3,), ingot.float64, True))
        self.assertEqual(flat.tolist(), [1, 1])
        self.assertEqual(kept.tolist(), [1, 1])
        (p * 2).sum().backward()
        self.assertEqual(p.grad.tolist(), [2, 2, 2])
        with self.assertRaisesRegex(TypeError, "cannot require gradients"):
            p.data = ingot.ones(3, dtype=ingot.int64)
        with self.assertRaisesRegex(RuntimeError, "result of an operation"):
            (p * 2).data = ingot.ones(3)

    def test_load_state_dict_with_assign_takes_the_type(self):
        m = nn.Linear(2, 1)
        w = m.weight
        m.load_state_dict({"weight": ingot.ones(1, 2, dtype=ingot.float64), "bias": ingot.ones(1)}, assign=True)
        self.assertIs(m.weight, w)
        self.assertIs(w.dtype, ingot.float64)
        self.assertTrue(w.requires_grad)

    def test_words_that_are_not_there(self):
        with self.assertRaisesRegex(TypeError, "devise"):
            nn.Linear(1, 1).to(devise="cpu")

    def test_zero_grad_keeps_tensors_when_asked_to(self):
        m = nn.Linear(1, 1)
        m(ingot.ones(1, 1)).sum().backward()
        m.zero_grad(set_to_none=False)
        self.assertEqual(m.weight.grad.tolist(), [[0]])
        m.zero_grad()
        self.assertIsNone(m.weight.grad)


class Hooks(TestCase):
    def test_order_keywords_and_errors(self):
        m, calls = Twice(), []
        m.register_forward_hook(lambda mod, args, out: calls.append("second"))
        m.register_forward_hook(lambda mod, args, kwargs, out: calls.append(kwargs), prepend=True, with_kwargs=True)
        m.register_forward_pre_hook(lambda mod, args, kwargs: (args, {"scale": kwargs["scale"] * 2}), with_kwargs=True)
        m.register_forward_pre_hook(lambda mod, args: calls.append("pre"), prepend=True)
        x = ingot.ones(1, 2)
        out = m(x, scale=2.0)
        self.assertEqual(calls, ["pre", {"scale": 4.0}, "second"])
        self.close(out, m.second(F.gelu(m.first(x))) * 4)
        with self.assertRaisesRegex(RuntimeError, "args, kwargs"):
            handle = m.register_forward_pre_hook(lambda mod, args, kwargs: 1, with_kwargs=True)
            try:
                m(x, scale=1.0)
            finally:
                handle.remove()

    def test_always_call(self):
        class Bad(nn.Module):
            def forward(self, x):
                raise KeyError("no")

        m, calls = Bad(), []
        m.register_forward_hook(lambda mod, args, out: calls.append(out), always_call=True)
        m.register_forward_hook(lambda mod, args, out: calls.append("never"))
        with self.assertRaises(KeyError):
            m(1)
        self.assertEqual(calls, [None])

    def test_a_tensor_hook_that_returns_something_else(self):
        x = ingot.ones(2, requires_grad=True)
        x.register_hook(lambda g: "a")
        with self.assertRaisesRegex(TypeError, "a hook must return a tensor or None, not str"):
            (x * 2).sum().backward()


class Modes(TestCase):
    def test_generators(self):
        x = ingot.ones(1, requires_grad=True)

        @ingot.no_grad()
        def values():
            got = yield (x * 2).requires_grad
            while got is not None:
                try:
                    got = yield (got, (x * 2).requires_grad)
                except KeyError:
                    got = yield "caught", (x * 2).requires_grad
            return "end"

        g = values()
        self.assertFalse(next(g))
        self.assertTrue((x * 2).requires_grad)  # between two values the caller's mode holds
        self.assertEqual(g.send(1), (1, False))
        self.assertEqual(g.throw(KeyError()), ("caught", False))
        with self.assertRaises(StopIteration) as end:
            g.send(None)
        self.assertEqual(end.exception.value, "end")
        g = values()
        next(g)
        g.close()

    def test_set_grad_enabled(self):
        x = ingot.ones(1, requires_grad=True)
        try:
            ingot.set_grad_enabled(False)
            self.assertFalse((x * 2).requires_grad)
            with ingot.set_grad_enabled(True):
                self.assertTrue((x * 2).requires_grad)
            self.assertFalse(ingot.is_grad_enabled())
        finally:
            ingot.set_grad_enabled(True)

        @ingot.set_grad_enabled(False)
        def f():
            return (x * 2).requires_grad

        self.assertTrue(ingot.is_grad_enabled())
        self.assertFalse(f())
        with self.assertRaises(TypeError):
            ingot.set_grad_enabled(None)

    def test_grad_of_a_result_is_none_with_a_warning(self):
        y = ingot.ones(1, requires_grad=True) * 2
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            self.assertIsNone(y.grad)
        self.assertEqual(len(seen), 1)
        self.assertIn("retain_grad", str(seen[0].message))


class Exp(ingot.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y, x)
        return y, y + x

    @staticmethod
    def backward(ctx, g, h):
        y, _ = ctx.saved_tensors
        return g * y + h * (y + 1)


class Functions(TestCase):
    def test_a_saved_output_is_differentiated_through_again(self):
        x = ingot.tensor([1.0], dtype=ingot.float64, requires_grad=True)
        e = ingot.ones(1, dtype=ingot.float64).exp().item()
        for pick, first, second in ((lambda y, z: y, e, e), (lambda y, z: z, e + 1, e), (lambda y, z: y * z, 2 * e * e + 2 * e, 4 * e * e + 3 * e)):
            (g,) = ingot.autograd.grad(pick(*Exp.apply(x)).sum(), x, create_graph=True)
            (h,) = ingot.autograd.grad(g.sum(), x)
            self.close(g, [first])
            self.close(h, [second])
        self.assertTrue(ingot.autograd.gradgradcheck(lambda t: Exp.apply(t)[0], (x,)))

    def test_what_was_saved_is_released(self):
        class Kept:
            pass

        class Save(ingot.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.kept = Kept()
                Save.kept = weakref.ref(ctx.kept)
                y = x * 2
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx, g):
                return g * 2 + 0 * ctx.saved_tensors[0]

        x = ingot.ones(2, requires_grad=True)
        y = Save.apply(x)
        (g,) = ingot.autograd.grad(y.sum(), x, create_graph=True)
        g.sum().item()
        del y, g
        gc.collect()
        ingot.ones(1).item()  # objects that C++ let go of are dropped at the next call
        ingot.synchronize()
        self.assertIsNone(Save.kept())

    def test_outputs_that_are_not_differentiable(self):
        class Both(ingot.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y, z = x * 2, x * 3
                ctx.mark_non_differentiable(z)
                return y, z

            @staticmethod
            def backward(ctx, g, h):
                return g * 2

        y, z = Both.apply(ingot.ones(1, requires_grad=True))
        self.assertTrue(y.requires_grad)
        self.assertFalse(z.requires_grad)

        class Dirty(Both):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x, x

        with self.assertRaisesRegex(NotImplementedError, "new tensor"):
            Dirty.apply(ingot.ones(1, requires_grad=True))


if __name__ == "__main__":
    unittest.main()
