"""The package on a GPU: skipped where there is none. tools/gpu_check.sh runs it on the GPU machine (stage python)."""
import copy
import pickle
import unittest

from common import TestCase, ingot, torch

needs_gpu = unittest.skipUnless(ingot.cuda.is_available(), "there is no GPU")
needs_both = unittest.skipUnless(ingot.cuda.is_available() and torch is not None and torch.cuda.is_available(), "PyTorch sees no GPU")


def train(device, steps=8):
    """Losses of a small network; the numbers are drawn on the CPU."""
    ingot.manual_seed(3)
    model = ingot.nn.Sequential(ingot.nn.Linear(8, 32), ingot.nn.ReLU(), ingot.nn.Linear(32, 4)).to(device)
    x, y = ingot.randn(16, 8).to(device), ingot.randint(0, 4, (16,)).to(device)
    optimizer = ingot.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ingot.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@needs_gpu
class Gpu(TestCase):
    def test_there_and_back(self):
        x = ingot.arange(6.0).reshape(2, 3)
        y = x.to("cuda")
        self.assertTrue(y.is_cuda)
        self.assertEqual((y @ y.T).cpu().tolist(), (x @ x.T).tolist())
        self.assertEqual(y[y > 2].tolist(), [3.0, 4.0, 5.0])
        y[0] = 7
        self.assertEqual(y.tolist(), [[7.0, 7.0, 7.0], [3.0, 4.0, 5.0]])

    def test_numpy_says_which_call_to_add(self):
        with self.assertRaises(TypeError) as caught:
            ingot.ones(2, device="cuda").numpy()
        self.assertIn("cpu()", str(caught.exception))

    def test_copies_and_pickles_stay_there(self):
        x = ingot.arange(3.0).to("cuda")
        for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            self.assertEqual((y.device, y.tolist()), (x.device, [0.0, 1.0, 2.0]))

    def test_training_follows_the_cpu(self):
        for a, b in zip(train("cpu"), train("cuda")):
            self.assertAlmostEqual(a, b, delta=1e-3)

    def test_a_captured_step(self):
        w = ingot.ones(4, device="cuda")
        step = ingot.capture(lambda x: (x * w).sum())
        self.assertEqual([step(ingot.full((4,), float(k), device="cuda")).item() for k in range(4)], [0.0, 4.0, 8.0, 12.0])

    def test_mixed_precision(self):
        a = ingot.randn(8, 8, device="cuda")
        with ingot.amp.autocast("cuda", dtype=ingot.bfloat16):
            self.assertIs((a @ a).dtype, ingot.bfloat16)


@needs_both
class SharedWithPyTorch(TestCase):
    def test_from_torch_without_a_copy(self):
        for dtype in ("float32", "float64", "float16", "bfloat16", "int64", "uint8"):
            a = torch.arange(6, device="cuda").reshape(2, 3).to(getattr(torch, dtype))
            t = ingot.from_dlpack(a)
            self.assertEqual(t.data_ptr(), a.data_ptr())
            self.assertEqual(t.float().tolist(), a.float().tolist())

    def test_to_torch_without_a_copy(self):
        t = (ingot.arange(6.0, device="cuda") * 2).reshape(2, 3)
        a = torch.from_dlpack(t)
        self.assertEqual(a.data_ptr(), t.data_ptr())
        self.assertEqual(a.tolist(), [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]])
        self.assertEqual(t.__dlpack_device__()[0], 2)

    def test_owners_live_as_long_as_needed(self):
        t = ingot.from_dlpack(torch.full((1 << 20,), 2.0, device="cuda"))
        torch.empty(1 << 20, device="cuda").fill_(5.0)
        self.assertEqual((t + 1).sum().item(), 3.0 * (1 << 20))
        a = torch.from_dlpack(ingot.full((1 << 20,), 2.0, device="cuda"))
        ingot.full((1 << 20,), 5.0, device="cuda").eval_()
        self.assertEqual(a.sum().item(), 2.0 * (1 << 20))


if __name__ == "__main__":
    unittest.main()
