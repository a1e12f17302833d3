"""What PyTorch refuses is refused here: labels and indices out of range, integer division by 0, numbers that do not fit."""
import math
import unittest

from common import TestCase, ingot, needs_torch, torch

F = ingot.nn.functional
NAN, INF = math.nan, math.inf


def at(*numbers):
    return ingot.tensor(list(numbers))


# Function: a call with the index i on a dimension of size 3, on a leaf w of shape [3, 2].
STRICT = {
    "cross_entropy": lambda w, i: F.cross_entropy(w.t(), at(0, i)),
    "nll_loss": lambda w, i: F.nll_loss(w.t(), at(0, i)),
    "embedding": lambda w, i: F.embedding(at(0, i), w),
    "gather": lambda w, i: w.gather(0, at(0, i).reshape(1, 2)),
    "index_select": lambda w, i: w.index_select(0, at(0, i)),
    "index_add": lambda w, i: ingot.ones(3, 2).index_add(0, at(0, i), w[:2]),
    "index_copy": lambda w, i: w.index_copy(0, at(0, i), ingot.ones(2, 2)),
    "scatter": lambda w, i: w.scatter(0, at(0, i).reshape(1, 2), 1.0),
    "scatter_add": lambda w, i: ingot.ones(3, 2).scatter_add(0, at(0, i).reshape(1, 2), w[:1]),
    "scatter_reduce": lambda w, i: w.scatter_reduce(0, at(0, i).reshape(1, 2), ingot.ones(1, 2), "amax"),
    "one_hot": lambda w, i: F.one_hot(at(0, i), 3) * w.sum(),
}
FROM_END = {
    "take_along_dim": lambda w, i: ingot.take_along_dim(w, at(0, i).reshape(1, 2), 0),
    "index": lambda w, i: w[at(0, i)],
    "index_put": lambda w, i: ingot.index_put(w, (at(0, i),), ingot.ones(2, 2)),
    "take": lambda w, i: w.take(at(0, i)),
    "put": lambda w, i: w.put(at(0, i), ingot.ones(2)),
    "index_fill": lambda w, i: w.index_fill(0, at(0, i), 5.0),
}


