"""What shares elements with its base and what is a copy, as in PyTorch; what a write without gradients does to a history."""
import unittest

from common import TestCase, ingot, needs_torch, torch

# Name: what is taken of x [2, 3, 4], by either library, and whether it shares x's elements.
TAKEN = {
    "reshape": (lambda t, x: x.reshape(6, 4), True),
    "reshape permuted": (lambda t, x: x.permute(2, 0, 1).reshape(24), False),
    "reshape split": (lambda t, x: x.transpose(0, 1).reshape(3, 2, 2, 2), True),
    "reshape slice": (lambda t, x: x[:, 1:].reshape(16), False),
    "reshape slice inside": (lambda t, x: x[:, 1:].reshape(2, 8), True),
    "reshape expanded": (lambda t, x: x[:1].expand(2, 3, 4).reshape(24), False),
    "reshape column": (lambda t, x: x[:, :, 0].reshape(6), True),
    "reshape steps": (lambda t, x: x[:, ::2, ::2].reshape(4, 2), False),
    "reshape steps merged": (lambda t, x: x[:, :, ::2].reshape(12), True),
    "reshape_as": (lambda t, x: x.permute(2, 0, 1).reshape_as(t.zeros(24)), False),
    "chain": (lambda t, x: x.reshape(2, 12).reshape(2, 3, 4).reshape(24)[3:7], True),
    "view_as": (lambda t, x: x.view_as(t.zeros(4, 6)), True),
    "flatten": (lambda t, x: x.flatten(), True),
    "flatten transposed": (lambda t, x: x.transpose(0, 2).flatten(), False),
    "flatten row": (lambda t, x: x[1].flatten(), True),
    "flatten column": (lambda t, x: x[:, :, 0].flatten(), True),
    "ravel": (lambda t, x: x.ravel(), True),
    "ravel transposed": (lambda t, x: x.transpose(0, 1).ravel(), False),
    "ravel expanded": (lambda t, x: x[0, 0, :1].expand(3).ravel(), False),
    "contiguous": (lambda t, x: x.contiguous(), True),
    "contiguous transposed": (lambda t, x: x.transpose(1, 2).contiguous(), False),
    "contiguous slice": (lambda t, x: x[:, 1:].contiguous(), False),
    "contiguous front": (lambda t, x: x[:1].contiguous(), True),
    "contiguous expanded": (lambda t, x: x[:1].expand(3, 3, 4).contiguous(), False),
    "contiguous twice transposed": (lambda t, x: x.transpose(1, 2).transpose(1, 2).contiguous(), True),
    "contiguous windows": (lambda t, x: x.unfold(2, 2, 1).contiguous(), False),
    "flip": (lambda t, x: x.flip(0), False),
    "flip nothing": (lambda t, x: t.flip(x, []), False),
    "fliplr": (lambda t, x: t.fliplr(x), False),
    "flipud": (lambda t, x: t.flipud(x), False),
    "rot90": (lambda t, x: x.rot90(), False),
    "rot90 twice": (lambda t, x: t.rot90(x, 2), False),
    "rot90 back": (lambda t, x: t.rot90(x, -1, (1, 2)), False),
    "rot90 around": (lambda t, x: t.rot90(x, 4), False),
    "roll": (lambda t, x: x.roll(1), False),
    "roll by 0": (lambda t, x: x.roll(0, 0), False),
    "unfold": (lambda t, x: x.unfold(2, 2, 2), True),
    "unfold middle": (lambda t, x: x.unfold(1, 1, 2), True),
    "unfold gaps": (lambda t, x: x.reshape(24).unfold(0, 3, 7), True),
    "unfold transposed": (lambda t, x: x.transpose(0, 2).unfold(0, 2, 2), True),
    "unfold reshape": (lambda t, x: x.unfold(2, 2, 2).reshape(24), True),
    "unflatten": (lambda t, x: x.unflatten(2, (2, 2)), True),
    "T": (lambda t, x: x[0].T, True),
    "movedim": (lambda t, x: x.movedim(0, 1), True),
    "squeeze": (lambda t, x: x[:1].squeeze(0), True),
    "diagonal": (lambda t, x: x.diagonal(0, 1, 2), True),
    "diagonal slice": (lambda t, x: x[:, :, 1:].diagonal(0, 1, 2), True),
    "split": (lambda t, x: x.split(2, 1)[1], True),
    "hsplit": (lambda t, x: x.hsplit(3)[1], True),
    "unbind": (lambda t, x: x.unbind(1)[2], True),
    "detach": (lambda t, x: x.detach(), True),
    "detach transposed": (lambda t, x: x.detach().mT, True),
    "interpolate": (lambda t, x: t.nn.functional.interpolate(x, size=4), False),
    "nested": (lambda t, x: x[1].t()[1:3][:, 1], True),
    "clone": (lambda t, x: x.clone(), False),
}


