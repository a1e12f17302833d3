#!/usr/bin/env python3
"""ingot doctor on machines made of files: healthy ones, with and without a GPU, and broken ones, each in one way."""
import json
import pathlib
import sys

from common import check, folder, run

GIB = 1 << 30
CPU = "processor\t: 0\nmodel name\t: Test CPU\nflags\t\t: fpu sse2 avx avx2 fma f16c\n\nprocessor\t: 1\nflags\t\t: fpu sse2 avx avx2 fma f16c\n"
DRIVER = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  %s  Mon Jan 1\n"


class Machine:
    """A root folder, by default a healthy machine without a GPU."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.put("/proc/cpuinfo", CPU)
        self.put("/proc/meminfo", "MemTotal: 33554432 kB\nMemFree: 100 kB\nMemAvailable: 30000000 kB\n")
        self.put("/proc/version", "Linux version 6.1\n")
        self.put("/proc/modules", "ext4 1 0\n")
        self.put("/etc/environment", "HOME=/home/ada\n")
        self.put("/tmp/x", "")
        self.put("/home/ada/.cache/x", "")
        self.put("/usr/lib/ingot/libingot_codecs.so", "")
        self.put("/usr/lib/ingot/libingot_dnnl.so", "")
        self.put("/usr/lib/x86_64-linux-gnu/libdnnl.so.3", "")
        self.sizes(disk=100 * GIB, shm=8 * GIB)

    def put(self, path, text):
        p = self.root / path.lstrip("/")
        p.parent.mkdir(parents=True, exist_ok=True)
        p.write_text(text)
        if path.startswith("/dev/"):
            p.chmod(0o666)

    def remove(self, *paths):
        for path in paths:
            (self.root / path.lstrip("/")).unlink()

    def sizes(self, disk, shm):
        self.put("/.sizes", f"/ {200 * GIB} {disk}\n/dev/shm {shm} {shm}\n")

    def gpu(self, driver="580.159.04", model="NVIDIA H200"):
        self.put("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
        self.put("/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n")
        self.put("/proc/driver/nvidia/version", DRIVER % driver)
        self.put("/proc/driver/nvidia/gpus/0000:01:00.0/information", f"Model: \t\t {model}\n")
        self.put("/proc/modules", "nvidia_uvm 1 0\nnvidia 1 0\n")
        for node in ("nvidia0", "nvidiactl", "nvidia-uvm"):
            self.put(f"/dev/{node}", "")
        for library in ("libcuda.so.1", f"libcuda.so.{driver}"):
            self.put(f"/usr/lib/x86_64-linux-gnu/{library}", "")
        wheels = "/home/ada/.cache/ingot/venv/lib/python3.11/site-packages/nvidia"
        self.put(f"{wheels}/cuda_nvrtc/lib/libnvrtc.so.13", "")
        self.put(f"{wheels}/cublas/lib/libcublasLt.so.13", "")
        self.put(f"{wheels}/cudnn/lib/libcudnn.so.9", "")
        self.put("/usr/lib/ingot/libingot_cuda.so", "")

    def container(self):
        self.put("/.dockerenv", "")


WHEELS = "/home/ada/.cache/ingot/venv/lib/python3.11/site-packages/nvidia"
LIB = "/usr/lib/x86_64-linux-gnu"


def no_driver(m):
    m.gpu()
    m.remove("/proc/driver/nvidia/version", "/dev/nvidia0")
    m.put("/proc/modules", "ext4 1 0\n")


def nouveau(m):
    no_driver(m)
    m.put("/proc/modules", "nouveau 1 0\n")


def container_without_gpu(m):
    no_driver(m)
    m.container()


def closed_node(m):
    m.gpu()
    (m.root / "dev/nvidia0").chmod(0o600)


def wrong_libcuda(m):
    m.gpu()
    m.remove(f"{LIB}/libcuda.so.580.159.04")
    m.put(f"{LIB}/libcuda.so.550.54.15", "")


def changed(*steps):
    def make(m):
        m.gpu()
        for step in steps:
            step(m)
    return make


BROKEN = {  # code: (severity, how to break a machine)
    "G01": ("error", no_driver),
    "G02": ("error", nouveau),
    "G03": ("error", container_without_gpu),
    "G04": ("error", lambda m: m.gpu(driver="470.82.01")),
    "G05": ("error", changed(lambda m: m.remove("/dev/nvidia0"))),
    "G06": ("error", closed_node),
    "G07": ("error", changed(lambda m: m.remove("/dev/nvidia-uvm"))),
    "G08": ("error", changed(lambda m: m.remove(f"{LIB}/libcuda.so.1", f"{LIB}/libcuda.so.580.159.04"))),
    "G09": ("error", wrong_libcuda),
    "G10": ("error", lambda m: m.gpu(model="Tesla V100-SXM2-16GB")),
    "G11": ("error", changed(lambda m: m.put("/etc/environment", "HOME=/home/ada\nCUDA_VISIBLE_DEVICES=-1\n"))),
    "G12": ("error", changed(lambda m: m.remove("/usr/lib/ingot/libingot_cuda.so"))),
    "G13": ("note", lambda m: m.put("/proc/version", "Linux version 5.15 microsoft-standard-WSL2\n")),
    "G20": ("error", changed(lambda m: m.remove(f"{WHEELS}/cuda_nvrtc/lib/libnvrtc.so.13"))),
    "G21": ("error", changed(lambda m: m.remove(f"{WHEELS}/cublas/lib/libcublasLt.so.13"))),
    "G22": ("warning", changed(lambda m: m.remove(f"{WHEELS}/cudnn/lib/libcudnn.so.9"))),
    "G23": ("error", lambda m: m.gpu(driver="560.35.03")),
    "C02": ("warning", lambda m: m.put("/proc/cpuinfo", CPU.replace("avx2", ""))),
    "C03": ("warning", lambda m: m.put("/sys/fs/cgroup/cpu.max", "50000 100000\n")),
    "C04": ("note", lambda m: m.put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")),
    "M01": ("warning", lambda m: m.put("/proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 300000 kB\n")),
    "M02": ("warning", lambda m: m.put("/sys/fs/cgroup/memory.max", "536870912\n")),
    "D01": ("error", lambda m: m.sizes(disk=10 << 20, shm=8 * GIB)),
    "D02": ("error", lambda m: (m.root / "tmp").chmod(0o555)),
    "D03": ("warning", lambda m: (m.root / "home/ada/.cache").chmod(0o555)),
    "D04": ("note", lambda m: (m.container(), m.sizes(disk=100 * GIB, shm=64 << 20))),
    "L01": ("warning", lambda m: m.remove("/usr/lib/ingot/libingot_codecs.so")),
    "L02": ("warning", lambda m: m.remove("/usr/lib/ingot/libingot_dnnl.so")),
}
HEALTHY = {
    "without a GPU": lambda m: None,
    "with a GPU": lambda m: m.gpu(),
    "a container with a GPU": lambda m: (m.gpu(), m.container()),
    "a container without a GPU": lambda m: m.container(),
    "a GPU with an older driver and CUDA 12": lambda m: (m.gpu(driver="550.54.15"), m.put(f"{LIB}/libcublasLt.so.12", "")),
}


def findings(make, code):
    with folder() as root:
        m = Machine(root)
        make(m)
        out, _ = run("doctor", "--json", "--root", root, code=code)
        text, _ = run("doctor", "--root", root, code=code)
        for path in ("tmp", "home/ada/.cache"):
            (m.root / path).chmod(0o755)
        return [f for f in json.loads(out)["findings"] if f["severity"] != "ok"], text


for name, make in HEALTHY.items():
    found, _ = findings(make, 0)
    check(not found, name, "gave a false alarm:", found)
for wanted, (severity, make) in BROKEN.items():
    found, text = findings(make, 1 if severity == "error" else 0)
    check([f["code"] for f in found] == [wanted], wanted, "was expected, found", found)
    check(found[0]["severity"] == severity and found[0]["fix"], wanted, found)
    check(f"{wanted}  " in text and "fix: " in text, wanted, "is not in the text:", text)
run("doctor", "--root", "/no/such/folder", code=2)

# This machine, measured; whoever runs the tests may have loaded it, so rates below the usual are no failure here.
out, _ = run("doctor", "--json")
real = [f for f in json.loads(out)["findings"] if f["severity"] in ("error", "warning") and f["code"] not in ("R03", "M01")]
check(not real, "this machine gave an alarm:", real)
catalogue = pathlib.Path(__file__).resolve().parents[2] / "docs" / "errors.md"
if catalogue.exists():
    for code in BROKEN:
        check(f"`{code}`" in catalogue.read_text(), code, "is not in docs/errors.md")
print(f"{len(BROKEN)} broken set-ups recognised, {len(HEALTHY)} healthy ones and this machine without alarm")