class Indices(TestCase):
    def fails(self, name, call, i, size=3):
        w = ingot.ones(3, 2, requires_grad=True)
        with self.assertRaisesRegex(IndexError, rf"\[{name}\] (label|index) {i} is out of range for .*{size}"):
            call(w, i).sum().item()
        # The value of the forward is not asked for; the gradient alone must find it.
        w = ingot.ones(3, 2, requires_grad=True)
        with self.assertRaisesRegex(IndexError, rf"\[{name}\] (label|index) {i} "):
            call(w, i).sum().backward()
            w.grad.tolist()

    def test_labels_and_indices_do_not_wrap(self):
        for name, call in STRICT.items():
            with self.subTest(name):
                for i in (-1, -3, 3, 7):
                    self.fails(name, call, i)
                call(ingot.ones(3, 2, requires_grad=True), 2).sum().item()

    def test_indices_that_count_from_the_end(self):
        for name, call in FROM_END.items():
            with self.subTest(name):
                n = 6 if name in ("take", "put") else 3
                w = ingot.arange(6.0).reshape(3, 2)
                self.assertEqual(call(w, -1).tolist(), call(w, n - 1).tolist())
                for i in (-n - 1, n):
                    with self.assertRaisesRegex(IndexError, rf"{i} is out of range"):
                        call(w, i).sum().item()

    def test_one_label_only(self):
        w = ingot.ones(1, 3, requires_grad=True)
        for label in (-1, 3):
            w.grad = None
            with self.assertRaisesRegex(IndexError, r"\[cross_entropy\] label"):
                F.cross_entropy(w, at(label)).backward()
                w.grad.tolist()

    def test_ignore_index(self):
        x = ingot.arange(6.0).reshape(2, 3)
        self.close(F.cross_entropy(x, at(1, -100)), F.cross_entropy(x[:1], at(1)))
        self.close(F.cross_entropy(x, at(1, -1), ignore_index=-1), F.cross_entropy(x[:1], at(1)))
        weight = ingot.ones(3)
        for call in (lambda t: F.cross_entropy(x, t, weight=weight), lambda t: F.cross_entropy(x, t, weight, label_smoothing=0.1),
                     lambda t: F.nll_loss(x, t, weight)):
            with self.assertRaises(IndexError):
                call(at(1, -1)).item()

    def test_constants_do_not_hide_an_index(self):
        for call in (lambda: ingot.zeros(3)[at(5)], lambda: ingot.zeros(3).gather(0, at(5)), lambda: ingot.ones(3, 2).index_select(0, at(-1)),
                     lambda: (ingot.zeros(3) + 1)[at(5)], lambda: ingot.tensor([[1.0]]).expand(1, 3)[0, at(4)], lambda: F.embedding(at(3), ingot.zeros(3, 2))):
            with self.assertRaises(IndexError):
                call().tolist()
        self.assertEqual(ingot.zeros(3)[at(2)].tolist(), [0])

    def test_what_is_assigned_keeps_its_value(self):
        w = ingot.nn.Parameter(ingot.ones(3, 2))
        optimizer = ingot.optim.SGD([w], lr=1.0)
        F.embedding(at(5), w).sum().backward()
        with self.assertRaises(IndexError):
            optimizer.step()
            w.tolist()
        self.assertEqual(w.tolist(), [[1, 1]] * 3)

    def test_means_of_nothing(self):
        empty = F.cross_entropy(ingot.zeros(0, 3), ingot.zeros(0, dtype=ingot.int64))
        self.assertTrue(math.isnan(empty.item()))
        self.assertEqual(F.cross_entropy(ingot.zeros(0, 3), ingot.zeros(0, dtype=ingot.int64), reduction="sum").item(), 0)
        self.assertTrue(math.isnan(F.cross_entropy(ingot.zeros(2, 3), at(-100, -100)).item()))


