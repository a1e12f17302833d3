"""A disk in memory: plays back what recorder.cpp recorded of a folder, and says what a loss of power may leave there.

The rules are those of POSIX, read strictly. Of a file's data only what was there at its last fsync is sure. What was written later may be lost,
there in part (whole blocks, in any order, with zeros or old bytes between them), or there in full. Of a folder's names only those of its last fsync
are sure; of later changes some first ones are there, in their order. An fsync of a file says nothing of its name."""
import pathlib
import struct


class Event:
    """A record: what was done (a letter, see Disk.apply), to which file, where, with which data."""

    def __init__(self, body):
        self.what = chr(body[0])
        self.file, self.offset = struct.unpack_from("<Qq", body, 1)
        at, texts = 17, []
        for _ in range(3):
            size, = struct.unpack_from("<I", body, at)
            texts.append(body[at + 4:at + 4 + size])
            at += 4 + size
        self.path, self.second, self.data = texts[0].decode(), texts[1].decode(), texts[2]

    def __repr__(self):
        return f"{self.what} {self.path}{' -> ' + self.second if self.second else ''} {self.offset}+{len(self.data)}"


def events_of(log):
    """The records of a log; a last one that is cut off is left out."""
    raw = pathlib.Path(log).read_bytes() if pathlib.Path(log).exists() else b""
    events, at = [], 0
    while at + 4 <= len(raw):
        size, = struct.unpack_from("<I", raw, at)
        if at + 4 + size > len(raw):
            break
        events.append(Event(raw[at + 4:at + 4 + size]))
        at += 4 + size
    return events


