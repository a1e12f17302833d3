"""Tensors: making, reading, indexing, operators, in-place calls, conversions, errors, copies."""
import copy
import gc
import inspect
import pathlib
import pickle
import re
import threading
import unittest

from common import TestCase, ingot, needs_numpy, numpy

SOURCES = pathlib.Path(__file__).parents[2] / "src"
# What no Python program reaches, and the beginnings of shapes, {2, 3}, which are converted as a whole.
ONLY_CPP = ("npy.cpp: ", "module.cpp: ::forward()", "module_clone.cpp: ", "shape_rules.cpp: , use .reshape({", "nn.cpp: to normalise over the last dim, use {")


class Making(TestCase):
    def test_literals_take_pytorchs_types(self):
        self.assertIs(ingot.tensor([1, 2]).dtype, ingot.int64)
        self.assertIs(ingot.tensor([1.0, 2]).dtype, ingot.float32)
        self.assertIs(ingot.tensor([True, False]).dtype, ingot.bool)
        self.assertIs(ingot.tensor(3.5, dtype=ingot.float64).dtype, ingot.float64)
        self.assertEqual(ingot.tensor([[1, 2], [3, 4]]).tolist(), [[1, 2], [3, 4]])
        self.assertEqual(ingot.tensor([]).shape, (0,))
        self.assertEqual(ingot.tensor([[], []]).shape, (2, 0))

    def test_ragged_lists_and_words_are_refused(self):
        for bad in ([[1, 2], [3]], [1, [2]], [[1], 2]):
            with self.assertRaises(ValueError):
                ingot.tensor(bad)
        with self.assertRaises(TypeError):
            ingot.tensor(["a"])

    def test_sizes_as_arguments_or_a_tuple(self):
        for t in (ingot.zeros(2, 3), ingot.zeros((2, 3)), ingot.zeros([2, 3])):
            self.assertEqual(t.shape, (2, 3))
        self.assertEqual(ingot.ones(()).item(), 1.0)
        self.assertEqual(ingot.full((2,), 7).tolist(), [7, 7])
        self.assertEqual(ingot.arange(3).tolist(), [0, 1, 2])
        self.assertEqual(ingot.arange(1, 7, 2).tolist(), [1, 3, 5])
        self.assertEqual(ingot.arange(end=2).tolist(), [0, 1])
        self.assertEqual(ingot.zeros(2, dtype=ingot.int32, requires_grad=False).dtype, ingot.int32)
        with self.assertRaises(TypeError):
            ingot.zeros("a")

    def test_seeds_repeat(self):
        ingot.manual_seed(3)
        a = ingot.rand(4).tolist()
        ingot.manual_seed(3)
        self.assertEqual(a, ingot.rand(4).tolist())
        g = ingot.Generator().manual_seed(5)
        b = ingot.randn(3, generator=g).tolist()
        self.assertEqual(b, ingot.randn(3, generator=ingot.Generator().manual_seed(5)).tolist())


class Reading(TestCase):
    def test_numbers(self):
        self.assertEqual(ingot.tensor(3).item(), 3)
        self.assertEqual(float(ingot.tensor(2.5)), 2.5)
        self.assertEqual([1, 2, 3][ingot.tensor(1)], 2)
        self.assertTrue(ingot.tensor(1.0))
        self.assertFalse(ingot.tensor(0))
        with self.assertRaises(ingot.ShapeError):
            ingot.zeros(2).item()
        with self.assertRaises(RuntimeError):
            bool(ingot.zeros(2))

    def test_text(self):
        self.assertEqual(repr(ingot.tensor([1, 2])), "tensor([1, 2])")
        self.assertIn("requires_grad=True", repr(ingot.ones(1, requires_grad=True)))
        self.assertIn("dtype=ingot.float64", repr(ingot.ones(1, dtype=ingot.float64)))
        self.assertEqual(f"{ingot.tensor(1.5):.2f}", "1.50")

    def test_iteration(self):
        self.assertEqual([r.tolist() for r in ingot.tensor([[1, 2], [3, 4]])], [[1, 2], [3, 4]])
        self.assertEqual(len(ingot.zeros(5, 2)), 5)
        self.assertIn(2, ingot.tensor([1, 2]))
        with self.assertRaises(TypeError):
            iter(ingot.tensor(1))


