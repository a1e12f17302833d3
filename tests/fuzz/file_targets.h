// What the targets share that read files by their paths.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>

namespace ingot::fuzz {

/// A folder of this process alone, gone when it ends; under $TMPDIR.
const std::string& folder();
void put(const std::string& path, const std::string& content);

/// A safetensors file. 'c', the header's JSON, a zero byte, the data: the header's length is added,
/// and the checksum made right where there is one. Anything else, after its first byte: the file as
/// it is.
std::string safetensors_file(const uint8_t* data, size_t size);

/// No text on stderr while it lives: what is said about a damaged file would be said a million
/// times.
class Quiet {
 public:
  Quiet() : before_(std::cerr.rdbuf(nullptr)) {}
  ~Quiet() {
    std::cerr.rdbuf(before_);
    std::cerr.clear();
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  std::streambuf* before_;
};

}  // namespace ingot::fuzz
