"""The scripts of examples/python follow PyTorch: each is run twice, once with the import lines PyTorch has, from the same weights,
and the losses are compared step by step. INGOT_TEST_DEVICE=cuda runs them on a GPU, where both libraries round products more coarsely."""
import os
import re
import types
import unittest

from common import TestCase, ingot, needs_torch, torch

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "python")
DEVICE = os.environ.get("INGOT_TEST_DEVICE", "cpu")
IMPORT = re.compile(r"^(import|from) ingot\b.*$", re.M)


def load(name, library):
    path = os.path.join(FOLDER, name + ".py")
    with open(path) as f:
        text = f.read()
    if library == "torch":
        text = IMPORT.sub(lambda m: m[0].replace("ingot as torch", "torch").replace("ingot", "torch"), text)
    module = types.ModuleType(f"{name}_{library}")
    exec(compile(text, path, "exec"), module.__dict__)
    return module


class Examples(TestCase):
    def follow(self, name, steps, rtol):
        theirs, mine = load(name, "torch"), load(name, "ingot")
        torch.manual_seed(0)
        reference = theirs.make_model(dropout=False)
        model = mine.make_model(dropout=False)
        model.load_state_dict(reference.state_dict())
        expected = theirs.run(reference, steps=steps, device=DEVICE)
        got = mine.run(model, steps=steps, device=DEVICE)
        rtol *= 1 if DEVICE == "cpu" else 10
        self.assertLess(expected[-1], expected[0] * 1.5)
        for i, (e, g) in enumerate(zip(expected, got)):
            self.assertLess(abs(e - g), rtol * max(abs(e), 0.05) * (1 + i / 4), f"{name}: step {i}: {g} for {e}")

    @needs_torch
    def test_mnist_cnn(self):
        self.follow("mnist_cnn", 12, 2e-3)

    @needs_torch
    def test_char_lstm(self):
        self.follow("char_lstm", 12, 1e-3)

    @needs_torch
    def test_gpt(self):
        self.follow("gpt", 12, 1e-3)

    @needs_torch
    def test_resnet_cifar(self):
        self.follow("resnet_cifar", 8, 5e-3)

    @needs_torch
    def test_dcgan(self):
        self.follow("dcgan", 8, 5e-3)

    def test_generation(self):
        gpt = load("gpt", "ingot")
        out = gpt.make_model().eval().generate(ingot.zeros((1, 1), dtype=ingot.long), 5, top_k=3)
        self.assertEqual(out.shape, (1, 6))
        lstm = load("char_lstm", "ingot")
        letters = lstm.encode(lstm.TEXT)[1]
        self.assertEqual(len(lstm.write(lstm.make_model(), letters, n=5)), 11)


if __name__ == "__main__":
    unittest.main()