class Indexing(TestCase):
    @needs_numpy
    def test_views_match_numpy(self):
        a = numpy.arange(60).reshape(3, 4, 5)
        t = ingot.tensor(a)
        for index in (0, -1, slice(1, 3), (slice(None), 2), (Ellipsis, 1), (1, slice(None, None, 2), None), (slice(None, None, -1),),
                      (0, 1, 2), (None, Ellipsis, slice(1, -1))):
            self.close(t[index], a[index])

    def test_assignment_writes_through(self):
        t = ingot.zeros(3, 3)
        t[1] = 5
        t[:, 0] += 1
        t[2, 2] = ingot.tensor(7.0)
        self.assertEqual(t.tolist(), [[1, 0, 0], [6, 5, 5], [1, 0, 7]])

    def test_outside(self):
        with self.assertRaises(IndexError):
            ingot.zeros(3)[3]


class Operators(TestCase):
    @needs_numpy
    def test_match_numpy(self):
        a, b = numpy.array([7.0, -3.0, 2.5]), numpy.array([2.0, 2.0, -1.5])
        x, y = ingot.tensor(a), ingot.tensor(b)
        for op in ("+", "-", "*", "/", "//", "%", "<", "<=", "==", "!=", ">", ">="):
            for left, right, p, q in ((x, y, a, b), (x, 2.0, a, 2.0), (2.0, y, 2.0, b)):
                with self.subTest(op=op):
                    self.close(eval(f"left {op} right"), eval(f"p {op} q"))
        self.close(2.0**y, 2.0**b)
        self.close(abs(x) ** 2, abs(a) ** 2)
        self.close(-x, -a)
        i, j = numpy.array([6, 5]), numpy.array([3, 1])
        for op in ("&", "|", "^", "<<", ">>", "//", "%"):
            self.close(eval(f"p {op} q", {"p": ingot.tensor(i), "q": ingot.tensor(j)}), eval(f"i {op} j"))
        self.close(~ingot.tensor(i), ~i)

    def test_in_place_keeps_the_object(self):
        x = ingot.ones(2)
        y = x
        x += 1
        x *= 3
        self.assertIs(x, y)
        self.assertIs(x.add_(1, alpha=2), x)
        self.assertEqual(y.tolist(), [8, 8])

    def test_unknown_operands_are_left_to_python(self):
        with self.assertRaises(TypeError):
            ingot.ones(2) + "a"
        self.assertFalse(ingot.ones(2) == "a")


