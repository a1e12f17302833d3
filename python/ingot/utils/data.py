"""Datasets, samplers and the DataLoader, for datasets written in Python. Workers are threads: NumPy, file reading and Ingot's
own functions release the GIL."""
import collections
import queue
import random as _python_random
import threading
import time
import weakref

from .. import _ingot
from .._ingot import Tensor

__all__ = ["BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset", "RandomSampler", "Sampler",
           "SequentialSampler", "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "default_collate",
           "random_split"]


_NONE = object()


class Dataset:
    """Anything with __getitem__ and __len__."""

    def __class_getitem__(cls, item):
        return cls

    def __getitem__(self, index):
        raise NotImplementedError("a Dataset needs __getitem__")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Anything with __iter__."""

    def __iter__(self):
        raise NotImplementedError("an IterableDataset needs __iter__")


class TensorDataset(Dataset):
    """Tensors with the same first size: item i holds row i of each."""

    def __init__(self, *tensors):
        if any(t.size(0) != tensors[0].size(0) for t in tensors):
            raise _ingot.ShapeError(f"[TensorDataset] first sizes differ: {[t.size(0) for t in tensors]}")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def __len__(self):
        return self.tensors[0].size(0)


class Subset(Dataset):
    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, list(indices)

    def __getitem__(self, index):
        return self.dataset[self.indices[index]]

    def __len__(self):
        return len(self.indices)


class ConcatDataset(Dataset):
    def __init__(self, datasets):
        self.datasets = list(datasets)

    def __len__(self):
        return sum(len(d) for d in self.datasets)

    def __getitem__(self, index):
        if index < 0:
            index += len(self)
        for d in self.datasets:
            if index < len(d):
                return d[index]
            index -= len(d)
        raise IndexError("index outside the dataset")


class ChainDataset(IterableDataset):
    def __init__(self, datasets):
        self.datasets = datasets

    def __iter__(self):
        for d in self.datasets:
            yield from d


def _order(n, generator):
    """A permutation of n indices from Ingot's generator."""
    seed = int(_ingot.randint(0, 2**31 - 1, (1,), generator=generator).item())
    order = list(range(n))
    _python_random.Random(seed).shuffle(order)
    return order


def random_split(dataset, lengths, generator=None):
    """Subsets of these lengths (or fractions that sum to 1), drawn at random."""
    n = len(dataset)
    if abs(sum(lengths) - 1) < 1e-6 and all(0 <= x <= 1 for x in lengths):
        sizes = [int(n * x) for x in lengths]
        for i in range(n - sum(sizes)):
            sizes[i % len(sizes)] += 1
        lengths = sizes
    if sum(lengths) != n:
        raise _ingot.ValueError(f"[random_split] the lengths sum to {sum(lengths)}, the dataset has {n} items")
    order, out, at = _order(n, generator), [], 0
    for length in lengths:
        out.append(Subset(dataset, order[at:at + length]))
        at += length
    return out


def _check_count(who, name, n):
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise _ingot.ValueError(f"[{who}] {name} must be a positive integer, not {n!r}")


class Sampler:
    def __init__(self, data_source=None):
        self.data_source = data_source

    def __iter__(self):
        raise NotImplementedError


