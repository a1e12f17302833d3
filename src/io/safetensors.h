// The safetensors format over bytes in memory: what SafeTensors, checkpoints and the fuzz targets share.
#pragma once
#include <functional>

#include "ingot/io.h"
#include "io/file.h"

namespace ingot::io {

struct SafeTensorsHeader {
  std::vector<SafeTensors::Entry> entries;
  Metadata metadata;
  size_t data_begin = 0;  // of the file
};

/// Reads and checks the header against the number of bytes there are.
SafeTensorsHeader parse_safetensors(Bytes file, const char* op, const std::string& path,
                                    const SourceLoc& loc);
/// The tensor of an entry, copied from the file's bytes.
Tensor read_entry(Bytes file, const SafeTensorsHeader& header, const SafeTensors::Entry& entry,
                  const Options& options, const char* op, const std::string& path, const SourceLoc& loc);

/// A tensor to write whose bytes lie in host memory.
struct HostTensor {
  std::string name;
  DType dtype;
  Dims shape;
  std::vector<char> bytes;
};
/// Copies tensors to the host; Error(Value) for a name that comes twice or is reserved.
std::vector<HostTensor> to_host(const NamedTensors& tensors, const char* op, const SourceLoc& loc);
/// The length and the JSON, padded so that data begins at a multiple of 64.
std::string safetensors_header(const std::vector<HostTensor>& tensors, const Metadata& metadata);

}  // namespace ingot::io
