// Files of every format: written and read back in every type, read as others wrote them, and
// damaged in every way.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "io/npy.h"
#include "io/pt.h"
#include "io/safetensors.h"
#include "io/zip.h"
#include "support/folder.h"

using namespace ingot;

namespace {

constexpr DType kTypes[] = {float64, float32, float16, bfloat16, int64,
                            int32,   int16,   int8,    uint8,    bool_};

Tensor sample(DType t, const Dims& shape) {
  Tensor x = arange(shape.numel()).reshape(shape);
  return (t == bool_ ? x % 2 : x - (t == uint8 ? 0 : 3)).to(t).eval_();
}

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         a.to_vector<double>() == b.to_vector<double>();
}

ErrorKind kind_of(const std::function<void()>& f, std::string* message = nullptr) {
  try {
    f();
  } catch (const Error& e) {
    if (message) *message = e.what();
    return e.kind();
  }
  return ErrorKind::Internal;
}

const Tensor& named(const io::NamedTensors& all, const std::string& name) {
  for (const auto& [n, t] : all)
    if (n == name) return t;
  FAIL("no tensor " << name);
  return all[0].second;
}

std::string file(const std::string& name) { return std::string(INGOT_TEST_FILES) + "/" + name; }

// Every length of the file, and bytes changed here and there: a clean error or a clean result,
// nothing else.
template <class Parse>
void damage(const std::string& path, Parse parse) {
  std::string whole = read_file(path);
  auto attempt = [&](const std::string& s) {
    try {
      parse(io::Bytes(reinterpret_cast<const uint8_t*>(s.data()), s.size()));
      return true;
    } catch (const Error& e) {
      CHECK((e.kind() == ErrorKind::Io || e.kind() == ErrorKind::Unsupported));
      return false;
    }
  };
  CHECK(attempt(whole));
  size_t step = whole.size() / 1500 + 1;
  for (size_t n = 0; n < whole.size(); n += step) CHECK(!attempt(whole.substr(0, n)));
  uint64_t r = 1;
  for (int i = 0; i < 1500; ++i) {
    std::string s = whole;
    for (int k = 0; k < 1 + i % 3; ++k) {
      r = r * 6364136223846793005u + 1442695040888963407u;
      s[r >> 33 & 0xffffff ? (r >> 33) % s.size() : 0] = static_cast<char>(i % 2 ? r >> 20 : 0xff);
    }
    attempt(s);
  }
}

}  // namespace

TEST_CASE("safetensors: every type and shape comes back, with its metadata") {
  Folder f;
  io::NamedTensors all;
  for (DType t : kTypes)
    for (const Dims& shape : {Dims{}, Dims{0, 3}, Dims{5}, Dims{2, 3, 4}})
      all.emplace_back(std::string(name_of(t)) + "." + to_string(shape), sample(t, shape));
  all.emplace_back("view \"of\" \\ \n many", arange(12).reshape({3, 4}).t());
  io::Metadata metadata{{"note", "quotes \" and \\ and\nlines"}, {"empty", ""}};
  io::save_safetensors(f / "a.safetensors", all, metadata);
  io::SafeTensors open(f / "a.safetensors");
  CHECK(open.metadata() == metadata);
  CHECK(open.entries().size() == all.size());
  for (const auto& [name, t] : all) CHECK(same(open.get(name), t));
  CHECK(same(open.get(all[2].first, float32), all[2].second.to(float32)));
  CHECK(open.get(all[2].first, "cpu:1").device() == Device("cpu:1"));
  CHECK(kind_of([&] { open.get("none"); }) == ErrorKind::Value);
  CHECK(open.has("float32.[5]"));
  CHECK_FALSE(open.has("none"));
  CHECK(io::load_safetensors(f / "a.safetensors").size() == all.size());
  CHECK(kind_of([&] {
          io::save_safetensors(f / "b", {{"x", ones({1})}, {"x", ones({1})}});
        }) == ErrorKind::Value);
  CHECK(kind_of([&] {
          io::save_safetensors(f / "b", {{"__metadata__", ones({1})}});
        }) == ErrorKind::Value);
  CHECK(kind_of([&] {
          io::save_safetensors(f / "no/such/folder", {{"x", ones({1})}});
        }) == ErrorKind::Io);
  CHECK(kind_of([&] { io::load_safetensors(f / "none"); }) == ErrorKind::Io);
  CHECK(f.files() == std::vector<std::string>{"a.safetensors"});
}

