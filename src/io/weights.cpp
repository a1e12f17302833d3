// Weights by name: any format, names mapped, and an account of what did not fit.
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <unordered_map>

#include "ingot/io.h"
#include "ingot/nn.h"
#include "ingot/ops.h"
#include "ingot/state.h"
#include "io/index.h"
#include "io/json.h"
#include "io/npy.h"
#include "io/pt.h"
#include "io/safetensors.h"

namespace ingot::io {
namespace {

// Does `name` match `pattern`, and which texts do its stars match? The shortest match from the
// left.
bool fits(std::string_view pattern, std::string_view name, std::vector<std::string>& stars) {
  size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (name.substr(0, star) != pattern.substr(0, star)) return false;
  std::string_view rest = pattern.substr(star + 1);
  for (size_t n = 0; star + n <= name.size(); ++n) {
    stars.emplace_back(name.substr(star, n));
    if (fits(rest, name.substr(star + n), stars)) return true;
    stars.pop_back();
  }
  return false;
}

bool any_fits(const std::vector<std::string>& patterns, const std::string& name) {
  std::vector<std::string> stars;
  for (const std::string& p : patterns)
    if (stars.clear(); fits(p, name, stars)) return true;
  return false;
}

std::string mapped(const LoadWeightsOptions& o, const std::string& name, const SourceLoc& loc) {
  for (const auto& [from, to] : o.mapping) {
    std::vector<std::string> stars;
    if (!fits(from, name, stars)) continue;
    std::string result;
    size_t next = 0;
    for (char c : to) {
      if (c != '*')
        result += c;
      else if (next < stars.size())
        result += stars[next++];
      else
        throw Error(ErrorKind::Value, "load_weights",
                    "the rule \"" + from + "\" -> \"" + to + "\" has more stars on its right side",
                    loc);
    }
    return result;
  }
  return name;
}

void append(std::string& text, const char* title, const std::vector<std::string>& names) {
  if (names.empty()) return;
  text += (text.empty() ? "" : "; ") + std::string(title) + ":";
  for (size_t i = 0; i < names.size(); ++i) text += (i ? ", " : " ") + names[i];
}

}  // namespace

std::string LoadReport::to_string() const {
  std::string text;
  append(text, "missing from the file", missing);
  append(text, "in the file but not in the module", unexpected);
  append(text, "of another shape", misshapen);
  return text.empty() ? std::to_string(loaded.size()) + " tensors loaded" : text;
}

namespace {

constexpr std::string_view kIndex = ".index.json";

bool ends_in(std::string_view name, std::string_view end) {
  return name.size() >= end.size() && name.substr(name.size() - end.size()) == end;
}

}  // namespace

std::map<std::string, std::string> parse_index(std::string_view text, const char* op,
                                               const std::string& path, const SourceLoc& loc) {
  std::map<std::string, std::string> files;
  bool found = false;
  JsonReader in(text, op, path, loc);
  if (in.kind() != JsonReader::Kind::Object) fail_io(op, path, "has no weight_map", loc);
  in.object([&](const std::string& key) {
    if (key != "weight_map" || in.kind() != JsonReader::Kind::Object) return in.skip();
    found = true;
    in.object([&](std::string name) {
      if (in.kind() != JsonReader::Kind::Text)
        fail_io(op, path, "names a file by something other than text", loc);
      std::string file = in.text();
      if (file.empty() || file.find('/') != std::string::npos ||
          file.find('\0') != std::string::npos)
        fail_io(op, path, "names a file outside its folder: \"" + file.substr(0, 200) + "\"", loc);
      if (!files.emplace(std::move(name), std::move(file)).second)
        fail_io(op, path, "names a tensor twice", loc);
    });
  });
  in.end();
  if (!found) fail_io(op, path, "has no weight_map", loc);
  return files;
}

namespace {

// The parts that the index of a split model names. Where the index names a tensor, it comes from
// that file.
NamedTensors load_split(const std::string& path, const Options& options, const char* op,
                        const SourceLoc& loc) {
  const auto file_of = parse_index(read_text(path, size_t{1} << 28, op, loc), op, path, loc);
  std::set<std::string> files, loaded;
  for (const auto& [name, file] : file_of) files.insert(file);
  NamedTensors all;
  for (const std::string& f : files)
    for (auto& [name, t] :
         load_safetensors(path.substr(0, path.rfind('/') + 1) + f, options, loc)) {
      const auto at = file_of.find(name);
      if (at != file_of.end() && at->second != f) continue;
      if (!loaded.insert(name).second)
        fail_io(op, path, "names files of which two have a tensor \"" + name + "\"", loc);
      all.emplace_back(name, t);
    }
  for (const auto& [name, file] : file_of)
    if (!loaded.count(name))
      fail_io(op, path,
              "says that \"" + file + "\" has a tensor \"" + name + "\", which it does not have",
              loc, "download the files again: the index and its parts are not of one model");
  return all;
}

enum class Format { SafeTensors, Zip, Npy, OldPt };

// By the first bytes.
Format format_of(const Source& file) {
  std::array<uint8_t, 8> head{};
  file.read(0, head.data(), std::min(head.size(), file.size));
  auto begins = [&](std::string_view with) {
    return std::memcmp(head.data(), with.data(), with.size()) == 0;
  };
  return begins("PK\x03\x04")                         ? Format::Zip
         : begins("\x93NUMPY")                        ? Format::Npy
         : begins("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46") ? Format::OldPt
                                                      : Format::SafeTensors;
}

Contents contents_of(const Source& file, const Options& options, const char* op,
                     const std::string& path, const SourceLoc& loc) {
  SafeTensorsHeader header = parse_safetensors(file, op, path, loc);
  check_sum(file, header, op, path, loc);
  Contents c;
  for (const SafeTensors::Entry& e : header.entries)
    c.tensors.emplace_back(e.name, read_entry(file, header, e, options, op, path, loc));
  c.metadata = std::move(header.metadata);
  return c;
}

Contents contents_of(Bytes b, const Options& options, const char* op, const std::string& path,
                     bool want_tree, const SourceLoc& loc) {
  const Format format = format_of(source_of(b));
  Contents c;
  if (format == Format::SafeTensors)
    c = contents_of(source_of(b), options, op, path, loc);
  else if (format == Format::Npy)
    c.tensors = {{"", parse_npy(b, options, op, path, loc)}};
  else if (format == Format::Zip && !is_pt(b, op, path, loc))
    c.tensors = parse_npz(b, options, op, path, loc);
  else
    c.tensors = parse_pt(b, options, op, path, loc, want_tree ? &c.tree : nullptr);
  return c;
}

Contents contents_of_file(const std::string& path, const Options& options, const char* op,
                          bool want_tree, const SourceLoc& loc) {
  return reading(op, path, loc, [&]() -> Contents {
    if (path.size() > kIndex.size() && ends_in(path, kIndex))
      return {load_split(path, options, op, loc), {}, {}};
    const File file(path, op, loc);
    const Source source = source_of(file, loc);
    if (format_of(source) == Format::SafeTensors)
      return contents_of(source, options, op, path, loc);
    const FileBytes all(path, op, loc);
    return contents_of(all.bytes(), options, op, path, want_tree, loc);
  });
}

}  // namespace

NamedTensors load_tensors(const std::string& path, const Options& options, SourceLoc where) {
  return contents_of_file(path, options, "load_tensors", false, user_loc(where)).tensors;
}

Contents load_contents(const std::string& path, const Options& options, SourceLoc where) {
  return contents_of_file(path, options, "load", true, user_loc(where));
}

Contents load_contents(std::span<const uint8_t> bytes, const std::string& name,
                       const Options& options, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return reading("load", name, loc,
                 [&] { return contents_of(bytes, options, "load", name, true, loc); });
}

LoadReport load_weights(const nn::Module& module, const NamedTensors& tensors,
                        const LoadWeightsOptions& o, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  std::unordered_map<std::string, Tensor> wanted;
  StateDict own = module.state_dict();
  for (const auto& [name, t] : own) wanted.emplace(name, t);
  LoadReport report;
  std::set<std::string> seen;
  std::vector<std::pair<Tensor, Tensor>> pairs;
  for (const auto& [name, value] : tensors) {
    if (any_fits(o.ignore, name)) continue;
    std::string target = mapped(o, name, loc);
    auto at = wanted.find(target);
    if (at == wanted.end() || !seen.insert(target).second) {
      report.unexpected.push_back(name);
      continue;
    }
    Tensor v = any_fits(o.transpose, name) && value.dim() == 2 ? value.t() : value;
    if (!(v.shape() == at->second.shape())) {
      report.misshapen.push_back(target + ": " + ingot::to_string(v.shape()) + " in the file, " +
                                 ingot::to_string(at->second.shape()) + " in the module");
      continue;
    }
    pairs.emplace_back(at->second, v);
    report.loaded.push_back(target);
  }
  // A tied tensor is there when one of its names is.
  std::set<const Cell*> given;
  for (const std::string& name : seen) given.insert(wanted.at(name).cell());
  for (const auto& [name, t] : own)
    if (!given.count(t.cell())) report.missing.push_back(name);
  if (o.strict && !report.ok())
    throw Error(ErrorKind::Value, "load_weights", "the weights do not fit: " + report.to_string(),
                loc, "give a mapping of names, or strict = false to load what fits");
  assign_all(pairs, loc);
  return report;
}

LoadReport load_weights(const nn::Module& module, const std::string& path,
                        const LoadWeightsOptions& options, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return load_weights(module, load_tensors(path, {}, loc), options, loc);
}

void save_weights(const nn::Module& module, const std::string& path, const Metadata& metadata,
                  SourceLoc where) {
  save_safetensors(path, module.state_dict().tensors, metadata, user_loc(where));
}

}  // namespace ingot::io