class SequentialSampler(Sampler):
    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        super().__init__(data_source)
        if num_samples is not None:
            _check_count("RandomSampler", "num_samples", num_samples)
        self.replacement, self._num_samples, self.generator = replacement, num_samples, generator

    @property
    def num_samples(self):
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n = len(self.data_source)
        if self.replacement:
            return iter(_ingot.randint(0, n, (self.num_samples,), generator=self.generator).tolist())
        order = []
        while len(order) < self.num_samples:
            order += _order(n, self.generator)
        return iter(order[:self.num_samples])

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    def __init__(self, indices, generator=None):
        self.indices, self.generator = list(indices), generator

    def __iter__(self):
        return iter([self.indices[i] for i in _order(len(self.indices), self.generator)])

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    def __init__(self, weights, num_samples, replacement=True, generator=None):
        _check_count("WeightedRandomSampler", "num_samples", num_samples)
        self.weights = [float(w) for w in weights]
        if not replacement and num_samples > len(self.weights):
            raise _ingot.ValueError(f"[WeightedRandomSampler] {num_samples} of {len(self.weights)} cannot be drawn without replacement")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self):
        seed = int(_ingot.randint(0, 2**31 - 1, (1,), generator=self.generator).item())
        r = _python_random.Random(seed)
        if self.replacement:
            return iter(r.choices(range(len(self.weights)), self.weights, k=self.num_samples))
        keys = sorted(range(len(self.weights)), key=lambda i: -(r.random() ** (1 / self.weights[i])) if self.weights[i] > 0 else 1)
        return iter(keys[:self.num_samples])

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    def __init__(self, sampler, batch_size, drop_last):
        _check_count("BatchSampler", "batch_size", batch_size)
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self):
        batch = []
        for i in self.sampler:
            batch.append(i)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self):
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def default_collate(batch):
    """A batch of samples as tensors: numbers and arrays are stacked, tuples and dicts collated by element."""
    first = batch[0]
    if isinstance(first, Tensor):
        return _ingot.stack(list(batch), 0)
    if type(first).__module__ == "numpy":
        import numpy

        return _ingot.from_numpy(numpy.stack(batch)) if getattr(first, "ndim", 0) else _ingot.tensor(numpy.asarray(batch))
    if isinstance(first, (bool, int)):
        return _ingot.tensor(batch)
    if isinstance(first, float):
        return _ingot.tensor(batch, dtype=_ingot.float64)
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, dict):
        return {k: default_collate([b[k] for b in batch]) for k in first}
    if hasattr(first, "_fields"):
        return type(first)(*(default_collate(list(part)) for part in zip(*batch)))
    if isinstance(first, (tuple, list)):
        return [default_collate(list(part)) for part in zip(*batch)]
    raise TypeError(f"default_collate: samples of type {type(first).__name__} need your own collate_fn")


class _Workers:
    """The threads of one pass over a DataLoader. They hold this, not the pass itself, whose end stops them."""

    def __init__(self, loader):
        self.loader, self.stopped, self.jobs = loader, False, queue.SimpleQueue()
        self.threads = []
        try:
            for i in range(loader.num_workers):
                t = threading.Thread(target=self.work, args=(i,), name=f"DataLoader-{i}", daemon=True)
                t.start()
                self.threads.append(t)
        except RuntimeError:  # no more threads can be started: the existing ones do the work
            if not self.threads:
                raise

    def work(self, number):
        failed = None
        try:
            if self.loader.worker_init_fn:
                self.loader.worker_init_fn(number)
        except BaseException as e:
            failed = e
        while True:
            job = self.jobs.get()
            if job is None or self.stopped:
                return
            indices, place = job
            try:
                if failed is not None:
                    raise failed
                place.put((self.loader._computed(indices), None))
            except BaseException as e:  # passed to the thread that takes the batch
                place.put((None, e))
            job = indices = place = None  # nothing of a batch is kept while waiting

    def stop(self):
        """Ends the threads: each finishes its current batch. One that takes longer than 5 seconds is abandoned; it cannot
        disturb the program's exit (GilRelease in python/src/bind.h)."""
        self.stopped = True
        for _ in self.threads:
            self.jobs.put(None)
        me, end = threading.current_thread(), time.monotonic() + 5
        if me not in self.threads:  # the collector may run anywhere
            for t in self.threads:
                t.join(max(0, end - time.monotonic()))