TEST_CASE("files of safetensors, PyTorch and NumPy themselves") {
  for (const char* name : {"types.safetensors", "types.pt"}) {
    CAPTURE(std::string(name));
    io::NamedTensors all = io::load_tensors(file(name));
    CHECK(all.size() == 10);
    for (DType t : kTypes)
      CHECK(same(named(all, std::string(name_of(t))), (arange(6) % 3).reshape({2, 3}).to(t)));
  }
  CHECK(io::SafeTensors(file("types.safetensors")).metadata() ==
        io::Metadata{{"format", "pt"}, {"note", "a \"quoted\" note\n"}});
  for (const char* name : {"stored.npz", "packed.npz"}) {
    CAPTURE(std::string(name));
    io::NamedTensors all = io::load_npz(file(name));
    CHECK(same(named(all, "f4"), arange(6).reshape({2, 3}).to(float32)));
    CHECK(same(named(all, "big"), arange(6).reshape({2, 3}).to(int32)));
    CHECK(same(named(all, "fortran"), arange(24).reshape({2, 3, 4}).to(float64)));
    CHECK(same(named(all, "u2"), tensor({1, 65535}, int32)));
    CHECK(same(named(all, "scalar"), tensor(2.5, float64)));
    CHECK(same(named(all, "empty"), zeros({0, 2}, int64)));
    CHECK(same(named(all, "bool"), tensor({true, false})));
    CHECK(same(named(all, "one"), tensor({3}, int8)));
  }
  CHECK(kind_of([&] { io::load_npy(file("complex.npy")); }) == ErrorKind::Unsupported);
  io::NamedTensors nested = io::load_pt(file("nested.pt"));
  Tensor base = arange(24).reshape({4, 6}).to(float32);
  CHECK(nested.size() == 6);
  CHECK(same(named(nested, "model.turned"), base.t()));
  CHECK(same(named(nested, "model.part"), base[{Slice{1, 3}, Slice{2, 5}}]));
  CHECK(same(named(nested, "model.same"), base));
  CHECK(same(named(nested, "list.0"), tensor(7)));
  CHECK(same(named(nested, "list.1"), zeros({0, 3})));
  CHECK(same(named(nested, "parameter"), ones({2})));
}

