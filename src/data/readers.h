// The readers over bytes in memory, as the fuzz targets call them.
#pragma once
#include "ingot/data/readers.h"
#include "io/file.h"

namespace ingot::data {

/// Compressed by gzip or not.
Tensor parse_idx(io::Bytes file, const std::string& path, const SourceLoc& loc);
/// Appends the file's images and labels.
void parse_cifar(io::Bytes file, int label_bytes, std::vector<uint8_t>& pixels,
                 std::vector<int64_t>& labels, const std::string& path, const SourceLoc& loc);
Csv parse_csv(std::string_view text, const CsvOptions& options, const std::string& path,
              const SourceLoc& loc);

}  // namespace ingot::data
