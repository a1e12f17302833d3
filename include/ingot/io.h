// Tensors in files: safetensors, NumPy's npy and npz, PyTorch's .pt, and weights loaded into a
// module by name.
//
// Readers check every length against the file's size before they allocate anything, keep time and
// memory in proportion to that size, and execute nothing. A file that cannot be opened, is damaged
// or cut short, or is of another format throws Error(Io) naming the file and what is wrong; an
// element type Ingot does not have throws Error(Unsupported); more memory than the machine has,
// Error(OutOfMemory). Writers replace the file atomically: a temporary file, fsync, rename, fsync
// of the folder.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ingot/tensor.h"
#include "ingot/texts.h"

namespace ingot::nn {
class Module;
}

namespace ingot::io {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
using Metadata = Texts;

// ---- Writing

/// Thrown, as an Error(Io), when a file cannot be written because the disk is full, a quota is used
/// up or the process's limit on file sizes is reached: what was there before is intact, and it may
/// be tried again later.
class DiskFull : public Error {
 public:
  using Error::Error;
};

// ---- safetensors

/// A safetensors file, open: the header is read, tensors are read on request.
class SafeTensors {
 public:
  explicit SafeTensors(const std::string& path, SourceLoc loc = SourceLoc::current());
  ~SafeTensors();
  SafeTensors(SafeTensors&&) noexcept;
  SafeTensors(const SafeTensors&) = delete;
  SafeTensors& operator=(const SafeTensors&) = delete;

  struct Entry {
    std::string name;
    std::string dtype;  ///< as the file says it: "F32", "BF16", ...
    Dims shape;
    size_t begin, end;  ///< bytes, from the start of the data
  };
  /// In the order of the data.
  const std::vector<Entry>& entries() const;
  /// Without the checksum, which verify() compares.
  const Metadata& metadata() const;
  bool has(std::string_view name) const;
  /// One tensor, on options' device and in its type where given. Throws Error(Value) for an
  /// unknown name.
  Tensor get(std::string_view name, const Options& options = {},
             SourceLoc loc = SourceLoc::current()) const;
  /// Reads the whole file and compares it with its checksum, which files written by Ingot have;
  /// Error(Io) when they differ. Returns whether there is one. It detects accidents (a changed
  /// byte, a disk error), not forgery. load_safetensors(), load_tensors() and load_weights() do
  /// this by themselves.
  bool verify(SourceLoc loc = SourceLoc::current()) const;

  struct State;

 private:
  std::shared_ptr<State> s_;
};

/// All tensors of the file, in the order of their data. On the CPU unless options say otherwise.
NamedTensors load_safetensors(const std::string& path, const Options& options = {},
                              SourceLoc loc = SourceLoc::current());
/// Every type is written, and a checksum over all of it as the metadata "ingot.checksum". Throws
/// Error(Value) for a name that comes twice or is "__metadata__", DiskFull when there is no room.
void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const Metadata& metadata = {}, SourceLoc loc = SourceLoc::current());
/// The same file handed to `write` piece by piece, for what is not a file of this machine.
void write_safetensors(const std::function<void(const void* data, size_t bytes)>& write,
                       const NamedTensors& tensors, const Metadata& metadata = {},
                       SourceLoc loc = SourceLoc::current());

// ---- NumPy

/// Both byte orders and both memory orders are read. NumPy's uint16 and uint32 are read as int32
/// and int64.
Tensor load_npy(const std::string& path, const Options& options = {},
                SourceLoc loc = SourceLoc::current());
/// Throws Error(DType) for bfloat16, which NumPy does not have; so does save_npz.
void save_npy(const std::string& path, const Tensor& t, SourceLoc loc = SourceLoc::current());
/// What numpy.savez and savez_compressed write, in the order of the file.
NamedTensors load_npz(const std::string& path, const Options& options = {},
                      SourceLoc loc = SourceLoc::current());
