// The safetensors format over any bytes: what SafeTensors, checkpoints and the fuzz targets share.
#pragma once
#include <functional>

#include "ingot/io.h"
#include "io/file.h"

namespace ingot::io {

/// Bytes by position: of an open file, or in memory. read() throws once they are gone.
struct Source {
  size_t size = 0;
  std::function<void(uint64_t offset, void* to, size_t bytes)> read;
};
Source source_of(Bytes bytes);
Source source_of(const File& file, const SourceLoc& loc);

struct SafeTensorsHeader {
  std::vector<SafeTensors::Entry> entries;
  std::vector<uint32_t> by_name;  // entries in the order of their names
  Metadata metadata;              // without the checksum
  std::string checksum;           // "" when the file has none
  size_t checksum_at = 0;         // the position of its digits in the file
  size_t data_begin = 0;          // of the file

  /// The entry of that name, or null.
  const SafeTensors::Entry* find(std::string_view name) const;
};

/// Reads the header and checks it against the number of bytes there are.
SafeTensorsHeader parse_safetensors(const Source& file, const char* op, const std::string& path,
                                    const SourceLoc& loc);
/// Compares the file with its checksum: Error(Io) when they differ, false when it has none.
bool check_sum(const Source& file, const SafeTensorsHeader& header, const char* op,
               const std::string& path, const SourceLoc& loc);
/// The tensor of an entry, read from the file.
Tensor read_entry(const Source& file, const SafeTensorsHeader& header,
                  const SafeTensors::Entry& entry, const Options& options, const char* op,
                  const std::string& path, const SourceLoc& loc);
/// All of a file that was opened: checked, then read.
NamedTensors read_all(const File& file, const Options& options, const char* op,
                      const std::string& path, const SourceLoc& loc);

/// A tensor to write whose bytes are in host memory.
struct HostTensor {
  std::string name;
  DType dtype;
  Dims shape;
  std::vector<char> bytes;
};
/// Copies tensors to the host; Error(Value) for a name that comes twice or is reserved.
std::vector<HostTensor> to_host(const NamedTensors& tensors, const char* op, const SourceLoc& loc);
/// A file that is ready to be written: its header has the checksum.
struct HostFile {
  std::vector<HostTensor> tensors;
  std::string header;
  /// Piece by piece.
  void write(const std::function<void(const void* data, size_t bytes)>& to) const;
};
/// Error(Value) for metadata that is not text, or more names than a reader accepts.
HostFile host_file(std::vector<HostTensor> tensors, const Metadata& metadata, const char* op,
                   const SourceLoc& loc);

}  // namespace ingot::io
