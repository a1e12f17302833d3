"""Threads that share tensors: their values may race, memory never does."""
import threading
import time
import unittest

import ingot as t


def run_together(*bodies, seconds=0.7):
    """Each body over and over in its own thread; what they raised and how often each ran."""
    end, errors, counts = time.time() + seconds, [], [0] * len(bodies)

    def loop(i):
        try:
            while time.time() < end:
                bodies[i]()
                counts[i] += 1
        except BaseException as e:  # noqa: B036 - whatever it is, it is an error here
            errors.append(e)

    threads = [threading.Thread(target=loop, args=(i,)) for i in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return errors, counts


class Threads(unittest.TestCase):
    def check(self, *bodies):
        errors, counts = run_together(*bodies)
        self.assertEqual(errors, [])
        self.assertGreater(min(counts), 0, counts)

    def setUp(self):
        self.x = t.zeros((64,))
        self.model = t.nn.Sequential(t.nn.Linear(32, 32), t.nn.ReLU(), t.nn.Linear(32, 32))
        self.opt = t.optim.Adam(self.model.parameters(), lr=1e-4)

    def write(self):
        self.x.add_(1.0)

    def read(self):
        (self.x * 2 + 1).sum().item()

    def copy(self):
        y, z = self.x.detach(), self.x.clone()
        self.assertEqual((tuple(y.shape), tuple(z.shape)), ((64,), (64,)))

    def write_view(self):
        self.x[:32] = self.x[32:] * 0.5
        self.x[3].item()

    def train(self):
        loss = self.model(t.ones((4, 32))).pow(2).mean()
        loss.backward()
        self.opt.step(keep_gradients=True)  # another thread's backward() may come between
        self.opt.zero_grad()

    def infer(self):
        with t.no_grad():
            self.assertEqual(tuple(self.model(t.ones((4, 32))).shape), (4, 32))
            self.model(t.ones((4, 32))).sum().item()

    def test_two_writers(self):
        self.check(self.write, self.write)
        self.assertGreater(self.x[0].item(), 0)

    def test_a_writer_and_readers(self):
        self.check(self.write, self.read, self.copy)

    def test_views_of_a_written_tensor(self):
        self.check(self.write_view, self.write, self.read)

    def test_training_and_inference(self):
        self.check(self.train, self.infer)

    def test_two_training_threads(self):
        self.check(self.train, self.train)

    def test_the_gil_is_free_while_results_are_computed(self):
        a = t.rand(1200, 1200)
        a.sum().item()
        ticks, done = [0], []

        def tick():
            while not done:
                ticks[0] += 1
                time.sleep(0.0005)

        thread = threading.Thread(target=tick)
        thread.start()
        b = a
        for _ in range(12):
            b = (b @ a) * 1e-3
        before = ticks[0]
        b.sum().item()
        computing = ticks[0] - before
        done.append(True)
        thread.join()
        self.assertGreater(computing, 2)


if __name__ == "__main__":
    unittest.main()