class EdgesAsInPyTorch(TestCase):
    """What PyTorch's op database asks of corners."""

    def test_replicated_edges_are_the_inputs(self):
        x = ingot.arange(4.0).reshape(1, 1, 4)
        self.assertEqual(ingot.nn.functional.pad(x, (5, -4), mode="replicate").tolist(), [[[0.0] * 5]])
        self.assertEqual(ingot.nn.functional.pad(x, (-4, 2), mode="replicate").tolist(), [[[3.0, 3.0]]])

    def test_norms_of_negative_order_at_zero(self):
        x = ingot.tensor([0.0, 2.0, -1.0], requires_grad=True)
        y = ingot.linalg.vector_norm(x, -0.5)
        y.backward()
        self.assertEqual((y.item(), x.grad.tolist()), (0.0, [0.0, 0.0, 0.0]))
        x = ingot.tensor([2.0, -1.0], requires_grad=True)
        ingot.linalg.vector_norm(x, -1).backward()  # 1 / (1/2 + 1)
        self.assertAlmostEqual(x.grad.tolist()[0], 1 / 9, places=6)
        self.assertAlmostEqual(x.grad.tolist()[1], -4 / 9, places=6)

    def test_indices_that_pick_nothing(self):
        self.assertEqual(tuple(ingot.ones(5).gather(0, ingot.zeros(2, 0, dtype=ingot.uint8)).shape), (2, 0))

    def test_runs_of_slices(self):
        x = ingot.tensor([[1, 2], [1, 2], [3, 4], [1, 2]])
        values, inverse, counts = ingot.unique_consecutive(x, return_inverse=True, return_counts=True, dim=0)
        self.assertEqual((values.tolist(), inverse.tolist(), counts.tolist()), ([[1, 2], [3, 4], [1, 2]], [0, 0, 1, 2], [2, 1, 1]))
        self.assertEqual(ingot.unique_consecutive(x.T, dim=1).tolist(), [[1, 3, 1], [2, 4, 2]])
        self.assertEqual(ingot.unique_consecutive(ingot.zeros(0)).tolist(), [])

    def test_different_slices(self):
        x = ingot.tensor([[3, 4], [1, 2], [3, 4], [1, 1]])
        values, inverse, counts = ingot.unique(x, return_inverse=True, return_counts=True, dim=0)
        self.assertEqual((values.tolist(), inverse.tolist(), counts.tolist()), ([[1, 1], [1, 2], [3, 4]], [2, 1, 2, 0], [1, 1, 2]))
        values, inverse, counts = ingot.unique(ingot.zeros(5, 0, 5), return_inverse=True, return_counts=True, dim=1)
        self.assertEqual((tuple(values.shape), tuple(inverse.shape), tuple(counts.shape)), ((5, 0, 5), (0,), (0,)))
        self.assertEqual(tuple(ingot.unique(ingot.zeros(4, 0), dim=0).shape), (1, 0))  # all alike, as in NumPy

    def test_a_size_of_one_meets_every_element(self):
        self.assertEqual(ingot.tensordot(ingot.ones(1, 1), ingot.arange(6.0).reshape(2, 3), dims=([0], [0])).tolist(), [[3.0, 5.0, 7.0]])

    def test_other_forms_of_arguments(self):
        self.assertEqual([tuple(v.shape) for v in ingot.atleast_2d(ingot.tensor(1), ingot.ones(3))], [(1, 1), (1, 3)])
        self.assertEqual(tuple(ingot.atleast_1d(ingot.tensor(1)).shape), (1,))
        order = ingot.tensor([3.0, 1.0, 2.0])
        self.assertEqual(ingot.searchsorted(order, ingot.tensor([2.5]), sorter=order.argsort()).tolist(), [2])
        x = ingot.ones(2, 3)
        self.assertIs(ingot.diff(x, n=0, append=x), x)
        self.assertEqual(ingot.tensor(2.0).unfold(0, 1, 1).tolist(), [2.0])


class Errors(TestCase):
    def test_name_the_users_line_and_kind(self):
        a, b = ingot.ones(2, 3), ingot.ones(2, 3)
        with self.assertRaises(ingot.ShapeError) as caught:
            a @ b; line = inspect.currentframe().f_lineno  # noqa: E702
        line = inspect.currentframe().f_lineno - 1
        self.assertIn(f"test_tensor.py:{line}", str(caught.exception))
        self.assertIsInstance(caught.exception, ValueError)
        self.assertIsInstance(caught.exception, RuntimeError)

    def test_line_inside_a_layer_is_the_callers(self):
        net = ingot.nn.Sequential(ingot.nn.Linear(3, 2))
        with self.assertRaises(ingot.Error) as caught:
            net(ingot.ones(1, 4))
        self.assertIn("test_tensor.py", str(caught.exception))

    def test_advice_is_python(self):
        x = ingot.ones(2, requires_grad=True)
        for call, words in ((lambda: x.add_(1), "with ingot.no_grad\\(\\):"), (lambda: ingot.ones(2).item(), "x.tolist\\(\\)"),
                            (lambda: ingot.tensor(1.0).narrow(0, 0, 1), "x.reshape\\(1\\)"),
                            (lambda: ingot.ones(2, 3) + ingot.ones(2), ".reshape\\(2, 1\\)"),
                            (lambda: ingot.nn.functional.layer_norm(x, (3,)), "use \\[2\\]"),
                            (lambda: ingot.autograd.grad(x.sum(), ingot.ones(1, requires_grad=True)), "allow_unused=True")):
            with self.assertRaisesRegex(ingot.Error, words):
                call()

    @unittest.skipUnless(SOURCES.is_dir(), "the sources are not there")
    def test_no_advice_is_cpp(self):
        """Every text of the library that holds C++ has a row in python/src/advice.cpp."""
        literal = r'"((?:[^"\\\n]|\\.)*)"'
        cpp = re.compile(r"::|[{}]|/\*|<T>|= ?(true|false)\b")
        found = []
        for room in ("autograd", "base", "data", "graph", "io", "nn", "ops", "optim", "runtime", "train"):
            for file in sorted((SOURCES / room).glob("*.cpp")):
                for match in re.finditer(rf"(?:{literal}\s*)+", file.read_text()):
                    text = "".join(re.findall(literal, match[0]))
                    if " " in text and cpp.search(ingot._ingot._in_python(text)):
                        found.append(f"{file.name}: {text}")
        self.assertEqual([f for f in found if not f.startswith(ONLY_CPP)], [])

    def test_bad_index_in_a_run(self):
        x = ingot.randn(3).gather(0, ingot.tensor([5]))
        with self.assertRaises(IndexError):
            x.tolist()


