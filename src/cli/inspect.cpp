#include "inspect.h"

#include <fstream>
#include <iostream>

#include <nlohmann/json.hpp>

#include <ingot/ingot.h>

#include "cli.h"
#include "files.h"

namespace ingot::cli {

struct Entry {
  std::string name, dtype;
  Dims shape;
  double bytes;
  Tensor value;  // undefined until requested
};

struct Content {
  std::string format;
  io::Metadata metadata;
  std::vector<Entry> entries;
};

static std::string shape_text(const Dims& d) {
  std::string s = "[";
  for (int i = 0; i < d.size(); ++i) s += (i ? ", " : "") + std::to_string(d[i]);
  return s + "]";
}

static void add_tensors(Content& c, const NamedTensors& tensors) {
  for (const auto& [name, t] : tensors)
    c.entries.push_back(
        {name, std::string(name_of(t.dtype())), t.shape(),
         static_cast<double>(t.numel()) * static_cast<double>(ingot::size_of(t.dtype())), t});
}

static bool looks_like_idx(const std::string& path) {
  return path.find("ubyte") != std::string::npos || path.ends_with(".idx") ||
         path.ends_with(".idx.gz");
}

// The first nine bytes: enough to know the format.
static std::string beginning(const std::string& path) {
  require_plain(path);
  std::ifstream in(path, std::ios::binary);
  char bytes[9]{};
  in.read(bytes, sizeof bytes);
  return {bytes, static_cast<size_t>(in.gcount())};
}

static Content read_content(const std::string& path, bool values) {
  const std::string head = beginning(path);
  Content c;
  if (looks_like_idx(path)) {
    c.format = "IDX";
    add_tensors(c, {{"data", data::load_idx(path)}});
  } else if (head.starts_with("\x93NUMPY")) {
    c.format = "NumPy npy";
    add_tensors(c, {{"array", io::load_npy(path)}});
  } else if (head.starts_with("PK")) {
    const bool npz = path.ends_with(".npz");
    c.format = npz ? "NumPy npz" : "PyTorch";
    add_tensors(c, npz ? io::load_npz(path) : io::load_pt(path));
  } else if (path.ends_with(".json")) {
    c.format = "index of safetensors files";
    add_tensors(c, io::load_tensors(path));
  } else {
    c.format = "safetensors";
    // Its first eight bytes are the length of the header, which begins with a brace.
    if (!path.ends_with(".safetensors") && (head.size() < 9 || head[8] != '{'))
      throw Failure(kDamaged, path + " is of no format that inspect reads, or it is damaged",
                    "It reads safetensors, npy, npz, pt and IDX (names with ubyte or .idx).");
    const io::SafeTensors file(path);
    c.metadata = file.metadata();
    for (const auto& e : file.entries())
      c.entries.push_back({e.name, e.dtype, e.shape, static_cast<double>(e.end - e.begin),
                           values ? file.get(e.name) : Tensor()});
  }
  return c;
}

static std::string statistics(const Tensor& t) {
  if (t.numel() == 0) return "empty";
  const Tensor f = t.to(float64);
  const Tensor stats[] = {f.min(), f.max(), f.mean(), f.std(),
                          f.isfinite().logical_not().to(float64).sum()};
  eval({stats[0], stats[1], stats[2], stats[3], stats[4]});
  std::string s =
      format("min %.4g  max %.4g  mean %.4g", stats[0].item(), stats[1].item(), stats[2].item());
  if (t.numel() > 1) s += format("  std %.4g", stats[3].item());
  if (stats[4].item() > 0) s += format("  %.0f not finite", stats[4].item());
  return s;
}

// A type or an encoding that Ingot does not read is a fault of the file, as damage is.
static Content content_of(const InspectArgs& args) {
  try {
    return read_content(args.file, args.values);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Unsupported) throw;
    throw Failure(kDamaged, e.reason(), e.fix());
  }
}

int run_inspect(const InspectArgs& args) {
  const PathKind kind = kind_of(args.file);
  if (kind == PathKind::None)
    throw Failure(kNoData, "there is no file " + args.file,
                  "Give the path of a safetensors, npy, npz, pt or IDX file.");
  if (kind == PathKind::Folder)
    throw Failure(kNoData, args.file + " is a folder", "Give one of the files in it.");
  Content c = content_of(args);
  if (!args.pattern.empty()) {
    std::erase_if(c.entries,
                  [&](const Entry& e) { return e.name.find(args.pattern) == std::string::npos; });
    if (c.entries.empty())
      throw Failure(kUsage,
                    "no tensor in " + args.file + " has a name with \"" + args.pattern + "\" in it",
                    "Leave --only out to see all.");
  }
  double bytes = 0;
  int64_t elements = 0;
  for (const Entry& e : c.entries) bytes += e.bytes, elements += e.shape.numel();
  if (args.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Entry& e : c.entries) {
      const std::vector<int64_t> dims(e.shape.begin(), e.shape.end());
      list.push_back({{"name", e.name},
                      {"dtype", e.dtype},
                      {"shape", dims},
                      {"bytes", static_cast<int64_t>(e.bytes)}});
    }
    std::cout << json_text({{"file", args.file},
                            {"format", c.format},
                            {"metadata", c.metadata},
                            {"tensors", list},
                            {"elements", elements},
                            {"bytes", static_cast<int64_t>(bytes)}},
                           2)
              << "\n";
    return kOk;
  }
  std::cout << printable(args.file) << ": " << c.format << ", " << c.entries.size() << " tensors, "
            << count_text(elements) << " elements, " << bytes_text(bytes) << "\n";
  for (const auto& [key, value] : c.metadata)
    std::cout << "  " << printable(key) << ": "
              << printable(value.size() > 100 ? value.substr(0, 100) + "..." : value) << "\n";
  Table table(args.values ? std::vector<std::string>{"name", "type", "shape", "bytes", "values"}
                          : std::vector<std::string>{"name", "type", "shape", "bytes"});
  for (const Entry& e : c.entries) {
    std::vector<std::string> row{e.name, e.dtype, shape_text(e.shape), bytes_text(e.bytes)};
    if (args.values) row.push_back(statistics(e.value));
    table.row(row);
  }
  std::cout << table.text();
  return kOk;
}

int run_devices(bool json) {
  if (!json) {
    std::cout << describe_devices();
    return kOk;
  }
  nlohmann::json list = nlohmann::json::array(), all;
  for (const DeviceInfo& i : list_devices()) {
    nlohmann::json facts = nlohmann::json::object();
    for (const auto& [what, value] : i.facts) facts[what] = value;
    list.push_back({{"device", i.device.name()},
                    {"name", i.name},
                    {"memory", i.memory},
                    {"free", i.free},
                    {"facts", facts}});
  }
  all["devices"] = list;
  // The last line of the text says why there is no GPU.
  const std::string text = describe_devices(), key = "no GPU\t";
  if (const size_t at = text.rfind(key); at != std::string::npos)
    all["no_gpu"] = text.substr(at + key.size(), text.find('\n', at) - at - key.size());
  std::cout << json_text(all, 2) << "\n";
  return kOk;
}

}  // namespace ingot::cli
