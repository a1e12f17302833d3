"""DataLoaders that are left early, and threads at the program's end."""
import gc
import subprocess
import sys
import threading
import time
import unittest

from common import TestCase
from ingot.utils.data import DataLoader, Dataset

PROGRAM = """
import ingot, sys, threading, time
from ingot.utils.data import DataLoader, Dataset
def compute(): return (ingot.randn(64, 64) @ ingot.randn(64, 64)).sum()
class Endless(Dataset):
    def __len__(self): return 10000
    def __getitem__(self, i): return compute(), i
def forever():
    while True: compute().item()
mode = sys.argv[1]
if mode == "daemons":
    for _ in range(3): threading.Thread(target=forever, daemon=True).start()
    time.sleep(0.1)
else:
    it = iter(DataLoader(Endless(), batch_size=32, num_workers=2))
    for k in range(3): next(it)
    if mode == "exit": sys.exit(0)
    if mode == "raise": raise RuntimeError("of the user")
    if mode == "del": del it
"""


class Numbers(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, i):
        return i


def workers():
    return [t for t in threading.enumerate() if t.name.startswith("DataLoader-")]


class Leaving(TestCase):
    def test_the_program_ends_in_order(self):
        for mode in ("end", "exit", "raise", "del", "daemons"):
            runs = [subprocess.Popen([sys.executable, "-c", PROGRAM, mode], stderr=subprocess.PIPE) for _ in range(2)]
            for run in runs:
                text = run.communicate(timeout=60)[1].decode()
                self.assertEqual(run.returncode, mode == "raise", f"{mode}: {text}")

    def test_the_threads_end_with_the_pass(self):
        loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
        for batch in loader:
            break
        gc.collect()
        self.assertEqual(workers(), [])
        kept = iter(loader)
        next(kept)
        self.assertEqual(len(workers()), 2)
        kept.close()
        self.assertEqual((workers(), list(kept)), ([], []))
        loop = [iter(loader)]
        next(loop[0])
        loop.append(loop)  # only the collector finds it
        del loop
        gc.collect()
        self.assertEqual(workers(), [])
        self.assertEqual(len(list(loader)), 250)
        self.assertEqual(workers(), [])

    def test_what_goes_wrong_in_a_worker_is_raised(self):
        def start(number):
            raise OSError("no disk")

        with self.assertRaisesRegex(OSError, "no disk"):
            list(DataLoader(Numbers(), num_workers=2, worker_init_fn=start))

        class Slow(Numbers):
            def __getitem__(self, i):
                time.sleep(0.3)
                return i

        with self.assertRaisesRegex(RuntimeError, "timed out after 0.05"):
            list(DataLoader(Slow(), num_workers=1, timeout=0.05))


if __name__ == "__main__":
    unittest.main()
