// NVRTC, NVIDIA's run-time compiler, found and loaded when it is first asked for. It needs no GPU,
// so tests compile the generated text wherever the library is installed (a CUDA toolkit, or the
// nvidia-cuda-nvrtc wheel).
#pragma once
#include <string>
#include <vector>

namespace ingot {

struct NvrtcResult {
  bool ok = false;
  std::string code;  // machine code (cubin) for an "sm_.." architecture, PTX for a "compute_.." one
  std::string log;   // errors and warnings; with verbose, registers and spills of each kernel
};

class Nvrtc {
 public:
  /// nullptr when there is no NVRTC: missing() then says what was looked for, where, and how to get
  /// it.
  static const Nvrtc* get();
  static std::string missing();
  /// Ones of a later major version are taken only where there is no other: a driver does not load
  /// their code.
  static void set_newest(int major);

  /// arch: "sm_90", "sm_80", "compute_80". Thread-safe.
  NvrtcResult compile(const std::string& source, const std::string& arch,
                      bool verbose = false) const;
  int major() const { return major_; }
  int minor() const { return minor_; }
  const std::string& path() const { return path_; }

 private:
  Nvrtc() = default;
  bool load(const std::string& path, std::string& why);
  bool search(std::string& tried, int newest);

  void* library_ = nullptr;
  std::string path_;
  int major_ = 0, minor_ = 0;
  struct Functions;
  const Functions* f_ = nullptr;
};

}  // namespace ingot
