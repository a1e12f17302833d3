"""1,000 tensors and modules created, copied, pickled and dropped from four threads: nanobind finds nothing left at exit, nor does
LeakSanitizer, which is put under Python where g++ has it (every allocation of Python, the extension and the core). With INGOT_SANITIZED=1
the extension and the core were built with AddressSanitizer, and everything here runs under it."""
import os
import subprocess
import sys
import unittest

WORK = """
import copy, gc, pickle, threading
import ingot

def work(count):
    for i in range(count):
        m = ingot.nn.Sequential(ingot.nn.Linear(3, 4), ingot.nn.ReLU(), ingot.nn.Linear(4, 1))
        x = ingot.randn(2, 3, requires_grad=True)
        copy.deepcopy(m)(copy.copy(x)).sum().backward()
        pickle.loads(pickle.dumps(m))
        pickle.loads(pickle.dumps(x))
        memoryview(ingot.ones(4)).tolist()

def at_once(count):
    threads = [threading.Thread(target=work, args=(count,)) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    gc.collect()
    return ingot.device("cpu").memory().in_use

before = at_once(25)
after = at_once(250)
assert after <= before, f"{after} bytes in use after 1,000 rounds, {before} after 100"
"""


# What is still held when the program ends, and circles through what C++ keeps.
HELD = """
import ingot

model = ingot.nn.Linear(3, 1)
optimizer = ingot.optim.AdamW(model.parameters())

class Trainer:
    def __init__(self):
        self.captured = ingot.capture(self.step)

    def step(self, x):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

trainer = Trainer()
trainer.captured(ingot.ones(2, 3))
captured = ingot.capture(lambda x: (x * 2).sum() + 0 * model.weight.detach().sum())
captured(ingot.ones(3)).item()
for _ in range(3):
    other = Trainer()
    other.captured(ingot.ones(2, 3))
def hooked():
    w = ingot.ones(3, requires_grad=True)
    w.register_hook(lambda g: g * 2)
    (w * 2).sum().backward()
hooked()
"""


# Exceptions from the core, and memory that Python objects and tensors share and outlive each other in.
ERRORS = """
import gc, ingot
for i in range(20):
    for wrong in (lambda: ingot.ones(2, 3) @ ingot.ones(2, 3), lambda: ingot.ones(2).reshape(5), lambda: ingot.zeros(2).to("cuda:99"),
                  lambda: ingot.ones(3)[7].item(), lambda: ingot.load("/there/is/none")):
        try:
            wrong()
        except (ingot.Error, OSError, IndexError):
            continue
        raise AssertionError(wrong)
    view = memoryview(ingot.arange(4.0))
    gc.collect()
    assert view.tolist() == [0, 1, 2, 3]
    shared = ingot.from_dlpack(ingot.arange(5.0))
    shared += 1
    gc.collect()
    assert shared.tolist() == [1, 2, 3, 4, 5]
"""


def library(name):
    try:
        path = subprocess.run(["g++", "-print-file-name=" + name], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return path if os.path.isabs(path) else None


# Python itself knows neither the sanitizer nor C++'s exceptions, which the sanitizer wants to see when it starts.
SANITIZER = library("libasan.so")
UNDER_IT = {"LD_PRELOAD": f"{SANITIZER} {library('libstdc++.so')}", "PYTHONMALLOC": "malloc",
            "ASAN_OPTIONS": "detect_leaks=1:fast_unwind_on_malloc=0:malloc_context_size=12"}
ALWAYS = os.environ.get("INGOT_SANITIZED") == "1"


def run(program=WORK, sanitized=ALWAYS):
    environment = dict(os.environ, INGOT_LEAK_CHECK="1", **(UNDER_IT if sanitized else {}))
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)


class Leaks(unittest.TestCase):
    def test_the_check_can_fail(self):
        self.assertIn("leaked", run("import ctypes, ingot; ctypes.pythonapi.Py_IncRef(ctypes.py_object(ingot.ones(1)))").stderr)

    def test_nothing_is_left_at_exit(self):
        out = run()
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertNotIn("leaked", out.stderr)

    def test_captured_functions_and_hooks_go(self):
        out = run(HELD)
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertNotIn("leaked", out.stderr)

    @unittest.skipIf(SANITIZER is None, "g++ has no libasan")
    def test_nothing_is_left_under_the_leak_sanitizer(self):
        out = run(sanitized=True)
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertNotIn("leaked", out.stderr)

    @unittest.skipUnless(ALWAYS, "the extension was not built with AddressSanitizer")
    def test_errors_and_foreign_memory_under_the_address_sanitizer(self):
        out = run(ERRORS)
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertNotIn("leaked", out.stderr)

    @unittest.skipUnless(ALWAYS, "the extension was not built with AddressSanitizer")
    def test_extension_and_core_were_built_with_it(self):
        out = run("import ingot\nfor line in open('/proc/self/maps'):\n  if 'ingot' in line and '.so' in line: print(line.split()[-1])")
        files = sorted(set(out.stdout.split()))
        self.assertGreaterEqual(len(files), 2, out.stderr)
        for file in files:
            with open(file, "rb") as f:
                self.assertIn(b"__asan_report_load", f.read(), file)


if __name__ == "__main__":
    unittest.main()
