// The generated CUDA text on a real GPU, where there is one: results against the naive interpreter,
// and, with INGOT_BENCH=1, the share of the copy bandwidth that the common kernels reach. Needs
// NVRTC and the driver, not the plug-in.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include <doctest/doctest.h>

#include "emulator/driver.h"
#include "emulator/text_check.h"
#include "support/spec_interpreter.h"

using namespace ingot;
using namespace ingot::test;

namespace {

/// Device copies of a launch's buffers, scratch, arguments and table.
class DeviceMemory {
 public:
  explicit DeviceMemory(Driver& d) : d_(d) {}
  ~DeviceMemory() {
    for (void* p : all_) d_.release(p);
  }
  void* make(size_t bytes, const void* from = nullptr) {
    void* p = d_.allocate(bytes);
    all_.push_back(p);
    if (from != nullptr && bytes > 0) d_.upload(p, from, bytes);
    return p;
  }

 private:
  Driver& d_;
  std::vector<void*> all_;
};

size_t bytes_of(const BufferSpec& b) { return static_cast<size_t>(b.numel) * size_of(b.dtype); }

CudaHeader header_of(DeviceMemory& memory, Inputs& in, CudaLaunch& launch) {
  CudaHeader h;
  h.args = static_cast<double*>(memory.make(sizeof in.args, in.args));
  h.seeds = static_cast<uint64_t*>(memory.make(sizeof in.seeds, in.seeds));
  h.offsets = static_cast<uint64_t*>(memory.make(sizeof in.offsets, in.offsets));
  h.status = memory.make(sizeof in.status, &in.status);
  h.scratch = memory.make(launch.scratch_bytes);
  h.table = static_cast<int64_t*>(memory.make(launch.table.size() * 8, launch.table.data()));
  return h;
}

void run_case(Driver& d, const TextCase& c) {
  CudaText text = emit_cuda(c.parts, c.target);
  CAPTURE(c.name);
  CAPTURE(text.schedule);
  Memory want(c.parts), got(want);
  Inputs a, b;
  size_t first = 0;
  for (const KernelSpec& k : c.parts) {
    interpret(k, want.pointers() + first, a.run());
    first += k.buffers.size();
  }
  CudaLaunch launch = text.launch(c.parts);
  DeviceMemory memory(d);
  std::vector<void*> buffers;
  for (size_t p = 0; p < c.parts.size(); ++p)
    for (size_t n = 0; n < c.parts[p].buffers.size(); ++n) {
      buffers.push_back(memory.make(bytes_of(c.parts[p].buffers[n]), got[buffers.size()]));
      launch.pointer(static_cast<int>(p), static_cast<int>(n)) =
          reinterpret_cast<int64_t>(buffers.back());
    }
  CudaHeader header = header_of(memory, b, launch);
  Driver::Kernel kernel = d.compile(text, launch);
  d.launch(kernel, text, launch, header);
  d.synchronize();
  d.download(&b.status, header.status, sizeof b.status);
  CHECK(a.status.code == b.status.code);
  if (c.bad_index) return;
  size_t at = 0;
  for (const KernelSpec& k : c.parts)
    for (const BufferSpec& spec : k.buffers) {
      d.download(got[at], buffers[at], bytes_of(spec));
      ++at;
    }
  compare(c, got, want);
}

/// Bytes that must move: what is read once, what is written once.
double traffic(const std::vector<KernelSpec>& parts) {
  double sum = 0;
  for (const KernelSpec& k : parts) {
    std::vector<bool> read(k.buffers.size());
    for (const Instr& in : k.instrs)
      if (in.kind == InstrKind::Load && in.indirect < 0) read[in.buffer] = true;
    for (size_t b = 0; b < k.buffers.size(); ++b) {
      if (read[b]) sum += static_cast<double>(bytes_of(k.buffers[b]));
      if (k.buffers[b].written) sum += static_cast<double>(bytes_of(k.buffers[b]));
    }
  }
  return sum;
}

/// Random numbers, made once and copied about on the device.
void fill(Driver& d, void* to, const BufferSpec& b) {
  constexpr int64_t kBlock = 1 << 20;
  static std::map<DType, std::vector<char>> blocks;
  std::vector<char>& block = blocks[b.dtype];
  if (block.empty()) {
    std::mt19937 gen(9);
    block.resize(kBlock * size_of(b.dtype));
    for (int64_t i = 0; i < kBlock; ++i)
      write_element(b.dtype, block.data(), i, Memory::sample(gen, b.dtype));
  }
  size_t total = bytes_of(b), done = std::min(total, block.size());
  d.upload(to, block.data(), done);
  for (; done < total; done += std::min(done, total - done))
    d.copy(static_cast<char*>(to) + done, to, std::min(done, total - done));
}

void time_case(Driver& d, const TextCase& c, double copy_rate) {
  CudaText text = emit_cuda(c.parts, {.multiprocessors = d.multiprocessors});
  CudaLaunch launch = text.launch(c.parts);
  DeviceMemory memory(d);
  for (size_t p = 0; p < c.parts.size(); ++p)
    for (size_t n = 0; n < c.parts[p].buffers.size(); ++n) {
      void* m = memory.make(bytes_of(c.parts[p].buffers[n]));
      fill(d, m, c.parts[p].buffers[n]);
      launch.pointer(static_cast<int>(p), static_cast<int>(n)) = reinterpret_cast<int64_t>(m);
    }
  Inputs in;
  CudaHeader header = header_of(memory, in, launch);
  Driver::Kernel kernel = d.compile(text, launch, true);
  double us = d.time([&] { d.launch(kernel, text, launch, header); });
  double rate = traffic(c.parts) / us / 1e3;
  std::string registers;
  for (size_t at = kernel.log.find("Used "); at != std::string::npos;
       at = kernel.log.find("Used ", at + 1))
    registers += kernel.log.substr(at + 5, kernel.log.find(" registers", at) - at - 5) + " ";
  if (kernel.log.find("0 bytes spill stores") == std::string::npos) registers += "spills! ";
  std::printf("%-42s %9.1f us %6.0f GB/s %4.0f %%  regs %s %s\n", c.name.c_str(), us, rate,
              100 * rate / copy_rate, registers.c_str(), text.schedule.c_str());
}

}  // namespace

TEST_CASE("the GPU's results are the interpreter's") {
  Driver* d = Driver::get();
  if (d == nullptr) {
    MESSAGE("skipped: " << Driver::missing());
    return;
  }
  for (auto& list : {map_cases(), reduce_cases(), row_cases(), column_cases(), random_cases(60, 1)})
    for (const TextCase& c : list) run_case(*d, c);
}

TEST_CASE("bandwidth of the common kernels") {
  Driver* d = Driver::get();
  if (d == nullptr || std::getenv("INGOT_BENCH") == nullptr) {
    MESSAGE("skipped: " << (d == nullptr ? Driver::missing() : "INGOT_BENCH is not set"));
    return;
  }
  constexpr size_t kCopy = size_t{1} << 30;
  DeviceMemory memory(*d);
  void *a = memory.make(kCopy), *b = memory.make(kCopy);
  fill(*d, a, {float32, kCopy / 4});
  double us = d->time([&] { d->copy(b, a, kCopy); }), rate = 2.0 * kCopy / us / 1e3;
  std::printf("%s: copy %.0f GB/s\n", d->name.c_str(), rate);
  const char* only = std::getenv("INGOT_BENCH_ONLY");
  for (const TextCase& c : bench_cases())
    if (only == nullptr || c.name.find(only) != std::string::npos) time_case(*d, c, rate);
}
