// ingot-bench: times Ingot on the cases of bench/peers/cpu_torch.py, by the same method and with
// the same names and fields, so that the two can be compared line by line (bench/compare_cpu does).
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <ingot/ingot.h>

#include "bench.h"

namespace bench {

std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

namespace {

const char* const kUsage =
    R"(usage: ingot-bench [--json] [--list] [--serve] [--only REGEX] [--threads N] [--budget SECONDS] [CASE...]
  --json      one JSON line per case instead of a table
  --list      the names of the cases
  --only      the cases whose names match; CASE names them exactly
  --threads   how many threads compute (2)
  --budget    seconds of measuring per case (1.5)
  --serve     reads one REGEX per line, measures what matches, ends each answer with an empty line
)";

struct Options {
  bool json = false, list = false, serve = false;
  int threads = 2;
  double budget = 1.5;
  std::string only;
  std::vector<std::string> names;
};

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// CPU seconds used by everything else on the machine so far: shows whether a case was measured
// alone.
double cpu_of_others() {
  std::ifstream stat("/proc/stat");
  std::string word;
  stat >> word;
  double total = 0, value = 0;
  for (int i = 0; i < 8 && stat >> value; ++i) {
    const bool idle = i == 3 || i == 4;
    if (!idle) total += value;
  }
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return total / 100 - seconds(own.ru_utime) - seconds(own.ru_stime);
}

double timed(const Work& work, int inner) {
  const double start = now();
  for (int i = 0; i < inner; ++i) work.run();
  return (now() - start) / inner;
}

struct Result {
  double median = 0, least = 0, others = 0;
  long iterations = 0;
};

// The method of the peer's script: warm up, then enough samples of at least half a millisecond to
// fill the budget.
Result measure(const Work& work, double budget) {
  work.run();
  double once = timed(work, 1);
  for (const double start = now(); now() - start < std::min(0.4, budget / 3);)
    once = std::min(once, timed(work, 1));
  const int inner = std::max(1, static_cast<int>(std::ceil(5e-4 / std::max(once, 1e-9))));
  std::vector<double> samples;
  const double others = cpu_of_others(), start = now();
  while ((now() - start < budget || samples.size() < 7) && samples.size() < 400)
    samples.push_back(timed(work, inner));
  const double elapsed = now() - start;
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  const double median = n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  return {median, samples[0], std::max(0.0, (cpu_of_others() - others) / elapsed),
          static_cast<long>(n) * inner};
}

void print(const Case& c, const Work& work, const Result& r, const Options& o) {
  if (!o.json) {
    std::printf("%-36s %11.4f ms", c.name.c_str(), r.median * 1e3);
    if (work.flops > 0) std::printf("  %8.1f GFLOP/s", work.flops / r.median / 1e9);
    if (work.bytes > 0) std::printf("  %8.1f GB/s", work.bytes / r.median / 1e9);
    if (work.nodes > 0) std::printf("  %8.0f ns a node", r.median / work.nodes * 1e9);
    std::printf("\n");
  } else {
    std::printf(
        R"({"peer": "ingot", "threads": %d, "case": "%s", "ms": %.5f, "min_ms": %.5f, "iters": %ld, "other_cpu": %.2f)",
        o.threads, c.name.c_str(), r.median * 1e3, r.least * 1e3, r.iterations, r.others);
    if (work.flops > 0) std::printf(R"(, "gflops": %.2f)", work.flops / r.median / 1e9);
    if (work.bytes > 0) std::printf(R"(, "gbs": %.2f)", work.bytes / r.median / 1e9);
    if (work.nodes > 0) std::printf(R"(, "ns_per_node": %.1f)", r.median / work.nodes * 1e9);
    if (!work.note.empty()) std::printf(R"(, "note": "%s")", work.note.c_str());
    std::printf("}\n");
  }
  std::fflush(stdout);
}

bool wanted(const std::string& name, const Options& o) {
  if (!o.only.empty() && !std::regex_search(name, std::regex(o.only))) return false;
  return o.names.empty() || std::find(o.names.begin(), o.names.end(), name) != o.names.end();
}

void run_wanted(const Options& o) {
  for (const Case& c : cases()) {
    if (!wanted(c.name, o)) continue;
    if (o.list) {
      std::printf("%s\n", c.name.c_str());
      continue;
    }
    const Work work = c.setup();
    print(c, work, measure(work, o.budget), o);
  }
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    const auto value = [&]() -> std::string {
      if (++i >= argc) throw std::invalid_argument(a + " needs a value");
      return argv[i];
    };
    if (a == "--json")
      o.json = true;
    else if (a == "--list")
      o.list = true;
    else if (a == "--serve")
      o.serve = true;
    else if (a == "--only")
      o.only = value();
    else if (a == "--threads")
      o.threads = std::stoi(value());
    else if (a == "--budget")
      o.budget = std::stod(value());
    else if (a.starts_with("-"))
      throw std::invalid_argument("unknown option " + a);
    else
      o.names.push_back(a);
  }
  for (const std::string& name : o.names) {
    const auto is = [&](const Case& c) { return c.name == name; };
    if (std::none_of(cases().begin(), cases().end(), is))
      throw std::invalid_argument("no case is named " + name + "; --list shows them");
  }
  return o;
}

int run(int argc, char** argv) {
  add_matmul_cases();
  add_kernel_cases();
  add_model_cases();
  add_neural_cases();
  add_overhead_cases();
  Options o;
  try {
    o = parse(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "ingot-bench: " << e.what() << "\n" << kUsage;
    return 2;
  }
  ingot::set_num_threads(o.threads);
  ingot::manual_seed(0);
  if (!o.serve) {
    run_wanted(o);
    return 0;
  }
  while (std::getline(std::cin, o.only)) {
    run_wanted(o);
    std::printf("\n");
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::run(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "ingot-bench: " << e.what() << "\n";
    return 1;
  }
}