TEST_CASE("what a file holds besides its tensors") {
  io::Contents pt = io::load_contents(file("nested.pt"));
  CHECK(pt.tensors.size() == 6);
  CHECK(pt.tree.find("[\"epoch\",3]") != std::string::npos);
  CHECK(pt.tree.find("{\"$\":\"tensor\",\"v\":5}") != std::string::npos);
  std::string bytes;
  io::write_safetensors(
      [&](const void* p, size_t n) { bytes.append(static_cast<const char*>(p), n); },
      {{"a", arange(3)}, {"empty", zeros({0})}}, {{"note", "x"}});
  io::Contents own =
      io::load_contents({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "memory");
  CHECK(own.metadata.at("note") == "x");
  CHECK(same(named(own.tensors, "a"), arange(3)));
  CHECK(own.tree.empty());
  // A header no reader would take is not written.
  Folder f;
  std::string path = f / "large", message;
  CHECK(kind_of(
            [&] {
              io::save_safetensors(path, {}, {{"k", std::string(100'000'001, 'x')}});
            },
            &message) == ErrorKind::Value);
  CHECK(!std::filesystem::exists(path));
}

TEST_CASE("a pickle that would call something is refused") {
  std::string message;
  CHECK(kind_of([&] { io::load_pt(file("evil.pt")); }, &message) == ErrorKind::Io);
  CHECK(message.find("print") != std::string::npos);
  CHECK(kind_of([&] { io::load_pt(file("module.pt")); }, &message) == ErrorKind::Io);
  CHECK(message.find("state_dict") != std::string::npos);
}

TEST_CASE("npy and npz: every type NumPy has comes back") {
  Folder f;
  io::NamedTensors all;
  for (DType t : kTypes) {
    if (t == bfloat16) continue;
    for (const Dims& shape : {Dims{}, Dims{0, 3}, Dims{5}, Dims{2, 3, 4}}) {
      Tensor x = sample(t, shape);
      io::save_npy(f / "a.npy", x);
      CHECK(same(io::load_npy(f / "a.npy"), x));
      all.emplace_back(std::string(name_of(t)) + std::to_string(shape.size()), x);
    }
  }
  io::save_npz(f / "a.npz", all);
  io::NamedTensors back = io::load_npz(f / "a.npz");
  REQUIRE(back.size() == all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    CHECK(back[i].first == all[i].first);
    CHECK(same(back[i].second, all[i].second));
  }
  CHECK(kind_of([&] { io::save_npy(f / "b.npy", ones({1}, bfloat16)); }) == ErrorKind::DType);
  CHECK(kind_of([&] {
          io::save_npz(f / "b.npz", {{"x", ones({1}, bfloat16)}});
        }) == ErrorKind::DType);
  CHECK(f.files() == std::vector<std::string>{"a.npy", "a.npz"});
}

TEST_CASE("damaged files") {
  SourceLoc loc = SourceLoc::current();
  auto safetensors = [&](io::Bytes b) {
    const io::Source source = io::source_of(b);
    io::SafeTensorsHeader h = io::parse_safetensors(source, "t", "x", loc);
    for (const auto& e : h.entries) io::read_entry(source, h, e, {}, "t", "x", loc);
  };
  damage(file("types.safetensors"), safetensors);
  damage(file("stored.npz"), [&](io::Bytes b) { io::parse_npz(b, {}, "t", "x", loc); });
  damage(file("packed.npz"), [&](io::Bytes b) { io::parse_npz(b, {}, "t", "x", loc); });
  damage(file("nested.pt"), [&](io::Bytes b) { io::parse_pt(b, {}, "t", "x", loc); });
  Folder f;
  io::save_npy(f / "a.npy", arange(300).reshape({3, 100}));
  damage(f / "a.npy", [&](io::Bytes b) { io::parse_npy(b, {}, "t", "x", loc); });
}

TEST_CASE("hostile safetensors headers") {
  SourceLoc loc = SourceLoc::current();
  auto parse = [&](std::string json, size_t data) {
    std::string s(8, '\0');
    for (size_t i = 0; i < 8; ++i) s[i] = static_cast<char>(json.size() >> (8 * i));
    s += json + std::string(data, '\0');
    return kind_of([&] {
      io::parse_safetensors(
          io::source_of(io::Bytes(reinterpret_cast<const uint8_t*>(s.data()), s.size())), "t", "x",
          loc);
    });
  };
  CHECK(parse(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8) ==
        ErrorKind::Internal);  // sound
  CHECK(parse(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 12) ==
        ErrorKind::Io);  // more data than tensors
  CHECK(parse(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12) ==
        ErrorKind::Io);  // a gap
  CHECK(parse(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8) == ErrorKind::Io);
  CHECK(parse(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8) == ErrorKind::Io);
  CHECK(parse(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0) ==
        ErrorKind::Io);
  CHECK(
      parse(
          R"({"a":{"dtype":"F32","shape":[0,4611686018427387904,4611686018427387904],"data_offsets":[0,0]}})",
          0) == ErrorKind::Io);
  CHECK(parse(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,99999999999999]}})", 8) ==
        ErrorKind::Io);
  CHECK(parse(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8) == ErrorKind::Io);
  CHECK(parse(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}})",
              8) == ErrorKind::Io);
  CHECK(
      parse(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
          8) == ErrorKind::Io);
  CHECK(parse(R"({"__metadata__":{"a":1}})", 0) == ErrorKind::Io);
  CHECK(parse(std::string(100000, '['), 0) == ErrorKind::Io);
  CHECK(parse(std::string(100000, '{'), 0) == ErrorKind::Io);
  CHECK(parse("{", 0) == ErrorKind::Io);
  CHECK(parse("[]", 0) == ErrorKind::Io);
  Folder f;
  write_file(f / "short", "abc");
  write_file(f / "empty", "");
  for (const char* name : {"short", "empty"}) {
    CHECK(kind_of([&] { io::load_safetensors(f / name); }) == ErrorKind::Io);
    CHECK(kind_of([&] { io::load_npy(f / name); }) == ErrorKind::Io);
    CHECK(kind_of([&] { io::load_npz(f / name); }) == ErrorKind::Io);
    CHECK(kind_of([&] { io::load_pt(f / name); }) == ErrorKind::Io);
    CHECK(kind_of([&] { io::load_tensors(f / name); }) == ErrorKind::Io);
  }
  CHECK(kind_of([&] { io::load_safetensors(f.path); }) == ErrorKind::Io);
}