def shares(library, take):
    """Does the result follow its base, and does the base follow it?"""
    found = []
    for first in ("base", "result"):
        x = library.arange(24.0).reshape(2, 3, 4).clone()
        y = take(library, x)
        changed, other = (x, y) if first == "base" else (y, x)
        before = other.clone()
        changed.mul_(0.5).add_(7.0)
        found.append(not bool((other == before).all()))
    return found


class Sharing(TestCase):
    def test_as_stated(self):
        for name, (take, expected) in TAKEN.items():
            with self.subTest(name):
                self.assertEqual(shares(ingot, take), [expected] * 2)

    @needs_torch
    def test_as_in_pytorch(self):
        for name, (take, expected) in TAKEN.items():
            with self.subTest(name):
                self.assertEqual(shares(torch, take), [expected] * 2)

    def test_a_changed_copy_leaves_the_image(self):
        image = ingot.arange(12.0).reshape(1, 3, 4)
        image.flip(-1).mul_(0)
        self.assertEqual(image.sum().item(), 66)

    def test_is_contiguous(self):
        x = ingot.ones(2, 3)
        self.assertTrue(x.is_contiguous() and x[1:].is_contiguous() and x.t().contiguous().is_contiguous())
        self.assertFalse(x.t().is_contiguous() or x[:, 1:].is_contiguous() or x[0, :1].expand(3).is_contiguous())

    def test_windows(self):
        x = ingot.arange(7.0)
        u = x.unfold(0, 3, 3)
        u[0] = 9
        x[3] = -1
        self.assertEqual(x.tolist(), [9, 9, 9, -1, 4, 5, 6])
        self.assertEqual(u.tolist(), [[9, 9, 9], [-1, 4, 5]])
        with self.assertRaisesRegex(ingot.StateError, "one element"):
            x.unfold(0, 3, 1).zero_()
        for size, step in ((8, 1), (-1, 1), (2, 0)):
            with self.assertRaisesRegex(ValueError, "unfold"):
                x.unfold(0, size, step)
        self.assertEqual(x.unfold(0, 0, 2).shape, (4, 0))
        y = ingot.arange(5.0, requires_grad=True)
        y.unfold(0, 3, 1).sum().backward()
        self.assertEqual(y.grad.tolist(), [1, 2, 3, 2, 1])


class Histories(TestCase):
    WRITES = {
        "no_grad": lambda t, y: without_gradients(t, lambda: y.mul_(2)),
        "no_grad, one element": lambda t, y: without_gradients(t, lambda: y.__setitem__(0, 5.0)),
        "no_grad, many": lambda t, y: without_gradients(t, lambda: [y.add_(1) for _ in range(50)]),
        "no_grad, through a view": lambda t, y: without_gradients(t, lambda: y[1:].zero_()),
        "detach": lambda t, y: y.detach().clamp_(max=1),
        "data": lambda t, y: y.data.__setitem__(0, 0.0),
        "detach, then with gradients": lambda t, y: (y.detach().add_(1), y.mul_(2)),
    }
    GRADIENTS = {"no_grad": ([3, 3], [6, 6]), "no_grad, one element": ([3, 3], [5, 3]), "no_grad, many": ([3, 3], [53, 53]),
                 "no_grad, through a view": ([3, 3], [3, 0]), "detach": ([3, 3], [1, 1]), "data": ([3, 3], [0, 3]),
                 "detach, then with gradients": ([6, 6], [8, 8])}

    def gradients(self, library, write):
        x, w = library.ones(2, requires_grad=True), library.ones(2, requires_grad=True)
        y = x * 3
        write(library, y)
        self.assertTrue(y.requires_grad)
        (y * w).sum().backward()
        return x.grad.tolist(), w.grad.tolist()

    def test_stay_when_a_value_is_written_without_gradients(self):
        for name, write in self.WRITES.items():
            with self.subTest(name):
                self.assertEqual(self.gradients(ingot, write), self.GRADIENTS[name])

    @needs_torch
    def test_as_in_pytorch(self):
        for name, write in self.WRITES.items():
            with self.subTest(name):
                self.assertEqual(self.gradients(torch, write), self.GRADIENTS[name])

    def test_are_not_given_by_a_write_without_gradients(self):
        w = ingot.ones(2, requires_grad=True)
        x, y = ingot.zeros(2), ingot.zeros(2)
        with ingot.no_grad():
            x.copy_(w * 2)
        y.data.copy_(w * 2)
        self.assertFalse(x.requires_grad or y.requires_grad)
        self.assertEqual(x.tolist() + y.tolist(), [2] * 4)


def without_gradients(library, f):
    with library.no_grad():
        f()


if __name__ == "__main__":
    unittest.main()