class Copies(TestCase):
    def test_pickle_and_copy(self):
        for t in (ingot.randn(3, 2), ingot.tensor([True]), ingot.ones(2, dtype=ingot.bfloat16), ingot.tensor(3),
                  ingot.ones(2, requires_grad=True)):
            for other in (pickle.loads(pickle.dumps(t)), copy.deepcopy(t), copy.copy(t)):
                self.assertEqual(other.tolist(), t.tolist())
                self.assertIs(other.dtype, t.dtype)
                self.assertEqual(other.requires_grad, t.requires_grad)
        self.assertIs(pickle.loads(pickle.dumps(ingot.float16)), ingot.float16)
        self.assertEqual(pickle.loads(pickle.dumps(ingot.device("cpu"))), ingot.device("cpu"))

    def test_a_deep_copy_is_its_own(self):
        t = ingot.zeros(2)
        other = copy.deepcopy(t)
        other += 1
        self.assertEqual(t.tolist(), [0, 0])

    def test_history_is_not_copied(self):
        y = ingot.ones(2, requires_grad=True) * 2
        with self.assertRaises(RuntimeError):
            copy.deepcopy(y)


class Threads(TestCase):
    def test_tensors_and_modules_made_copied_and_dropped_in_threads(self):
        errors = []

        def work(seed):
            try:
                for i in range(60):
                    m = ingot.nn.Linear(3, 4)
                    x = ingot.ones(2, 3) * (seed + i)
                    y = pickle.loads(pickle.dumps(copy.deepcopy(m)))(x)
                    y.sum().backward()
                    y.tolist()
            except Exception as e:  # shown by the test
                errors.append(e)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(errors, [])

    def test_a_mask_without_elements_takes_nothing(self):
        x = ingot.ones(3, 4, 5)
        self.assertEqual(x[ingot.zeros(3, 0, dtype=ingot.bool)].shape, (0, 5))
        self.assertEqual(x[ingot.zeros(0, dtype=ingot.bool)].shape, (0, 4, 5))
        with self.assertRaisesRegex(IndexError, "mask of shape"):
            x[ingot.zeros(2, dtype=ingot.bool)]

    def test_a_device_that_is_not_there_says_why(self):
        calls = (lambda: ingot.zeros(2).to("cuda:99"), lambda: ingot.zeros(2, device="cuda:99"), lambda: ingot.tensor([1.0], device=99),
                 lambda: ingot.nn.Linear(2, 2).to("cuda:99"), lambda: ingot.set_default_device("cuda:99"))
        for call in calls:
            with self.assertRaisesRegex(ingot.DeviceError, '"cuda:99" is not available'):
                call()
        with self.assertRaisesRegex(ingot.DeviceError, 'no device called "nonsense"'):
            ingot.zeros(2).to("nonsense")
        self.assertTrue(ingot.zeros(2).device == "cpu")
        self.assertFalse(ingot.zeros(2).device == "cuda:99")  # no error

    def test_memory_comes_back(self):
        cpu = ingot.device("cpu")

        def once():
            m = ingot.nn.Linear(64, 64)
            loss = m(ingot.randn(8, 64)).sum()
            loss.backward()
            return loss.item()

        once()
        gc.collect()
        before = cpu.memory().in_use
        for _ in range(20):
            once()
        gc.collect()
        self.assertLessEqual(cpu.memory().in_use, before + 64)


if __name__ == "__main__":
    unittest.main()