class Arithmetic(TestCase):
    def test_integers_divided_by_zero(self):
        x, zero = at(1, 2), at(1, 0)
        for name, call in {"floor_divide": lambda d: x // d, "remainder": lambda d: x % d, "fmod": lambda d: ingot.fmod(x, d),
                           "div": lambda d: ingot.div(x, d, rounding_mode="trunc")}.items():
            for d in (0, zero, ingot.zeros(2, dtype=ingot.int64)):
                with self.assertRaisesRegex(RuntimeError, "ZeroDivisionError"):
                    call(d).tolist()
            self.assertEqual(len(call(at(3, -1)).tolist()), 2)
        with self.assertRaisesRegex(RuntimeError, "ZeroDivisionError"):
            x.floor_divide_(0)
        for call in (lambda: 7 // at(0), lambda: 7 % at(0)):
            with self.assertRaisesRegex(RuntimeError, "ZeroDivisionError"):
                call().item()
        self.assertEqual((ingot.tensor([1.0]) // 0).tolist(), [INF])
        self.assertEqual((at(7, -7) // at(2, 2)).tolist(), [3, -4])

    def test_probabilities(self):
        for p in (1.5, -0.1, NAN):
            x = ingot.tensor([0.5, p], requires_grad=True)
            with self.assertRaisesRegex(RuntimeError, "between 0 and 1"):
                F.binary_cross_entropy(x, ingot.ones(2)).item()
            x = ingot.tensor([0.5, p], requires_grad=True)
            with self.assertRaisesRegex(RuntimeError, "between 0 and 1"):
                F.binary_cross_entropy(x, ingot.ones(2)).backward()
                x.grad.tolist()
        x = ingot.tensor([0.5, 0.25], requires_grad=True)
        F.binary_cross_entropy(x, ingot.tensor([0.0, 1.0])).backward()
        self.close(x.grad, [1, -2], atol=1e-5)

    def test_values_of_distributions(self):
        half = ingot.tensor([0.5, 0.5])
        for bad in (1.5, -0.1, NAN):
            p = ingot.tensor([0.5, bad])
            for call in (lambda: ingot.bernoulli(p), lambda: ingot.zeros(2).bernoulli_(p)):
                with self.assertRaisesRegex(ValueError, "between 0 and 1"):
                    call().sum().item()
            for call in (lambda: ingot.bernoulli(half, bad), lambda: ingot.zeros(2).bernoulli_(bad)):
                with self.assertRaisesRegex(ValueError, "between 0 and 1"):
                    call()
        for call in (lambda: ingot.normal(0.0, -1.0, (2,)), lambda: ingot.normal(half, -1.0), lambda: ingot.normal(0.0, NAN, (2,)),
                     lambda: F.gaussian_nll_loss(half, half, -1.0)):
            with self.assertRaisesRegex(ValueError, "negative"):
                call()
        negative = ingot.tensor([1.0, -1.0])
        for call in (lambda: ingot.normal(0.0, negative), lambda: ingot.normal(half, negative)):
            with self.assertRaisesRegex(ValueError, "negative"):
                call().sum().item()

    def test_values_that_are_right(self):
        self.assertEqual(ingot.bernoulli(ingot.tensor([0.0, 1.0, 1.0])).tolist(), [0, 1, 1])
        self.assertEqual(ingot.zeros(2).bernoulli_(ingot.tensor([1.0, 0.0])).tolist(), [1, 0])
        means = ingot.tensor([[1.0], [2.0]])
        self.assertEqual(ingot.normal(means, ingot.zeros(3)).tolist(), [[1] * 3, [2] * 3])
        self.assertEqual(ingot.normal(5.0, ingot.zeros(2)).tolist(), [5, 5])
        self.assertEqual(ingot.normal(means, 0.0).tolist(), [[1], [2]])
        x = ingot.tensor([1.0, 3.0])
        self.close(F.gaussian_nll_loss(x, x * 0, 1.0), F.gaussian_nll_loss(x, x * 0, ingot.ones(2)))

    def test_weights_of_the_wrong_length(self):
        x, target = ingot.zeros(2, 3), at(0, 1)
        for call in (lambda w: F.cross_entropy(x, target, w), lambda w: F.nll_loss(x, target, w),
                     lambda w: F.cross_entropy(x, x + 1 / 3, w), lambda w: F.cross_entropy(x, target, w, label_smoothing=0.1)):
            for n in (2, 4):
                with self.assertRaisesRegex(ingot.ShapeError, "(cross_entropy|nll_loss).*weight"):
                    call(ingot.ones(n))
        for name, call in {"cross_entropy": F.cross_entropy, "nll_loss": F.nll_loss}.items():
            with self.assertRaisesRegex(IndexError, rf"\[{name}\] label 3"):
                call(x, at(0, 3), ingot.ones(3)).item()

    @needs_torch
    def test_weighted_losses_as_in_pytorch(self):
        g = torch.Generator().manual_seed(3)
        x, w = torch.randn(4, 3, 2, generator=g), torch.rand(3, generator=g)
        y = torch.tensor([[0, 1], [2, -100], [1, 1], [0, 2]])
        soft = torch.softmax(torch.randn(4, 3, 2, generator=g), 1)

        def results(t, of):
            x_, w_, y_, soft_ = of(x), of(w), of(y), of(soft)
            f = t.nn.functional
            for reduction in ("mean", "sum", "none"):
                yield f.nll_loss(x_, y_, w_, reduction=reduction)
                for smoothing in (0.0, 0.1):
                    yield f.cross_entropy(x_, y_, w_, reduction=reduction, label_smoothing=smoothing)
                    yield f.cross_entropy(x_, soft_, w_, reduction=reduction, label_smoothing=smoothing)

        for mine, theirs in zip(results(ingot, lambda v: ingot.tensor(v.numpy())), results(torch, lambda v: v)):
            self.close(mine, theirs)

    def test_instances_of_one_element(self):
        with self.assertRaisesRegex(ValueError, "one value per sample and channel"):
            F.instance_norm(ingot.ones(2, 3, 1))
        layer = ingot.nn.InstanceNorm1d(3, track_running_stats=True)
        with self.assertRaisesRegex(ValueError, "one value per sample and channel"):
            layer(ingot.ones(2, 3, 1))
        self.assertEqual(layer.eval()(ingot.ones(2, 3, 1)).shape, (2, 3, 1))

    def test_bounds_that_are_nan(self):
        x = ingot.tensor([1.0, 2.0])
        self.assertTrue(all(map(math.isnan, x.clamp(min=NAN).tolist())))
        self.assertTrue(all(map(math.isnan, x.clamp(0.0, NAN).tolist())))
        low = x.clamp(min=ingot.tensor([NAN, 3.0])).tolist()
        self.assertTrue(math.isnan(low[0]) and low[1] == 3)

    def test_a_median_shares_its_gradient(self):
        for call in (ingot.median, ingot.nanmedian):
            x = ingot.tensor([3.0, 1.0, 1.0, 0.0, 1.0], requires_grad=True)
            call(x).backward()
            self.close(x.grad, [0, 1 / 3, 1 / 3, 0, 1 / 3])

    def test_numbers_that_do_not_fit(self):
        for data, dtype in (([2**63], None), (2**64, None), ([2**40], ingot.int32), ([300], ingot.uint8), ([1e20], ingot.int64),
                            ([NAN], ingot.int32), ([True, 200], ingot.int8), ([-(2**31) - 1], ingot.int32)):
            with self.assertRaisesRegex(ValueError, "(?i)overflow"):
                ingot.tensor(data, dtype=dtype)
        self.assertEqual(ingot.tensor([2**63], dtype=ingot.float64).tolist(), [2.0**63])
        self.assertEqual(ingot.tensor([2**63, 1.5]).dtype, ingot.float32)
        self.assertEqual(ingot.tensor([-(2**31), 2**31 - 1], dtype=ingot.int32).tolist(), [-(2**31), 2**31 - 1])
        self.assertEqual(ingot.tensor([-(2**63), 2**63 - 1]).tolist(), [-(2**63), 2**63 - 1])

    def test_lists_that_change_while_they_are_read(self):
        class Tolist:
            def tolist(self):
                numbers.clear()
                return 1.0

        class Float:
            def __float__(self):
                numbers.clear()
                return 1.0

        for kind in (Tolist, Float):
            numbers = [kind()] + [float(i) for i in range(1000)]
            with self.assertRaisesRegex(ValueError, "changed"):
                ingot.tensor(numbers)

    def test_strides_of_dims_that_are_not_there(self):
        x = ingot.ones(2, 3)
        self.assertEqual((x.stride(), x.stride(0), x.stride(-1)), ((3, 1), 3, 1))
        for dim in (2, -3, 11, 10**9, 2**62):
            with self.assertRaises(IndexError):
                x.stride(dim)


class Limits(TestCase):
    def test_sizes_past_all_memory_are_refused_in_words(self):
        for call, words in ((lambda: ingot.arange(1e300), "more than 2\\^60"), (lambda: F.pad(ingot.ones(1), (2**62, 2**62)), "more than 2\\^60"),
                            (lambda: F.adaptive_avg_pool2d(ingot.ones(1, 1, 2, 2), 2**40), "too large")):
            with self.assertRaisesRegex(ingot.ShapeError, words):
                call()

    def test_counts_past_all_patience_are_refused_in_words(self):
        x, special = ingot.ones(4, 4), ingot.special
        for call, words in ((lambda: x.hsplit(10**6), "do not divide"), (lambda: x.vsplit(3), "do not divide"), (lambda: x.hsplit(0), "do not divide"),
                            (lambda: x.tensor_split(10**7), "at most 65536"), (lambda: special.multigammaln(x, 2**32), "65536"),
                            (lambda: special.polygamma(2**31, x), "at most 10000"),
                            (lambda: F.interpolate(ingot.ones(1, 1, 2), size=2**63 - 1), "at most 2\\^40")):
            with self.assertRaisesRegex(ValueError, words):
                call()
        self.assertEqual(len(x.chunk(2**63 - 1)), 4)
        self.assertEqual(len(x.tensor_split(100)), 100)

    def test_diagonals_far_away(self):
        x = ingot.ones(2, 3)
        for k in (2**63 - 1, 10):
            self.assertEqual((x.tril(k).sum().item(), x.triu(k).sum().item()), (6, 0))
        for k in (-(2**63), -10):
            self.assertEqual((x.tril(k).sum().item(), x.triu(k).sum().item()), (0, 6))

    def test_weights_that_are_no_probabilities(self):
        for bad in ([-1.0, 2.0], [NAN, 1.0], [INF, 1.0], [0.0, 0.0]):
            for replacement in (False, True):
                with self.assertRaisesRegex(RuntimeError, "multinomial"):
                    ingot.multinomial(ingot.tensor(bad), 1, replacement)

    def test_an_expert_without_tokens(self):
        expert, x = ingot.nn.Linear(4, 2), ingot.ones(5, 4)
        none = ingot.zeros(5, dtype=ingot.bool)
        ingot.zeros(5, 2).index_add(0, ingot.where(none)[0], expert(x[none])).sum().backward()
        self.assertEqual(expert.weight.grad.abs().sum().item(), 0)


class Comparison(TestCase):
    @needs_torch
    def test_a_gradient_that_is_0_in_truth(self):
        torch.manual_seed(0)
        theirs = torch.nn.Sequential(torch.nn.Linear(6, 64), torch.nn.BatchNorm1d(64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
        nn = ingot.nn
        mine = nn.Sequential(nn.Linear(6, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 2))
        x = torch.randn(256, 6)
        self.assertTrue(ingot.check(mine, reference=theirs, inputs=x))
        wrong = nn.Sequential(nn.Linear(6, 64), nn.BatchNorm1d(64), nn.GELU(), nn.Linear(64, 2))
        self.assertFalse(ingot.check(wrong, reference=theirs, inputs=x))


class Attention(TestCase):
    def test_a_query_that_sees_no_key_gives_0(self):
        for dtype in (ingot.float32, ingot.float64, ingot.bfloat16):
            for n in (4, 300):  # decomposed, and the kernels for long sequences
                q = (ingot.arange(n * 8).reshape(1, 1, n, 8) % 7).to(dtype) / 7
                mask = ingot.ones(n, n, dtype=ingot.bool)
                mask[1] = False
                mask[2, 1:] = False
                for m in (mask, ingot.where(mask, 0.0, -INF).to(dtype)):
                    x = q.clone().detach().requires_grad_(True)
                    out = F.scaled_dot_product_attention(x, x, x, attn_mask=m)
                    self.assertEqual(out[0, 0, 1].tolist(), [0] * 8)
                    self.assertEqual(out[0, 0, 2].tolist(), q[0, 0, 0].tolist())
                    out.sum().backward()
                    self.assertTrue(bool(x.grad.isfinite().all()))

    @needs_torch
    def test_as_in_pytorch(self):
        q = torch.randn(2, 2, 5, 4, generator=torch.Generator().manual_seed(1))
        mask = torch.rand(2, 1, 5, 5, generator=torch.Generator().manual_seed(2)) > 0.7
        mask[0, 0, 3] = False
        theirs = q.clone().requires_grad_()
        torch.nn.functional.scaled_dot_product_attention(theirs, theirs, theirs, attn_mask=mask).pow(2).sum().backward()
        mine = ingot.tensor(q.numpy()).requires_grad_()
        F.scaled_dot_product_attention(mine, mine, mine, attn_mask=ingot.tensor(mask.numpy())).pow(2).sum().backward()
        self.close(mine.grad, theirs.grad, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
