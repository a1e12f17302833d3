#include "doctor.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "cli.h"
#include "files.h"
#include "ingot/devices.h"

namespace ingot::cli {

using Findings = std::vector<Finding>;
constexpr double kMiB = 1 << 20, kGiB = 1 << 30;

static void add(Findings& f, Severity s, const char* code, std::string text, std::string fix = {}) {
  f.push_back({s, code, std::move(text), std::move(fix)});
}
static void ok(Findings& f, std::string text) { add(f, Severity::Ok, "", std::move(text)); }

static std::string line_after(const std::string& text, const std::string& key) {
  const size_t at = text.find(key);
  if (at == std::string::npos) return {};
  std::string line = text.substr(at + key.size(), text.find('\n', at) - at - key.size());
  line.erase(0, line.find_first_not_of(" \t:"));
  return line;
}

// ---- Container, processor, memory, disk

static bool in_container(const System& s) {
  if (s.exists("/.dockerenv") || s.exists("/run/.containerenv")) return true;
  const std::string groups = s.read("/proc/1/cgroup");
  return groups.find("docker") != std::string::npos || groups.find("kubepods") != std::string::npos;
}

static int processors(const System& s) {
  std::istringstream lines(s.read("/proc/cpuinfo"));
  int n = 0;
  for (std::string line; std::getline(lines, line);) n += line.starts_with("processor");
  return n;
}

static void check_cpu(const System& s, Findings& f) {
  const std::string info = s.read("/proc/cpuinfo");
  if (info.empty())
    return add(f, Severity::Warning, "C01", "/proc/cpuinfo cannot be read",
               "mount -t proc proc /proc");
  const int n = processors(s);
  const std::string name = line_after(info, "model name");
  const std::string flags = " " + line_after(info, "\nflags") + " ";
  auto has = [&](const char* flag) {
    return flags.find(std::string(" ") + flag + " ") != std::string::npos;
  };
  ok(f, format("processor: %s, %d hardware threads%s", name.empty() ? "unnamed" : name.c_str(), n,
               has("avx512f") ? ", AVX-512"
               : has("avx2")  ? ", AVX2"
                              : ""));
  if (info.find("\nflags") != std::string::npos && !(has("avx2") && has("fma")))
    add(f, Severity::Warning, "C02",
        "the processor has no AVX2 and FMA: Ingot runs several times slower than it could",
        "in a virtual machine, pass the host's processor through (-cpu host); otherwise use "
        "another machine");
  const std::string limit = s.read("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (std::istringstream(limit) >> quota >> period && period > 0 && quota / period < 0.75 * n)
    add(f, Severity::Warning, "C03",
        format("this container may use %.1f of %d hardware threads: that many threads would wait "
               "for each other",
               quota / period, n),
        format("INGOT_NUM_THREADS=%d, or start the container with --cpus=%d",
               std::max(1, static_cast<int>(quota / period)), n));
  const std::string governor = s.read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (governor.starts_with("powersave") &&
      s.read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver").find("pstate") ==
          std::string::npos)
    add(f, Severity::Note, "C04", "the processor runs at its lowest clock (governor powersave)",
        "sudo cpupower frequency-set -g performance");
}

static void check_memory(const System& s, Findings& f) {
  const HostMemory memory = host_memory(s.root());
  const double total = static_cast<double>(memory.total),
               free = static_cast<double>(memory.available);
  if (total <= 0) return;
  ok(f, format("memory: %s, %s available", bytes_text(total).c_str(), bytes_text(free).c_str()));
  const double limit = static_cast<double>(memory.limit);
  if (limit > 0 && limit < 2 * kGiB && limit <= total)
    add(f, Severity::Warning, "M02",
        "this container is limited to " + bytes_text(limit) + " of memory",
        "start it with --memory=8g");
  else if (free < kGiB)
    add(f, Severity::Warning, "M01",
        "only " + bytes_text(free) + " of memory are available: training may run out of it",
        "end other programs, or use smaller batches (--batch)");
}

static void check_disk(const System& s, Findings& f) {
  const std::string home = s.env("HOME").value_or("/");
  if (const auto size = s.size_of(s.real() ? "." : "/")) {
    if (size->free < 500 * kMiB)
      add(f, Severity::Error, "D01",
          "only " + bytes_text(size->free) +
              " are free on this disk: checkpoints will not be written",
          "df -h . && du -xh --max-depth=2 . | sort -h | tail");
    else
      ok(f, "disk: " + bytes_text(size->free) + " free here");
  }
  if (!s.writable("/tmp"))
    add(f, Severity::Error, "D02", "/tmp cannot be written to", "chmod 1777 /tmp");
  if (s.exists(home + "/.cache") && !s.writable(home + "/.cache"))
    add(f, Severity::Warning, "D03",
        home + "/.cache cannot be written to: kernels are compiled and tuned again every time",
        "chown -R \"$USER\" " + home + "/.cache");
  if (const auto size = s.size_of("/dev/shm")) {
    if (size->total < 256 * kMiB && in_container(s))
      add(f, Severity::Note, "D04",
          "/dev/shm holds " + bytes_text(size->total) +
              ". Ingot's own loader does not use it; PyTorch's workers and NCCL beside it do",
          "start the container with --shm-size=1g");
    else
      ok(f, "/dev/shm: " + bytes_text(size->total));
  }
}

// ---- Ingot's own parts

static void check_parts(const System& s, Findings& f) {
  const std::string folder = s.ingot_folder();
  if (!s.exists(folder + "/libingot_codecs.so"))
    add(f, Severity::Warning, "L01",
        "libingot_codecs.so is not beside libingot: PNG, JPEG and gzip files cannot be read",
        "tools/setup.sh && cmake --build build/release --target ingot_codecs");
  const bool module = s.exists(folder + "/libingot_dnnl.so"),
             library = !s.find_library("libdnnl.so").empty();
  if (!module || !library)
    add(f, Severity::Warning, "L02",
        "oneDNN was not found: convolutions on the CPU are several times slower",
        "tools/setup.sh && cmake --preset release && cmake --build build/release");
  else
    ok(f, "oneDNN: " + s.find_library("libdnnl.so"));
}

// ---- The GPU

struct Gpu {
  bool on_bus = false;             // a card is present
  bool module = false;             // NVIDIA's kernel module runs
  double driver = 0;               // its version
  std::string driver_text;         // "580.159.04"
  std::vector<std::string> nodes;  // /dev/nvidia0, ...
  std::string libcuda;
  std::vector<std::string> models;
};

static Gpu find_gpu(const System& s) {
  Gpu g;
  for (const std::string& d : s.list("/sys/bus/pci/devices")) {
    const std::string folder = "/sys/bus/pci/devices/" + d;
    if (s.read(folder + "/vendor").starts_with("0x10de") &&
        s.read(folder + "/class").starts_with("0x03"))
      g.on_bus = true;
  }
  const std::string version = s.read("/proc/driver/nvidia/version");
  g.module = !version.empty();
  std::istringstream words(version);
  for (std::string w; words >> w;)
    if (std::count(w.begin(), w.end(), '.') >= 1 &&
        std::isdigit(static_cast<unsigned char>(w[0]))) {
      g.driver_text = w;
      g.driver = std::atof(w.c_str());
      break;
    }
  for (const std::string& n : s.list("/dev"))
    if (n.starts_with("nvidia") && n.size() > 6 && std::isdigit(static_cast<unsigned char>(n[6])))
      g.nodes.push_back("/dev/" + n);
  for (const std::string& d : s.list("/proc/driver/nvidia/gpus"))
    g.models.push_back(
        line_after(s.read("/proc/driver/nvidia/gpus/" + d + "/information"), "Model"));
  g.libcuda = s.find_library("libcuda.so.1");
  return g;
}

static bool too_old(const std::string& model) {
  for (const char* old : {"K80", "K40", "M40", "M60", "P100", "P40", "P4", "V100", "TITAN V", "T4",
                          "GTX ", "RTX 20", "Quadro"})
    if (model.find(old) != std::string::npos) return true;
  return false;
}

// Why the driver is not usable, from the card outwards; false: no point in further checks.
static bool check_driver(const System& s, const Gpu& g, Findings& f) {
  const bool container = in_container(s);
  if (s.read("/proc/version").find("icrosoft") != std::string::npos && !s.exists("/dev/dxg") &&
      !g.module)
    return add(f, Severity::Note, "G13", "this is WSL without a GPU passed through",
               "install NVIDIA's driver in Windows, then: wsl --update"),
           false;
  if (!g.on_bus && !g.module && g.nodes.empty())
    return ok(f, "no NVIDIA GPU in this machine: Ingot uses the CPU"), false;
  if (s.read("/proc/modules").find("nouveau ") != std::string::npos && !g.module)
    return add(f, Severity::Error, "G02",
               "there is an NVIDIA GPU, but its driver is nouveau, which cannot compute",
               "sudo apt-get install nvidia-driver && sudo reboot"),
           false;
  if (!g.module && container)
    return add(f, Severity::Error, "G03",
               "there is an NVIDIA GPU, but this container was started without it",
               "docker run --gpus all ... (NVIDIA's container toolkit on the host)"),
           false;
  if (!g.module)
    return add(f, Severity::Error, "G01", "there is an NVIDIA GPU, but its driver is not loaded",
               "sudo apt-get install nvidia-driver && sudo modprobe nvidia"),
           false;
  if (g.driver < 550)
    return add(f, Severity::Error, "G04",
               "NVIDIA's driver " + g.driver_text + " is too old: Ingot needs 550 or newer",
               "sudo apt-get install nvidia-driver && sudo reboot"),
           false;
  ok(f, "NVIDIA driver " + g.driver_text);
  if (g.nodes.empty())
    return add(f, Severity::Error, container ? "G03" : "G05",
               container ? "this container was started without the GPU"
                         : "the driver is loaded, but there is no /dev/nvidia0",
               container ? "docker run --gpus all ..." : "sudo nvidia-modprobe -c 0 -u"),
           false;
  return true;
}

static void check_nodes(const System& s, const Gpu& g, Findings& f) {
  for (const std::string& n : g.nodes)
    if (!s.open_to_all(n)) {
      add(f, Severity::Error, "G06", n + " may only be used by some users",
          "sudo chmod a+rw /dev/nvidia*, or join its group: sudo usermod -aG video $USER");
      break;
    }
  if (!s.exists("/dev/nvidia-uvm"))
    add(f, Severity::Error, "G07",
        "/dev/nvidia-uvm is missing: no program can allocate memory on the GPU",
        "sudo nvidia-modprobe -u -c 0");
  if (g.libcuda.empty()) {
    add(f, Severity::Error, "G08", "libcuda.so.1, the driver's library, is not found",
        in_container(s) ? "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ..."
                        : "sudo apt-get install libcuda1");
  } else {
    const std::string exact =
        s.find_library("libcuda.so." + std::to_string(static_cast<int>(g.driver)));
    const std::string other = s.find_library("libcuda.so.5").empty()
                                  ? s.find_library("libcuda.so.4")
                                  : s.find_library("libcuda.so.5");
    if (exact.empty() && !other.empty())
      add(f, Severity::Error, "G09",
          "the driver in the kernel is " + g.driver_text + ", but its library is " + other +
              ": they must be of the same version",
          "sudo reboot (after an update), or use the host's library in the container");
  }
  for (const std::string& m : g.models)
    if (too_old(m))
      add(f, Severity::Error, "G10",
          m + " is older than Ampere (sm_80): Ingot has no kernels for it",
          "use --device cpu, or an A100, L4, RTX 30 or newer");
  const auto visible = s.env("CUDA_VISIBLE_DEVICES");
  if (visible && (visible->empty() || *visible == "-1" || *visible == "NoDevFiles"))
    add(f, Severity::Error, "G11", "CUDA_VISIBLE_DEVICES=\"" + *visible + "\" hides every GPU",
        "unset CUDA_VISIBLE_DEVICES");
}

static void check_libraries(const System& s, const Gpu& g, Findings& f) {
  struct Need {
    const char *prefix, *code, *what;
    Severity severity;
  };
  const Need needs[] = {{"libnvrtc.so", "G20",
                         "NVRTC, which compiles Ingot's kernels, is not found", Severity::Error},
                        {"libcublasLt.so", "G21",
                         "cuBLASLt, which multiplies matrices, is not found", Severity::Error},
                        {"libcudnn.so", "G22",
                         "cuDNN is not found: convolutions and attention run slower, or not at all",
                         Severity::Warning}};
  for (const Need& n : needs) {
    const std::string path = s.find_library(n.prefix);
    if (path.empty())
      add(f, n.severity, n.code, n.what, "make gpu (or: tools/setup.sh --gpu)");
    else
      ok(f, path);
  }
  if (!s.find_library("libcublasLt.so.13").empty() && s.find_library("libcublasLt.so.12").empty() &&
      g.driver < 580)
    add(f, Severity::Error, "G23",
        "the CUDA libraries are of version 13, which needs driver 580; this one is " +
            g.driver_text,
        "make gpu (it takes the libraries of CUDA 12 for this driver), or update the driver");
  if (!s.exists(s.ingot_folder() + "/libingot_cuda.so"))
    add(f, Severity::Error, "G12",
        "there is a GPU, but Ingot was built without its plug-in (libingot_cuda.so)", "make gpu");
}

Findings check_system(const System& s) {
  Findings f;
  if (in_container(s)) ok(f, "this is a container");
  check_cpu(s, f);
  check_memory(s, f);
  check_disk(s, f);
  check_parts(s, f);
  const Gpu g = find_gpu(s);
  if (check_driver(s, g, f)) {
    check_nodes(s, g, f);
    check_libraries(s, g, f);
  }
  return f;
}

// ---- Printing

static void print(const Findings& findings) {
  const bool colour = on_terminal();
  const struct {
    const char *mark, *start;
  } looks[] = {{"ok     ", "\033[32m"},
               {"note   ", "\033[36m"},
               {"warning", "\033[33m"},
               {"error  ", "\033[31m"}};
  for (const Finding& f : findings) {
    const auto& look = looks[static_cast<int>(f.severity)];
    std::cout << (colour ? look.start : "") << look.mark << (colour ? "\033[0m" : "") << "  "
              << (f.code.empty() ? "" : f.code + "  ") << f.text << "\n";
    if (!f.fix.empty()) std::cout << "              fix: " << f.fix << "\n";
  }
}

int run_doctor(const DoctorArgs& args) {
  const System system(args.root);
  if (!args.root.empty() && !system.exists("/"))
    throw Failure(kUsage, "there is no folder " + args.root,
                  "--root takes a folder that looks like a machine's root.");
  Findings findings = check_system(system);
  if (!args.json) print(findings);
  if (args.measure && system.real()) {
    const Findings rates = check_rates();
    if (!args.json) print(rates);
    findings.insert(findings.end(), rates.begin(), rates.end());
  }
  int errors = 0, warnings = 0;
  for (const Finding& f : findings)
    errors += f.severity == Severity::Error, warnings += f.severity == Severity::Warning;
  if (args.json) {
    nlohmann::json list = nlohmann::json::array();
    const char* names[] = {"ok", "note", "warning", "error"};
    for (const Finding& f : findings)
      list.push_back({{"severity", names[static_cast<int>(f.severity)]},
                      {"code", f.code},
                      {"text", f.text},
                      {"fix", f.fix}});
    std::cout << json_text({{"findings", list}, {"errors", errors}, {"warnings", warnings}}, 2)
              << "\n";
  } else {
    std::cout << (errors     ? ""
                  : warnings ? "nothing that prevents Ingot from running; "
                             : "no problems found; ")
              << errors << " errors, " << warnings << " warnings\n";
  }
  return errors ? kFailed : kOk;
}

}  // namespace ingot::cli
