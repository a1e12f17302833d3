"""Checkpoint: everything a training run needs to resume bit for bit, in one file that survives whatever happens to the program."""
import json
import os
import signal
import sys
import threading
import weakref

from . import _ingot
from ._ingot import Tensor
from .serialization import _reader, _Writer


class _Signals:
    """SIGTERM and Ctrl-C, recorded while a Checkpoint lives. The second one ends the program at once."""

    def __init__(self):
        self.pending, self._watchers, self._before = 0, 0, {}

    def _note(self, number, frame):
        self.pending = number
        signal.signal(number, signal.SIG_DFL)

    def watch(self):
        self._watchers += 1
        if self._watchers > 1:
            return
        for number, usual in ((signal.SIGTERM, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
            if signal.getsignal(number) is usual or signal.getsignal(number) == usual:  # signals that the program handles itself are left alone
                self._before[number] = signal.signal(number, self._note)

    def unwatch(self):
        self._watchers -= 1
        if self._watchers or threading.current_thread() is not threading.main_thread():
            return
        for number, before in self._before.items():
            if signal.getsignal(number) == self._note:
                signal.signal(number, before)
        self._before.clear()


_signals = _Signals()


def _kind(part):
    from .amp import GradScaler
    from .nn import Module
    from .optim import Optimizer
    from .optim.lr_scheduler import LRScheduler
    from .utils.data import DataLoader

    for cls, name in ((Module, "model"), (Optimizer, "optimizer"), (LRScheduler, "schedule"), (GradScaler, "scaler"), (DataLoader, "loader"),
                      (_ingot.Generator, "generator")):
        if isinstance(part, cls):
            return name
    if hasattr(part, "state_dict") and hasattr(part, "load_state_dict"):
        return "part"
    raise TypeError(f"Checkpoint: a part is a module, optimiser, schedule, scaler, DataLoader or Generator, or has state_dict() and "
                    f"load_state_dict(), unlike {type(part).__name__}")


def _state_of(part):
    if isinstance(part, _ingot.Generator):
        return {"seed": part.seed(), "offset": part.offset()}
    return part.state_dict()


def _load(part, state):
    if isinstance(part, _ingot.Generator):
        part.manual_seed(state["seed"])
        part.set_offset(state["offset"])
    else:
        part.load_state_dict(state)


def _copied(value):
    """The same values, whatever is written to their owner later."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {k: _copied(v) for k, v in value.items()}
    return [_copied(v) for v in value] if type(value) is list else value


class Checkpoint:
    """Checkpoint(folder, model, optimizer, loader, ...): files folder/ckpt-000001.safetensors, ... with the state of every part, the default
    generator and the number given to save(), and a checksum over all of it.

        ckpt = ingot.Checkpoint("runs/fashion", model, opt, loader)
        for epoch in range(ckpt.resume(), 5):
            for images, labels in loader: ...
            ckpt.save(epoch + 1)

    A file is written beside its place, synced and then renamed: a program that is killed at any moment, or a full disk, leaves the files
    from before intact. The newest `keep` are kept (0: all). With asynchronous, save() copies to the host and returns; a thread writes.

    With handle_signals, SIGTERM or Ctrl-C is recorded; between two batches of a DataLoader that is one of the parts, in save() or in
    save_every(), the program saves and exits by SystemExit with status 128 + the signal's number (143, 130). A second one ends it at once. A
    signal that the program handles itself is left alone, and so are all when this is not the main thread."""

    def __init__(self, folder, *parts, keep=3, asynchronous=False, handle_signals=True):
        if not parts:
            raise TypeError("Checkpoint: there are no parts to save: Checkpoint(folder, model, optimizer)")
        self._parts, self._loaders = {}, []
        for part in parts:
            kind = name = _kind(part)
            n = 2
            while name in self._parts:
                name, n = f"{kind}{n}", n + 1
            self._parts[name] = part
            if kind == "loader":
                self._loaders.append(part)
        self._number = self._at_epoch = 0
        self._by_steps = False
        me = weakref.ref(self)  # the files must not keep what keeps them
        self._files = _ingot.CheckpointFiles(os.fsencode(folder), keep, asynchronous, lambda: me()._collect(), lambda t, tree: me()._restore(t, tree))
        self._watching = handle_signals and threading.current_thread() is threading.main_thread()
        self._end = weakref.finalize(self, _signals.unwatch if self._watching else int)
        if self._watching:
            _signals.watch()
            for loader in self._loaders:
                loader._between = lambda: me() is not None and me()._between_batches()

    def _collect(self):
        writer = _Writer()
        tree = writer.tree({name: _state_of(part) for name, part in self._parts.items()}, ())
        return writer.tensors, json.dumps(tree, separators=(",", ":"))

    def _restore(self, named, tree):
        states = _reader(dict(named), None)(json.loads(tree))
        if list(states) != list(self._parts):
            raise _ingot.StateError(f"[resume] the checkpoint has {', '.join(states)}, this program {', '.join(self._parts)}\n"
                                    "  fix: give Checkpoint the parts it was given when the file was saved, or another folder")
        before = {name: _copied(_state_of(part)) for name, part in self._parts.items()}
        done = []
        try:
            for name, part in self._parts.items():
                done.append(name)
                _load(part, states[name])
        except BaseException:  # all or nothing
            for name in done:
                try:
                    _load(self._parts[name], before[name])
                except Exception:
                    pass  # its own load_state_dict() refuses its own state; the first error says more
            raise

    def _remember(self, number):
        self._number, self._at_epoch = number, self._loaders[0].epoch if self._loaders else 0

    def _between_batches(self):
        if _signals.pending and not self._by_steps:
            self.save(self._number + self._loaders[0].epoch - self._at_epoch)

    def resume(self):
        """Restores the newest intact file and returns the number it was saved under; 0 when there is none. A damaged file is
        reported on stderr and skipped. Raises StateError when a file belongs to other parts; then nothing changes."""
        number = self._files.resume()
        self._remember(number)
        return number

    def save(self, number):
        """Saves under a number of yours, such as the epochs done: what resume() will return. Raises IoError when the file cannot be written;
        then all files are unchanged, and training can continue."""
        self._files.save(number)
        self._remember(number)
        if self._watching and _signals.pending:
            self._files.wait()
            name = signal.Signals(_signals.pending).name
            print(f"checkpoint: {name}: saved {self.files()[-1]}, exiting", file=sys.stderr, flush=True)
            raise SystemExit(128 + _signals.pending)

    def save_every(self, step, every):
        """For loops that count steps: saves when step is a multiple of every, or when a signal requests it; returns whether it did."""
        if every < 1:
            raise _ingot.ValueError("[save_every] every is below 1")
        self._by_steps = True
        if step % every and not (self._watching and _signals.pending):
            return False
        self.save(step)
        return True

    def wait(self):
        """Waits for an asynchronous save, and raises what went wrong with it."""
        self._files.wait()

    def close(self):
        """Waits for what is being written, and releases the folder and the signals."""
        self._files.wait()
        self._end()
        self._files.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def files(self):
        """The files there are, oldest first."""
        return self._files.files()

    def messages(self):
        """What resume() had to say: damaged files, another tuning file."""
        return self._files.messages()
