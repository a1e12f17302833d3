"""Processes with other libraries, other SIMD and another number of threads record the same graphs: same_graph.py TEST"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SETTINGS = [{}, {"INGOT_DNNL": "0"}, {"INGOT_LAPACK": "0"}, {"INGOT_SIMD": "base", "INGOT_JIT": "0"}, {"INGOT_NUM_THREADS": "1"},
            {"INGOT_FUSE": "0"}]

with tempfile.TemporaryDirectory() as folder:
    dumps = []
    for n, setting in enumerate(SETTINGS):
        file = Path(folder) / f"{n}.txt"
        subprocess.run([sys.argv[1], "-tc=graphs for a comparison*"], check=True, env=os.environ | setting | {"INGOT_TEST_DUMP": str(file)}, stdout=subprocess.DEVNULL)
        dumps.append(file.read_text())
    if dumps[0].count("\n== ") < 10:
        sys.exit("the test writes too few graphs:\n" + dumps[0][:2000])
    for setting, dump in zip(SETTINGS, dumps):
        for mine, other in zip(dumps[0].splitlines(), dump.splitlines()):
            if mine != other:
                sys.exit(f"with {setting} a graph differs:\n{mine}\n{other}")
        if len(dump) != len(dumps[0]):
            sys.exit(f"with {setting} the graphs differ in length")
print("ok")