void save_npz(const std::string& path, const NamedTensors& tensors,
              SourceLoc loc = SourceLoc::current());

// ---- PyTorch

/// The tensors of a file made by torch.save (1.6 and newer): dicts and lists of tensors, nested
/// ones with their names joined by dots; numbers and texts among them are skipped. The pickle
/// inside is read by a machine that knows tensors, dicts, lists and plain values and refuses every
/// other class: nothing in the file is executed.
NamedTensors load_pt(const std::string& path, const Options& options = {},
                     SourceLoc loc = SourceLoc::current());

/// A file of any of these formats (detected by its content), or the index of a model split over
/// several safetensors files (model.safetensors.index.json).
NamedTensors load_tensors(const std::string& path, const Options& options = {},
                          SourceLoc loc = SourceLoc::current());

/// All that a file holds.
struct Contents {
  NamedTensors tensors;
  Metadata metadata;  ///< of a safetensors file
  /// Of a file of torch.save: how its values were nested, as JSON. What JSON does not have is an
  /// object {"$": kind, "v": value}: a tensor (its index among the tensors), a tuple or set (a
  /// list), a dict or argparse.Namespace (a list of pairs), bytes (in hexadecimal), a dtype (its
  /// name).
  std::string tree;
};
/// The same formats, with what a file holds besides its tensors.
Contents load_contents(const std::string& path, const Options& options = {},
                       SourceLoc loc = SourceLoc::current());
/// The same of a file's bytes; errors call them `name`.
Contents load_contents(std::span<const uint8_t> bytes, const std::string& name,
                       const Options& options = {}, SourceLoc loc = SourceLoc::current());

// ---- Text

/// Writes a file atomically: a temporary file beside it, fsync, rename. Throws Error(Io), DiskFull
/// without room; then the old file is unchanged.
void write_text(const std::string& path, std::string_view text,
                SourceLoc loc = SourceLoc::current());

// ---- Weights by name

struct LoadWeightsOptions {
  /// Names in the file -> names in the module, the first rule that fits; "*" stands for any text
  /// and is carried over in order:
  /// {{"transformer.h.*.ln_1.*", "blocks.*.norm1.*"}}. A name that no rule fits stays as it is.
  std::vector<std::pair<std::string, std::string>> mapping{};
  /// Names in the file (with "*") whose matrices are stored transposed, as GPT-2's are: transposed
  /// when loaded.
  std::vector<std::string> transpose{};
  /// Names in the file (with "*") to skip.
  std::vector<std::string> ignore{};
  /// A name that is missing, unexpected or of the wrong shape throws Error(Value) listing all of
  /// them, and nothing is loaded. Otherwise what fits is loaded and the report says the rest.
  bool strict = true;
};

struct LoadReport {
  std::vector<std::string> loaded;      ///< the module's names
  std::vector<std::string> missing;     ///< in the module, not in the file
  std::vector<std::string> unexpected;  ///< in the file, not in the module
  std::vector<std::string> misshapen;   ///< "name: [3, 4] in the file, [4, 3] in the module"
  bool ok() const { return missing.empty() && unexpected.empty() && misshapen.empty(); }
  std::string to_string() const;
};

/// Loads the parameters and buffers of a module from a file that load_tensors reads; types and
/// devices are the module's.
LoadReport load_weights(const nn::Module& module, const std::string& path,
                        const LoadWeightsOptions& options = {},
                        SourceLoc loc = SourceLoc::current());
/// The same from tensors at hand.
LoadReport load_weights(const nn::Module& module, const NamedTensors& tensors,
                        const LoadWeightsOptions& options = {},
                        SourceLoc loc = SourceLoc::current());
/// Writes the module's parameters and buffers as safetensors.
void save_weights(const nn::Module& module, const std::string& path, const Metadata& metadata = {},
                  SourceLoc loc = SourceLoc::current());

}  // namespace ingot::io
