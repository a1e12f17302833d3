"""tools/setup.sh --gpu on machines that are made up: a driver that nvidia-smi reports, a toolkit or none, and a pip that notes what it is
asked for. It says first how many MB come, takes the libraries that the driver can use, and fetches nothing twice."""

import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1])

# Makes the environment's python, which notes what pip is asked for and pretends to have installed it.
PYTHON = """#!/bin/bash
[ "$1 $2" = "-m venv" ] || exit 1
mkdir -p "$3/bin" "$3/lib/python3.11/site-packages"
cat >"$3/bin/python" <<'END'
#!/bin/bash
site="$(dirname "$0")/../lib/python3.11/site-packages"
words=()  # of the command line and of the lists of packages it names
for name in "$@"; do
  if [ -f "$name" ]; then while read -r package rest; do words+=("$package"); done <"$name"; else words+=("$name"); fi
done
for name in "${words[@]}"; do
  case "$name" in *==*) echo "pip $name"; name="${name/==/-}"; version="${name##*-}"; name="${name%-*}"; mkdir "$site/${name//-/_}-$version.dist-info" ;; esac
done
END
chmod +x "$3/bin/python"
"""


def command(path, text):
    path.write_text(text)
    path.chmod(0o755)


def check(condition, *what):
    if not condition:
        sys.exit("setup_gpu: " + "\n".join(str(w) for w in what))


class Machine:
    def __init__(self, home, driver=None, toolkit=None):
        self.home = pathlib.Path(home)
        bin = self.home / "bin"
        bin.mkdir()
        for name in ["bash", "cat", "cut", "dirname", "head", "id", "mkdir", "chmod", "sed", "mktemp", "grep", "rm"]:
            (bin / name).symlink_to(f"/bin/{name}" if os.path.exists(f"/bin/{name}") else f"/usr/bin/{name}")
        command(bin / "dpkg-query", "#!/bin/sh\necho installed\n")
        command(bin / "apt-get", "#!/bin/sh\nexit 1\n")
        command(bin / "python3", PYTHON)
        if driver:
            command(bin / "nvidia-smi", f"#!/bin/sh\necho {driver}\n")
        if toolkit:
            for name in ["include/cuda.h", "lib64/libnvrtc.so", "lib64/libcublasLt.so"]:
                file = self.home / "toolkit" / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(f"#define CUDA_VERSION {toolkit}\n")

    def setup(self):
        environment = {"PATH": str(self.home / "bin"), "HOME": str(self.home), "INGOT_VENV": str(self.home / "venv"),
                       "CUDA_HOME": str(self.home / "toolkit")}
        done = subprocess.run(["/bin/bash", str(SOURCE / "tools/setup.sh"), "--gpu"], env=environment, capture_output=True, text=True)
        check(done.returncode == 0, done.stdout, done.stderr)
        return done.stdout.splitlines()


def names(lines):
    return [line.split()[1].split("==")[0] for line in lines if line.startswith("pip ")]


def main():
    if os.path.exists("/usr/include/cudnn_backend.h"):
        return  # this machine's own cuDNN would be taken

    def machine(**facts):
        return Machine(tempfile.mkdtemp(dir=folder), **facts)

    with tempfile.TemporaryDirectory() as folder:
        new = machine(driver="580.65.06")
        lines = new.setup()
        check("CUDA 13" in lines[0] and "about 890 MB" in lines[0], *lines)
        check(names(lines) == ["nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cuda-crt", "nvidia-cuda-cccl", "nvidia-cublas",
                               "nvidia-cudnn-cu13"], *lines)
        check(new.setup() == [], "asked again, it fetches or says something")
        old = machine(driver="550.54.15").setup()
        check("CUDA 12" in old[0] and "about 1375 MB" in old[0], *old)
        check(len(names(old)) == 5 and all(n.endswith("-cu12") for n in names(old)), *old)
        none = machine().setup()
        check("nvidia-smi is missing" in none[0] and "CUDA 13" in none[1], *none)
        # A toolkit that the driver can use lacks cuDNN alone; one that it cannot use is left where it is.
        check(names(machine(driver="580.65.06", toolkit=13000).setup()) == ["nvidia-cudnn-cu13"])
        check(names(machine(driver="580.65.06", toolkit=12040).setup()) == ["nvidia-cudnn-cu12"])
        check(len(names(machine(driver="550.54.15", toolkit=13000).setup())) == 5)


main()
