#!/usr/bin/env python3
"""No program or library of the build looks for libraries in the current folder: every element of its search path is absolute or begins with $ORIGIN."""
import os
import pathlib
import shutil
import struct
import subprocess
import sys

from common import INGOT, check, folder, run


def dynamic(path):
    """(tag, text) of the search paths and needed libraries of an ELF file of 64 bits; nothing for other files."""
    with open(path, "rb") as f:
        head = f.read(64)
        if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", head, 16)[0] not in (2, 3):
            return []
        f.seek(0)
        data = f.read()
    at, = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    segments = [struct.unpack_from("<IIQQQQ", data, at + i * size) for i in range(count)]
    table = next((s for s in segments if s[0] == 2), None)
    if not table:
        return []
    entries = [struct.unpack_from("<QQ", data, table[2] + 16 * i) for i in range(table[5] // 16)]
    address = next(v for tag, v in entries if tag == 5)
    strings = next(s[2] + address - s[3] for s in segments if s[0] == 1 and s[3] <= address < s[3] + s[5])
    return [(tag, data[strings + v:data.index(b"\0", strings + v)].decode()) for tag, v in entries if tag in (15, 29)]


def unsafe(path):
    return [text for _, text in dynamic(path) for e in text.split(":") if not e.startswith(("/", "$ORIGIN"))]


build = INGOT.parent.parent
seen = 0
for root, folders, files in os.walk(build):
    for name in files:
        path = pathlib.Path(root, name)
        if path.is_symlink() or name.endswith((".o", ".gch", ".txt", ".cpp", ".py", ".json")):
            continue
        seen += bool(dynamic(path))
        check(not unsafe(path), path, "looks for libraries in the current folder:", unsafe(path))
check(seen > 1 and dynamic(INGOT), "no search path was looked at")

with folder() as name:
    home = pathlib.Path(name)
    # The check itself recognises an empty element, and libraries in the current folder are not executed.
    if compiler := shutil.which("cc") or shutil.which("g++"):
        (home / "evil.c").write_text('#include <stdio.h>\n__attribute__((constructor)) static void here(void) { fputs("executed\\n", stderr); }\nint main(void) { return 0; }\n')
        subprocess.run([compiler, "-Wl,-rpath,/usr/lib:", "-o", home / "padded", home / "evil.c"], check=True)
        check(unsafe(home / "padded"), "an empty element was not recognised")
        for library in ("libcuda.so.1", "libnvrtc.so.13", "libcublasLt.so.13", "libingot_cuda.so", "libingot_dnnl.so", "libingot_codecs.so", "liblapack.so.3",
                        "libopenblas.so.0", "libdnnl.so.3", "libstdc++.so.6", "libm.so.6"):
            if not (home / library).exists():
                subprocess.run([compiler, "-shared", "-fPIC", "-o", home / library, home / "evil.c"], check=True)
        environment = {"LD_LIBRARY_PATH": ""}
        for args in (["devices"], ["train", "spirals", "--epochs", 1, "--out", "run"]):
            out, err = run(*args, cwd=home, env=environment)
            check("executed" not in out + err, args, "executed a library of the current folder:", err)
print(f"{seen} search paths")