class _Batches:
    """One pass over a DataLoader with workers. Its threads end with it: at its last batch or error, by close(), when the program drops it,
    and at the program's exit."""

    def __init__(self, loader, source):
        self._source, self._timeout = source, loader.timeout or None
        self._ahead = loader.num_workers * loader.prefetch_factor
        self._waiting = collections.deque()
        self._workers = _Workers(loader)
        self._end = weakref.finalize(self, self._workers.stop)  # at exit too, before the interpreter goes

    def __iter__(self):
        return self

    def close(self):
        self._source = None
        self._waiting.clear()
        self._end()

    def __next__(self):
        try:
            while self._source is not None and len(self._waiting) < self._ahead:
                indices = next(self._source, _NONE)
                if indices is _NONE:
                    self._source = None
                    break
                self._waiting.append(queue.SimpleQueue())
                self._workers.jobs.put((indices, self._waiting[-1]))
            if not self._waiting:
                raise StopIteration
            batch, error = self._waiting.popleft().get(timeout=self._timeout)
            if error is not None:
                raise error
            return batch
        except queue.Empty:
            self.close()
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds") from None
        except BaseException:
            self.close()
            raise


class _Pass:
    """One pass over a DataLoader, counted: the loader knows its position, which a Checkpoint saves between two batches."""

    def __init__(self, loader, batches):
        self._loader, self._batches = loader, batches

    def __iter__(self):
        return self

    def __next__(self):
        loader = self._loader
        if loader is None:
            raise StopIteration
        if loader._between is not None and loader._pass() is self:
            loader._between()
        try:
            batch = next(self._batches)
        except BaseException:
            self.close()
            raise
        if loader._pass() is self:
            loader._given += 1
        return batch

    def close(self):
        """Ends the pass, and its threads."""
        loader, self._loader = self._loader, None
        if loader is None:
            return
        if loader._pass() is self:
            loader.epoch, loader._given, loader._pass = loader.epoch + 1, 0, _no_pass
        if hasattr(self._batches, "close"):
            self._batches.close()

    __del__ = close


def _no_pass():
    return None


