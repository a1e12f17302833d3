// Where NVIDIA's libraries may be: named by a variable, in a Python environment's nvidia wheels, in
// a toolkit, or wherever the loader looks.
#pragma once
#include <string>
#include <vector>

#include "base/env.h"

namespace ingot::cuda {

struct LibraryQuery {
  env::NameOf<env::Kind::Path> variable;  // that names the file
  std::vector<const char*> sonames;       // best first: "libcublasLt.so.13", ...
  std::vector<const char*> wheels;  // folders under site-packages/nvidia: "cu13/lib", "cublas/lib"
};

/// dlopen's handle, or nullptr and in `why` what was tried.
void* open_library(const LibraryQuery& query, std::string& path, std::string& why);

}  // namespace ingot::cuda
