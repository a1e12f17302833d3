"""Checkpoint: the same weights after kills and signals, all or nothing, what is kept."""
import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import ingot
from common import TestCase
from ingot import nn
from ingot.utils.data import DataLoader, TensorDataset

PROGRAM = """
import ingot, sys
from ingot import nn
from ingot.utils.data import DataLoader, TensorDataset
folder, asynchronous = sys.argv[1], sys.argv[2] == "async"
ingot.manual_seed(5)
net = nn.Sequential(nn.Linear(4, 512), nn.Dropout(0.2), nn.ReLU(), nn.Linear(512, 1))
opt = ingot.optim.AdamW(net.parameters(), lr=1e-2)
schedule = ingot.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=100)
x = ingot.randn(32, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4, shuffle=True, num_workers=1)
ckpt = ingot.Checkpoint(folder, net, opt, schedule, loader, keep=2, asynchronous=asynchronous)
start = ckpt.resume()
print("go", flush=True)
for epoch in range(start, 6):
    for a, b in loader:
        opt.zero_grad()
        ((net(a) - b) ** 2).mean().backward()
        opt.step()
        schedule.step()
        if sys.argv[2] == "slow":
            import time
            time.sleep(0.02)
    ckpt.save(epoch + 1)
ckpt.wait()
print([p.detach().double().sum().item() for p in net.parameters()], opt.param_groups[0]["lr"], loader.epoch)
"""


def launch(folder, mode="plain"):
    # Without a buffer: a line that is read early must not take more with it, which communicate() would not see.
    return subprocess.Popen([sys.executable, "-c", PROGRAM, folder, mode], stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)


def start(folder, mode="plain"):
    """Launches it and waits until it has resumed."""
    child = launch(folder, mode)
    child.stdout.readline()
    return child


def finish(child):
    out, err = child.communicate(timeout=120)
    return child.returncode, out.decode(), err.decode()


class Resuming(TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.want = finish(start(folder))[:2]
        assert cls.want[0] == 0

    def test_kills_in_the_middle_of_saves(self):
        for mode in ("plain", "async"):
            with tempfile.TemporaryDirectory() as folder:
                for kill in range(3 if mode == "plain" else 2):
                    child = start(folder, mode)
                    end = time.time() + 20  # the next file that is being written
                    while time.time() < end and child.poll() is None and not any(".tmp" in n for n in os.listdir(folder)):
                        pass
                    time.sleep(0.001 * kill)
                    child.send_signal(signal.SIGKILL)
                    finish(child)
                self.assertEqual(finish(start(folder, mode))[:2], self.want)

    def test_signals_between_batches(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            with tempfile.TemporaryDirectory() as folder:
                child = start(folder, "slow")
                time.sleep(0.25)
                child.send_signal(number)
                got, _, err = finish(child)
                self.assertEqual(got, code, err)
                self.assertIn("exiting", err)
                self.assertEqual(finish(start(folder))[:2], self.want)


class Parts(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def step(self, net, opt):
        opt.zero_grad()
        (net(ingot.ones(1, 2)) ** 2).sum().backward()
        opt.step()

    def test_files_are_kept_and_read_by_others(self):
        net = nn.Linear(2, 2)
        ckpt = ingot.Checkpoint(self.folder, net, keep=2)
        self.assertEqual(ckpt.resume(), 0)
        for i in range(4):
            ckpt.save(i + 1)
        self.assertFalse(ckpt.save_every(5, 2))
        self.assertTrue(ckpt.save_every(6, 2))
        self.assertEqual([os.path.basename(f) for f in ckpt.files()], ["ckpt-000004.safetensors", "ckpt-000005.safetensors"])
        del ckpt
        with open(os.path.join(self.folder, "ckpt-000005.safetensors"), "r+b") as f:
            f.seek(-1, os.SEEK_END)
            f.write(b"\x55")
        again = ingot.Checkpoint(self.folder, net)
        self.assertEqual(again.resume(), 4)
        self.assertIn("checksum", again.messages()[0])

    def test_all_or_nothing(self):
        net = nn.Linear(2, 2)
        opt = ingot.optim.Adam(net.parameters())
        ckpt = ingot.Checkpoint(self.folder, net, opt)
        self.step(net, opt)
        ckpt.save(1)
        del ckpt
        for other in (lambda n: ingot.optim.Adam([n.weight]), lambda n: ingot.optim.lr_scheduler.StepLR(ingot.optim.SGD(n.parameters()), 1)):
            fresh = nn.Linear(2, 2)
            before = fresh.weight.tolist()
            with self.assertRaises(ingot.Error):
                ingot.Checkpoint(self.folder, fresh, other(fresh)).resume()
            self.assertEqual(fresh.weight.tolist(), before)
            gc.collect()

    def test_every_kind_of_part(self):
        class Own:
            value = 1

            def state_dict(self):
                return {"value": self.value, "t": ingot.tensor([self.value])}

            def load_state_dict(self, state):
                self.value = state["value"] + state["t"].item()

        net, own, generator, scaler = nn.Linear(1, 1), Own(), ingot.Generator().manual_seed(3), ingot.amp.GradScaler(init_scale=16.0)
        ingot.rand(3, generator=generator)
        with ingot.Checkpoint(self.folder, net, own, generator, scaler, net) as ckpt:
            ckpt.save(7)
        draw = ingot.rand(3, generator=generator).tolist()
        random = ingot.rand(3).tolist()
        other = ingot.amp.GradScaler()
        with ingot.Checkpoint(self.folder, net, own, generator, other, net) as ckpt:
            self.assertEqual(ckpt.resume(), 7)
        self.assertEqual((own.value, other.get_scale()), (2, 16))
        self.assertEqual(ingot.rand(3, generator=generator).tolist(), draw)
        self.assertEqual(ingot.rand(3).tolist(), random)
        with self.assertRaisesRegex(TypeError, "state_dict"):
            ingot.Checkpoint(self.folder, 3)
        with self.assertRaises(ingot.ValueError):
            ingot.Checkpoint(self.folder, net, keep=-1)

    def test_a_loader_goes_on_where_it_was(self):
        def make():
            x = ingot.arange(20)
            return DataLoader(TensorDataset(x), batch_size=3, shuffle=True)

        ingot.manual_seed(1)
        loader, rest = make(), []
        next(iter(loader))  # left early: counts as a pass
        it = iter(loader)
        for _ in range(3):
            next(it)
        state = loader.state_dict()
        self.assertEqual((state["epoch"], state["batches"]), (1, 3))
        rest = [b[0].tolist() for b in it]
        self.assertEqual((loader.epoch, loader.state_dict()["batches"]), (2, 0))
        other = make()
        ingot.manual_seed(9)
        other.load_state_dict(state)
        self.assertEqual([b[0].tolist() for b in other], rest)
        self.assertEqual(len(list(other)), 7)
        with self.assertRaises(ingot.StateError):
            DataLoader(TensorDataset(ingot.arange(5))).load_state_dict(state)


if __name__ == "__main__":
    unittest.main()