namespace {

struct Net : nn::Module {
  nn::Linear first = add("first", nn::Linear(3, 4));
  nn::Linear last = add("last", nn::Linear(4, 2));
};

}  // namespace

TEST_CASE("weights by name") {
  Net net;
  io::LoadWeightsOptions rules{.mapping = {{"0.*", "first.*"}, {"2.*", "last.*"}}};
  io::LoadReport report = io::load_weights(net, file("model.pt"), rules);
  CHECK(report.ok());
  CHECK(report.loaded.size() == 4);
  CHECK(net.first.weight().requires_grad());
  CHECK(same(net.first.weight().detach(), named(io::load_pt(file("model.pt")), "0.weight")));

  Folder f;
  io::save_weights(net, f / "net.safetensors", {{"format", "ingot"}});
  Net other;
  CHECK(io::load_weights(other, f / "net.safetensors").ok());
  CHECK(same(other.last.bias().detach(), net.last.bias().detach()));

  // Nothing changes when something is wrong, and everything wrong is reported at once.
  Net third;
  Tensor before = third.first.weight().detach().clone().eval_();
  io::NamedTensors wrong{{"first.weight", zeros({4, 3})},
                         {"first.bias", zeros({5})},
                         {"extra", zeros({1})},
                         {"last.weight", zeros({4, 2})}};
  std::string message;
  CHECK(kind_of([&] { io::load_weights(third, wrong); }, &message) == ErrorKind::Value);
  for (const char* part : {"missing from the file: last.bias", "extra",
                           "first.bias: [5] in the file, [4] in the module"})
    CHECK(message.find(part) != std::string::npos);
  CHECK(same(third.first.weight().detach(), before));
  report = io::load_weights(third, wrong,
                            {.transpose = {"last.w*"}, .ignore = {"ext*"}, .strict = false});
  CHECK(report.unexpected.empty());
  CHECK(report.missing == std::vector<std::string>{"last.bias"});
  CHECK(report.misshapen.size() == 1);
  CHECK(report.loaded == std::vector<std::string>{"first.weight", "last.weight"});
  CHECK(third.first.weight().detach().abs().sum().item() == 0);
  CHECK(kind_of([&] {
          io::load_weights(third, wrong, {.mapping = {{"extra", "a.*"}}});
        }) == ErrorKind::Value);
}

TEST_CASE("a model split over several files") {
  Folder f;
  io::save_safetensors(f / "model-1.safetensors", {{"a", ones({2})}});
  io::save_safetensors(f / "model-2.safetensors", {{"b", ones({3})}});
  write_file(
      f / "model.safetensors.index.json",
      R"({"metadata":{},"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})");
  CHECK(io::load_tensors(f / "model.safetensors.index.json").size() == 2);
  auto load = [&](const std::string& index) {
    write_file(f / "model.safetensors.index.json", index);
    return io::load_tensors(f / "model.safetensors.index.json");
  };
  auto refused = [&](const std::string& index) {
    return kind_of([&] { load(index); }) == ErrorKind::Io;
  };
  CHECK(refused(R"({"weight_map":{"a":"../secret"}})"));
  CHECK(refused(R"({"weight_map":{"a":"model-2.safetensors"}})"));
  CHECK(refused(R"({"weight_map":{"a":"model-1.safetensors","c":"model-1.safetensors"}})"));
  CHECK(refused(R"({"weight_map":{"a":"model-2.safetensors","a":"model-1.safetensors"}})"));
  // A tensor of two files: the index says which one counts; without it none does.
  io::save_safetensors(f / "model-3.safetensors", {{"a", zeros({2})}, {"c", ones({1})}});
  const NamedTensors both =
      load(R"({"weight_map":{"a":"model-1.safetensors","c":"model-3.safetensors"}})");
  REQUIRE(both.size() == 2);
  CHECK(both[0].second.sum().item() == 2);
  CHECK(refused(R"({"weight_map":{"b":"model-2.safetensors","c":"model-3.safetensors"}})") ==
        false);
  io::save_safetensors(f / "model-4.safetensors", {{"a", zeros({2})}, {"d", ones({1})}});
  CHECK(refused(R"({"weight_map":{"c":"model-3.safetensors","d":"model-4.safetensors"}})"));
}