class DataLoader:
    """Batches of a dataset, in order or shuffled, made ahead by num_workers threads."""

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None,
                 pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None, generator=None,
                 *, prefetch_factor=None, persistent_workers=False, pin_memory_device="", in_order=True):
        self._check(batch_size, shuffle, sampler, batch_sampler, num_workers, drop_last, timeout)
        self._check_workers(num_workers, prefetch_factor, persistent_workers, multiprocessing_context)
        self.dataset, self.batch_size, self.num_workers, self.drop_last = dataset, batch_size, num_workers, drop_last
        self.collate_fn = collate_fn or (default_collate if batch_size is not None or batch_sampler is not None else lambda x: x)
        self.prefetch_factor = prefetch_factor or 2
        self.worker_init_fn, self.timeout = worker_init_fn, timeout
        self.generator = generator
        self.epoch = self._given = 0  # passes done; batches returned in the current one
        self._began, self._resumed, self._pass, self._between = (0, 0), None, _no_pass, None
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise _ingot.ValueError("[DataLoader] an IterableDataset gives its own order: shuffle and samplers do not apply")
        if not self._iterable:
            if sampler is not None and shuffle:
                raise _ingot.ValueError("[DataLoader] give either shuffle or a sampler")
            self.sampler = sampler or (RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset))
            self.batch_sampler = batch_sampler or (None if batch_size is None else BatchSampler(self.sampler, batch_size, drop_last))

    @staticmethod
    def _check(batch_size, shuffle, sampler, batch_sampler, num_workers, drop_last, timeout):
        """Refuses contradictory options, as in PyTorch."""
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise _ingot.ValueError("[DataLoader] a batch_sampler defines the batches: batch_size, shuffle, sampler and drop_last "
                                    "do not apply")
        if batch_sampler is None and batch_size is None and drop_last:
            raise _ingot.ValueError("[DataLoader] drop_last does not apply without batches (batch_size=None)")
        if batch_size is not None:
            _check_count("DataLoader", "batch_size", batch_size)
        if num_workers < 0 or timeout < 0:
            raise _ingot.ValueError(f"[DataLoader] num_workers and timeout cannot be negative, but are {num_workers} and {timeout}")

    @staticmethod
    def _check_workers(num_workers, prefetch_factor, persistent_workers, context):
        if prefetch_factor is not None:
            _check_count("DataLoader", "prefetch_factor", prefetch_factor)
        if num_workers == 0 and (prefetch_factor is not None or persistent_workers or context is not None):
            raise _ingot.ValueError("[DataLoader] prefetch_factor, persistent_workers and multiprocessing_context require workers\n"
                                    "  fix: give num_workers, or leave them out")

    def __len__(self):
        if self._iterable:
            raise TypeError("a DataLoader over an IterableDataset has no length")
        return len(self.batch_sampler) if self.batch_sampler is not None else len(self.sampler)

    def _whole_batch(self, indices):
        """Rows of a TensorDataset taken together, where there is no custom collate_fn."""
        if type(self.dataset) is TensorDataset and self.collate_fn is default_collate:
            at = _ingot.tensor(indices)
            return [t.index_select(0, at.to(t.device)) for t in self.dataset.tensors]
        return None

    def _fetch(self, indices):
        if self.batch_sampler is None:
            return self.collate_fn(self.dataset[indices])
        whole = self._whole_batch(indices)
        if whole is not None:
            return whole
        if hasattr(self.dataset, "__getitems__"):
            return self.collate_fn(self.dataset.__getitems__(indices))
        return self.collate_fn([self.dataset[i] for i in indices])

    def _computed(self, indices):
        """The batch with its values computed, so that the thread that takes it need not."""
        from ..runtime import _flat

        batch, found = self._fetch(indices), []
        _flat(batch, found)
        _ingot.eval(found)
        return batch

    def _iterate(self):
        if self.batch_size is None:
            yield from (self.collate_fn(x) for x in self.dataset)
            return
        batch = []
        for x in self.dataset:
            batch.append(x)
            if len(batch) == self.batch_size:
                yield self.collate_fn(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.collate_fn(batch)

    def __iter__(self):
        before = self._pass()
        if before is not None:  # of two concurrent passes the newer one is counted
            self.epoch, self._given = self.epoch + 1, 0
        given, generator = 0, self._generator()
        now = (generator.seed(), generator.offset())
        self._began = now
        if self._resumed is not None:
            given, self._began = self._resumed
            self._resumed = None
        if self._began != now:  # the order of the pass is drawn again as it was
            generator.manual_seed(self._began[0])
            generator.set_offset(self._began[1])
        if self._iterable:
            batches = self._iterate()
        else:
            source = iter(self.batch_sampler if self.batch_sampler is not None else self.sampler)
        for _ in range(given):
            next(batches if self._iterable else source)
        if self._began != now:
            generator.manual_seed(now[0])
            generator.set_offset(now[1])
        if not self._iterable:
            batches = (self._fetch(i) for i in source) if self.num_workers == 0 else _Batches(self, source)
        counted = _Pass(self, batches)
        self._pass, self._given = weakref.ref(counted), given
        return counted

    def _generator(self):
        for drawer in (self, getattr(self, "sampler", None), getattr(self, "batch_sampler", None)):
            if isinstance(getattr(drawer, "generator", None), _ingot.Generator):
                return drawer.generator
        return _ingot._default_generator()

    def _size(self):
        return [None if self._iterable else len(self.dataset), self.batch_size]

    def state_dict(self):
        """The position: passes done, batches returned in the current one, and where its random order began."""
        return {"epoch": self.epoch, "batches": self._given, "began": list(self._began), "size": self._size()}

    def load_state_dict(self, state_dict):
        """The next pass continues after the batches that were returned. Its order is the same where the sampler draws it, from the
        loader's generator or the default one, when the pass begins; the samplers of this module do."""
        if list(state_dict["size"]) != self._size():
            raise _ingot.StateError(f"[DataLoader] the position is of {state_dict['size']} samples and batch size, the loader has {self._size()}\n"
                                    "  fix: create the loader as it was created when the position was saved")
        self.epoch, self._given, self._began = state_dict["epoch"], state_dict["batches"], tuple(state_dict["began"])
        self._resumed = (self._given, self._began) if self._given else None
        self._pass = _no_pass