class File:
    def __init__(self, data=b""):
        self.data = bytearray(data)  # as programs see it
        self.sure = bytes(data)      # as it was synced
        self.later = []              # what came since: (offset, bytes), or (size, None)

    @staticmethod
    def _grow(data, size):
        if len(data) < size:
            data.extend(bytes(size - len(data)))

    def write(self, offset, data):
        self._grow(self.data, offset + len(data))
        self.data[offset:offset + len(data)] = data
        self.later.append((offset, data))

    def resize(self, size):
        del self.data[size:]
        self._grow(self.data, size)
        self.later.append((size, None))

    def sync(self):
        self.sure, self.later = bytes(self.data), []

    def after_cut(self, rng, names_stay):
        """One content it may have. Each block of the disk has taken a number of the later changes, the size too."""
        n = len(self.later)
        if n == 0:
            return self.sure
        block = rng.choice((512, 4096))
        old_bytes = rng.random() < 0.3  # where nothing was written: what the disk held before
        sizes = [len(self.sure)]
        for offset, data in self.later:
            sizes.append(max(sizes[-1], offset + len(data)) if data is not None else offset)
        most = max(sizes)
        # None of the changes, all of them, the first ones; or each block has its own number of them, or but few blocks have.
        own = {"any": 1, "some": 0.1}.get(how := rng.choice(("none", "all", "first", "any", "some")), 0)
        usual = {"none": 0, "first": rng.randint(0, n)}.get(how, n)
        taken = [rng.randint(0, n) if rng.random() < own else usual for _ in range(most // block + 1)]
        result = bytearray(self.sure) + bytes(most - len(self.sure))
        if old_bytes:
            result[len(self.sure):] = rng.randbytes(most - len(self.sure))
        for i, (offset, data) in enumerate(self.later):
            end = offset + len(data) if data is not None else most
            for b in range(offset // block, (end + block - 1) // block):
                first, last = max(offset, b * block), min(end, (b + 1) * block)
                if taken[b] > i and first < last:
                    result[first:last] = data[first - offset:last - offset] if data is not None else bytes(last - first)
        return bytes(result[:sizes[rng.randint(0, n) if how == "any" else usual]])


class Folder:
    def __init__(self):
        self.names = {}  # as programs see them
        self.sure = {}   # as they were synced
        self.later = []  # what came since: lists of (name, node), with None for a name that went

    def change(self, *changes):
        for name, node in changes:
            if node is None:
                del self.names[name]
            else:
                self.names[name] = node
        self.later.append(changes)

    def sync(self):
        self.sure, self.later = dict(self.names), []

    def after_cut(self, rng, names_stay):
        names = dict(self.sure)
        n = len(self.later)
        taken = n if names_stay else rng.choice((0, n, rng.randint(0, n)))
        for changes in self.later[:taken]:
            for name, node in changes:
                if node is None:
                    names.pop(name, None)
                else:
                    names[name] = node
        return {name: node.after_cut(rng, names_stay) for name, node in names.items()}


class Disk:
    """The folder `root` with its contents as they are now, all of it sure. lies: a disk that syncs nothing."""

    def __init__(self, root, lies=False):
        self.root, self.lies, self.files = str(root), lies, {}
        self.tree = self._read(pathlib.Path(root))

    def _read(self, path):
        folder = Folder()
        for entry in path.iterdir():
            folder.names[entry.name] = self._read(entry) if entry.is_dir() else File(entry.read_bytes())
        folder.sync()
        return folder

    def _parent(self, path):
        """The folder that holds a path, and the name there."""
        *above, name = pathlib.PurePath(path).relative_to(self.root).parts
        node = self.tree
        for part in above:
            node = node.names[part]
        return node, name

    def node(self, path):
        if path == self.root:
            return self.tree
        folder, name = self._parent(path)
        return folder.names[name]

    def apply(self, e):
        getattr(self, "_" + e.what)(e)

    def _O(self, e):  # opened to be written to
        folder, name = self._parent(e.path)
        if name not in folder.names:
            folder.change((name, File()))
        self.files[e.file] = folder.names[name]

    def _C(self, e):  # the same, and made empty
        self._O(e)
        self.files[e.file].resize(0)

    def _W(self, e):
        self.files[e.file].write(e.offset, e.data)

    def _T(self, e):
        self.files[e.file].resize(e.offset)

    def _F(self, e):
        if not self.lies:
            self.files[e.file].sync()

    def _D(self, e):
        if not self.lies:
            self.node(e.path).sync()

    def _K(self, e):
        folder, name = self._parent(e.path)
        folder.change((name, Folder()))

    def _U(self, e):  # a file or a folder
        folder, name = self._parent(e.path)
        folder.change((name, None))

    def _L(self, e):
        folder, name = self._parent(e.second)
        folder.change((name, self.node(e.path)))

    def _R(self, e):
        (folder, name), (to, new) = self._parent(e.path), self._parent(e.second)
        if folder is not to:
            raise NotImplementedError(f"{e}: between two folders")
        folder.change((name, None), (new, folder.names[name]))

    def _X(self, e):
        raise NotImplementedError(f"{e}: a mapping that is written to, or an exchange of names")

    def now(self):
        """The contents that programs see: names to bytes, or to folders of the same kind."""
        def of(node):
            return {n: of(x) for n, x in node.names.items()} if isinstance(node, Folder) else bytes(node.data)
        return of(self.tree)

    def after_cut(self, rng):
        """Contents that the folder may have after a loss of power now."""
        return self.tree.after_cut(rng, self.lies and rng.random() < 0.75)  # files that are there and damaged are worse than none


def write(contents, path):
    """Makes the folder `path` with these contents."""
    path.mkdir()
    for name, content in contents.items():
        if isinstance(content, dict):
            write(content, path / name)
        else:
            (path / name).write_bytes(content)


def read(path):
    return {p.name: read(p) if p.is_dir() else p.read_bytes() for p in path.iterdir()}


def flat(contents, prefix=""):
    """Paths to bytes, folders left out."""
    files = {}
    for name, content in contents.items():
        files |= flat(content, prefix + name + "/") if isinstance(content, dict) else {prefix + name: content}
    return files
