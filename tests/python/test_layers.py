"""Layers against PyTorch's, forward and backward, from the same weights; check() finds a planted mistake; indexing."""
import unittest

from common import TestCase, ingot, needs_numpy, needs_torch, numpy, to_ingot, torch

nn = ingot.nn

# name, arguments, shape of the input
CASES = [
    ("Linear", (6, 4), (3, 6)), ("Conv1d", (3, 4, 3), (2, 3, 9)), ("Conv2d", (3, 4, 3, 2, 1), (2, 3, 7, 6)),
    ("ConvTranspose2d", (3, 4, 4, 2, 1), (2, 3, 5, 5)), ("BatchNorm1d", (5,), (6, 5)), ("BatchNorm2d", (3,), (4, 3, 5, 5)),
    ("LayerNorm", (6,), (3, 6)), ("GroupNorm", (2, 4), (3, 4, 5)), ("InstanceNorm2d", (3,), (2, 3, 5, 5)), ("MaxPool2d", (2,), (2, 3, 6, 6)),
    ("AvgPool2d", (3, 2, 1), (2, 3, 7, 7)), ("AdaptiveAvgPool2d", ((2, 3),), (2, 3, 7, 7)), ("PixelShuffle", (2,), (2, 8, 3, 3)),
    ("ReLU", (), (3, 4)), ("GELU", (), (3, 4)), ("SiLU", (), (3, 4)), ("Softplus", (), (3, 4)), ("LeakyReLU", (0.2,), (3, 4)),
    ("Softmax", (1,), (3, 4)), ("Flatten", (), (2, 3, 4)), ("LSTM", (5, 6, 2), (4, 3, 5)), ("GRU", (5, 6), (4, 3, 5)),
    ("RNN", (5, 6), (4, 3, 5)), ("TransformerEncoderLayer", (8, 2, 16, 0.0), (5, 3, 8)),
]


class Layers(TestCase):
    @needs_torch
    def test_against_torch(self):
        for name, args, shape in CASES:
            with self.subTest(layer=name):
                torch.manual_seed(0)
                report = ingot.check(getattr(nn, name)(*args), reference=getattr(torch.nn, name)(*args), inputs=torch.randn(shape), rtol=2e-5)
                self.assertTrue(report, str(report))

    @needs_torch
    def test_check_names_the_layer(self):
        torch.manual_seed(0)
        reference = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
        mine = nn.Sequential(nn.Linear(4, 8), nn.Sigmoid(), nn.Linear(8, 2))
        report = ingot.check(mine, reference=reference, inputs=torch.randn(3, 4))
        self.assertFalse(report)
        self.assertEqual(report.first[0], "1")
        self.assertIn("forward of 1 (Tanh)", str(report))
        good = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        self.assertTrue(ingot.check(good, reference=reference, inputs=torch.randn(3, 4)))

    @needs_torch
    def test_check_finds_a_wrong_gradient(self):
        class Wrong(ingot.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, g):
                return g * 1.5

        class Mine(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 2)

            def forward(self, x):
                return Wrong.apply(self.fc(x))

        class Theirs(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = torch.nn.Linear(3, 2)

            def forward(self, x):
                return self.fc(x) * 1

        report = ingot.check(Mine(), reference=Theirs(), inputs=torch.randn(4, 3))
        self.assertEqual(report.first[2], "backward")

    @needs_torch
    def test_attention(self):
        torch.manual_seed(0)
        a, b = torch.nn.MultiheadAttention(8, 2, batch_first=True), nn.MultiheadAttention(8, 2, batch_first=True)
        b.load_state_dict(a.state_dict())
        x, hidden = torch.randn(3, 5, 8), torch.zeros(3, 5, dtype=torch.bool)
        hidden[:, 3:] = True
        for kwargs in (dict(), dict(need_weights=False), dict(key_padding_mask=hidden)):
            mine = {k: (to_ingot(v) if isinstance(v, torch.Tensor) else v) for k, v in kwargs.items()}
            out, weights = b(*(to_ingot(x),) * 3, **mine)
            expected, expected_weights = a(x, x, x, **kwargs)
            self.close(out, expected, atol=1e-5)
            if expected_weights is not None:
                self.close(weights, expected_weights, atol=1e-5)


class Indexing(TestCase):
    @needs_numpy
    def test_reading_matches_numpy(self):
        a = numpy.arange(120).reshape(2, 3, 4, 5)
        x = ingot.tensor(a)
        mask = a % 7 == 0
        rows, cols = numpy.array([0, 2, -1]), numpy.array([3, 0, 1])
        for index in ((slice(None), rows), (slice(None), rows, cols), (slice(None), rows, slice(None), rows), (0, rows), (rows % 2, cols % 3),
                      mask, (mask[0],) if False else mask, (Ellipsis, rows), (slice(None), rows[:, None], cols), (None, slice(None), rows), [0, 1],
                      (slice(None), [0, 2]), (slice(None), slice(1, 3), mask[0, 0])):
            with self.subTest(index=str(index)):
                mine = tuple(ingot.tensor(i) if isinstance(i, numpy.ndarray) else i for i in index) if isinstance(index, tuple) else (
                    ingot.tensor(index) if isinstance(index, numpy.ndarray) else index)
                self.close(x[mine], a[index])

    @needs_numpy
    def test_writing_matches_numpy(self):
        rows, cols = numpy.array([0, 2]), numpy.array([1, 0])
        for index, value in (((slice(None), rows), 7.0), ((rows % 2, cols), numpy.ones(4)), ((slice(None), rows, cols), numpy.arange(2.0)),
                             ((Ellipsis, cols), numpy.full((2, 3, 2), 5.0))):
            a = numpy.zeros((2, 3, 4))
            x = ingot.tensor(a)
            a[index] = value
            x[tuple(ingot.tensor(i) if isinstance(i, numpy.ndarray) else i for i in index)] = (
                ingot.tensor(value) if isinstance(value, numpy.ndarray) else value)
            self.close(x, a)
        a, x = numpy.arange(6.0), ingot.arange(6.0)
        a[a > 3] = -1
        x[x > 3] = -1
        self.close(x, a)

    def test_gradients_flow(self):
        x = ingot.arange(4.0).requires_grad_()
        x[ingot.tensor([1, 1, 3])].sum().backward()
        self.assertEqual(x.grad.tolist(), [0, 2, 0, 1])

    def test_outside(self):
        with self.assertRaises(IndexError):
            ingot.randn(3, 3)[ingot.tensor([0]), ingot.tensor([5])].tolist()
        with self.assertRaises(IndexError):
            ingot.randn(3)[ingot.tensor([True, False])]
        with self.assertRaises(IndexError):
            ingot.randn(3)[ingot.tensor([0.5])]


if __name__ == "__main__":
    unittest.main()
