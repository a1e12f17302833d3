// Other libraries' memory: the fields of a DLTensor or of a Py_buffer, over memory that is exactly
// as large as they say.
#include <ingot/interop.h>
#include <ingot/ops.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "../../python/src/foreign.h"
#include "targets.h"

namespace ingot::fuzz {
namespace {

using namespace ingot_python;

// Numbers of the input; zeros after its end.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  template <class T>
  T take() {
    T v{};
    const size_t n = std::min(sizeof v, size_);
    if (n) std::memcpy(&v, data_, n);
    data_ += n, size_ -= n;
    return v;
  }
  // Mostly small ones.
  int64_t size() {
    const auto small = take<int8_t>();
    return small == -128 ? take<int64_t>() : small;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

constexpr int kMost = kMaxDims + 2;  // more than there may be
constexpr size_t kBytes = size_t{1} << 20;

struct Fields {
  int ndim = 0;
  std::array<int64_t, kMost> shape{}, strides{};
  bool has_shape = true, has_strides = true, copy = false;
  int64_t* sizes() { return has_shape ? shape.data() : nullptr; }
  int64_t* steps() { return has_strides ? strides.data() : nullptr; }
};

Fields fields(Input& in) {
  Fields f;
  const auto flags = in.take<uint8_t>();
  f.has_shape = !(flags & 1), f.has_strides = !(flags & 2), f.copy = flags & 4;
  f.ndim = in.take<int8_t>();
  for (int i = 0; i < std::min(f.ndim, kMost); ++i) f.shape[static_cast<size_t>(i)] = in.size();
  for (int i = 0; i < std::min(f.ndim, kMost); ++i) f.strides[static_cast<size_t>(i)] = in.size();
  return f;
}

// The bytes before and from the first element on that an array reaches. Nothing for an array that
// there cannot be.
struct Reach {
  __int128 before = 0, after = 0;
};
std::optional<Reach> reach_of(const ForeignArray& a) {
  Reach r{0, static_cast<__int128>(size_of(a.dtype))};
  __int128 step = r.after, count = 1;
  for (int i = a.shape.size() - 1; i >= 0; --i) {
    if (a.shape[i] < 0 || count > (__int128{1} << 60)) return {};
    if (a.shape[i] == 0) return Reach{};
    const __int128 over =
        static_cast<__int128>(a.shape[i] - 1) * (a.strides ? (*a.strides)[i] : step);
    (over < 0 ? r.before : r.after) += over < 0 ? -over : over;
    step *= a.shape[i], count *= a.shape[i];
  }
  return r;
}

// Is it an array somewhere in the address space? Then it may be read, and nothing is there.
bool might_be_there(const ForeignArray& a, const Reach& r) {
  const auto first = static_cast<__int128>(reinterpret_cast<uintptr_t>(a.data));
  return first > r.before && first + r.after <= static_cast<__int128>(UINTPTR_MAX);
}

// The elements in row-major order, taken one by one.
std::vector<uint8_t> elements(const ForeignArray& a) {
  const size_t size = size_of(a.dtype), count = static_cast<size_t>(a.shape.numel());
  std::vector<uint8_t> all(count * size);
  for (size_t n = 0; n < count; ++n) {
    const auto* p = static_cast<const uint8_t*>(a.data);
    int64_t left = static_cast<int64_t>(n), step = static_cast<int64_t>(size);
    for (int i = a.shape.size() - 1; i >= 0; --i) {
      p += left % a.shape[i] * (a.strides ? (*a.strides)[i] : step);
      left /= a.shape[i], step *= a.shape[i];
    }
    std::memcpy(all.data() + n * size, p, size);
    if (a.dtype == DType::Bool) all[n] = all[n] != 0;
  }
  return all;
}

void require(bool right) {
  if (!right) std::abort();
}

// Taken as a tensor, an array is its elements, and is given back once.
void check_taken(const ForeignArray& a, bool copy, int& released) {
  const Tensor t = from_foreign(a, copy, [&] { ++released; });
  require(t.shape() == a.shape && t.dtype() == a.dtype);
  std::vector<uint8_t> bytes(static_cast<size_t>(t.numel()) * size_of(t.dtype()));
  t.copy_to(bytes.data());
  require(bytes == elements(a));
}

void take_array(ForeignArray a, bool copy) {
  const MemoryLimit small(size_t{4} << 20);
  int released = 0;
  const std::optional<Reach> reach = reach_of(a);
  std::vector<uint8_t> memory;
  if (reach && reach->before + reach->after <= static_cast<__int128>(kBytes)) {
    memory.resize(static_cast<size_t>(reach->before + reach->after));
    for (size_t i = 0; i < memory.size(); ++i)
      memory[i] = static_cast<uint8_t>(i % 251 < 200 ? i & 1 : i);
    if (a.data) a.data = memory.data() + reach->before;
  } else if (reach && might_be_there(a, *reach)) {
    return;
  }
  try {
    check_taken(a, copy, released);
  } catch (const Error&) {
    require(released == 1);
    throw;
  }
  require(released == 1);
}

void take_dlpack(Input& in) {
  DLTensor t{};
  t.dtype = {in.take<uint8_t>(), in.take<uint8_t>(), in.take<uint16_t>()};
  t.device = {in.take<int8_t>(), static_cast<int32_t>(in.size())};
  t.byte_offset = static_cast<uint64_t>(in.size());
  t.data = reinterpret_cast<void*>(static_cast<uintptr_t>(in.size()));
  Fields f = fields(in);
  t.ndim = f.ndim, t.shape = f.sizes(), t.strides = f.steps();
  take_array(foreign_array(t), f.copy);
}

void take_buffer(Input& in) {
  std::array<char, 4> format{};
  for (size_t i = 0; i < 3; ++i) format[i] = in.take<char>();
  HostBuffer b{};
  b.format = format[0] ? format.data() : nullptr;
  b.item_bytes = in.size(), b.bytes = in.size();
  b.data = reinterpret_cast<void*>(static_cast<uintptr_t>(in.size()));
  Fields f = fields(in);
  b.ndim = f.ndim, b.shape = f.sizes(), b.strides = f.steps();
  take_array(foreign_array(b), f.copy);
}

}  // namespace

void buffers(const uint8_t* data, size_t size) {
  Input in(data, size);
  in.take<uint8_t>() & 1 ? take_buffer(in) : take_dlpack(in);
}

}  // namespace ingot::fuzz
