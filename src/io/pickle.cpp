// See pickle.h. Opcodes are named in the comments as in Python's pickletools.
#include "io/pickle.h"

namespace ingot::io {

using Kind = PickleValue::Kind;

namespace {

constexpr size_t kMemoBytes = 64;  // of an entry of the memo, about

std::string_view view(Bytes b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

}  // namespace

Pickle::Pickle(Bytes data, Budget& budget, const char* op, const std::string& path,
               const SourceLoc& loc)
    : in_(data, op, path, loc), budget_(budget) {
  while (!stopped_) step(in_.u8());
}

void Pickle::refuse(const std::string& what) {
  in_.fail("its pickle holds " + what + ", which is not read here: nothing in the file is executed",
           "save a plain dict of tensors: torch.save(model.state_dict(), path)");
}

uint32_t Pickle::make(PickleValue v) {
  // Vectors grow by doubling: while one moves, half as much again is in use.
  budget_.take(3 * sizeof(PickleValue) / 2 + 2 * sizeof(uint32_t) * v.items.size());
  if (values_.size() >= 0xffffffff) in_.fail("its pickle holds too many values");
  values_.push_back(std::move(v));
  push(static_cast<uint32_t>(values_.size() - 1));
  return stack_.back();
}

void Pickle::push(uint32_t id) {
  if (stack_.size() == stack_.capacity()) budget_.take((stack_.capacity() + 64) * sizeof id);
  stack_.push_back(id);
}

uint32_t Pickle::pop() {
  if (stack_.empty() || values_[stack_.back()].kind == Kind::Mark)
    in_.fail("its pickle is damaged: a value is missing");
  uint32_t id = stack_.back();
  stack_.pop_back();
  return id;
}

std::vector<uint32_t> Pickle::pop_to_mark() {
  size_t at = stack_.size();
  while (at > 0 && values_[stack_[at - 1]].kind != Kind::Mark) --at;
  if (at == 0) in_.fail("its pickle is damaged: a mark is missing");
  std::vector<uint32_t> items(stack_.begin() + static_cast<std::ptrdiff_t>(at), stack_.end());
  stack_.resize(at - 1);
  return items;
}

uint32_t Pickle::memo(uint64_t key) const {
  auto at = memo_.find(key);
  if (at == memo_.end()) in_.fail("its pickle is damaged: it names a value that does not exist");
  return at->second;
}

void Pickle::remember(uint64_t key) {
  const uint32_t id = pop();
  push(id);
  if (memo_.insert_or_assign(key, id).second) budget_.take(kMemoBytes);
}

void Pickle::tuple(size_t n) {
  PickleValue v{.kind = Kind::Tuple};
  v.items.resize(n);
  for (size_t i = n; i-- > 0;) v.items[i] = pop();
  make(std::move(v));
}

void Pickle::text(size_t n, Kind kind) { make({.kind = kind, .text = view(in_.take(n))}); }

std::string_view Pickle::keep(std::string text) {
  budget_.take(text.size() + sizeof(std::string));
  texts_.push_back(std::move(text));
  return texts_.back();
}

void Pickle::extend(uint32_t target, const uint32_t* items, size_t count) {
  budget_.take(count, 2 * sizeof(uint32_t));
  values_[target].items.insert(values_[target].items.end(), items, items + count);
}

void Pickle::append(const std::vector<uint32_t>& items) {
  const uint32_t list = pop();
  if (values_[list].kind != Kind::List) refuse("an append to something else than a list");
  extend(list, items.data(), items.size());
  push(list);
}

void Pickle::set_items(const std::vector<uint32_t>& items) {
  const uint32_t dict = pop();
  if (values_[dict].kind != Kind::Dict || items.size() % 2)
    refuse("items set in something else than a dict");
  extend(dict, items.data(), items.size());
  push(dict);
}

void Pickle::global(std::string_view module, std::string_view name) {
  // All known names have fewer than 100 bytes; any other is refused as soon as it is
  // called.
  make({.kind = Kind::Global,
        .text = keep(std::string(module.substr(0, 200)) + " " + std::string(name.substr(0, 200)))});
}

// ('storage', torch.FloatStorage, '0', 'cpu', 12)
void Pickle::persistent_id() {
  const PickleValue& t = values_[pop()];
  if (t.kind != Kind::Tuple || t.items.size() < 5 || values_[t.items[0]].text != "storage" ||
      values_[t.items[2]].kind != Kind::Text)
    refuse("a reference to something else than a tensor's storage");
  const PickleValue& type = values_[t.items[1]];
  if (type.kind != Kind::Global || type.text.rfind("torch ", 0) != 0)
    refuse("a storage of an unknown kind");
  PickleValue v{.kind = Kind::Storage, .integer = t.items[1]};
  v.text = values_[t.items[2]].text;
  make(std::move(v));
}

void Pickle::check_numbers(uint32_t id) {
  const PickleValue& t = values_[id];
  if (t.kind != Kind::Tuple) refuse("a tensor with sizes that are not a tuple");
  if (t.items.size() > 64) refuse("a tensor with " + std::to_string(t.items.size()) + " dims");
  for (uint32_t i : t.items)
    if (values_[i].kind != Kind::Int) refuse("a tensor with a size that is not a number");
}

std::vector<int64_t> Pickle::numbers(uint32_t id) const {
  std::vector<int64_t> v;
  for (uint32_t i : values_[id].items) v.push_back(values_[i].integer);
  return v;
}

// _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks, ...)
void Pickle::rebuild_tensor(uint32_t arguments) {
  const std::vector<uint32_t>& a = values_[arguments].items;
  if (a.size() < 4 || values_[a[0]].kind != Kind::Storage || values_[a[1]].kind != Kind::Int)
    refuse("a tensor of an unknown kind");
  check_numbers(a[2]);
  check_numbers(a[3]);
  if (values_[a[2]].items.size() != values_[a[3]].items.size())
    refuse("a tensor whose strides do not match its dims");
  make({.kind = Kind::Tensor, .integer = values_[a[1]].integer, .items = {a[0], a[2], a[3]}});
}

// The form of old pickles: a list of pairs.
void Pickle::ordered_dict(uint32_t arguments) {
  const bool given = !values_[arguments].items.empty();
  const uint32_t list = given ? values_[arguments].items[0] : 0, dict = make({.kind = Kind::Dict});
  const size_t count = given ? values_[list].items.size() : 0;
  budget_.take(count, 4 * sizeof(uint32_t));
  values_[dict].items.reserve(2 * count);
  for (size_t i = 0; i < count; ++i) {
    const std::vector<uint32_t>& pair = values_[values_[list].items[i]].items;
    if (pair.size() != 2) refuse("an ordered dict of an unknown form");
    values_[dict].items.insert(values_[dict].items.end(), pair.begin(), pair.end());
  }
}

void Pickle::reduce() {
  const uint32_t arguments = pop(), f = pop();
  const std::string_view name = values_[f].text;
  if (values_[f].kind != Kind::Global || values_[arguments].kind != Kind::Tuple)
    refuse("a call of something that is not a function");
  const bool any = !values_[arguments].items.empty();
  if (name == "torch._utils _rebuild_tensor_v2" || name == "torch._utils _rebuild_tensor")
    rebuild_tensor(arguments);
  else if ((name == "torch._utils _rebuild_parameter" || name == "torch Size") && any)
    push(values_[arguments].items[0]);
  else if (name == "collections OrderedDict")
    ordered_dict(arguments);
  else if (!plain_call(name, arguments))
    refuse("a call of " + std::string(name.substr(0, 120)));
}

// The bytes that a string of characters below 256 encodes.
std::string Pickle::latin1(std::string_view utf8) {
  std::string out;
  for (size_t i = 0; i < utf8.size(); ++i) {
    auto c = static_cast<uint8_t>(utf8[i]);
    if (c >= 0x80) {
      if (c > 0xc3 || i + 1 == utf8.size()) refuse("bytes of an unknown form");
      c = static_cast<uint8_t>(c << 6 | (static_cast<uint8_t>(utf8[++i]) & 0x3f));
    }
    out += static_cast<char>(c);
  }
  return out;
}

// Calls that make plain values.
bool Pickle::plain_call(std::string_view f, uint32_t arguments) {
  auto argument = [&](size_t i, Kind kind) {
    const std::vector<uint32_t>& items = values_[arguments].items;
    return i < items.size() && values_[items[i]].kind == kind;
  };
  auto value = [&](size_t i) -> const PickleValue& { return values_[values_[arguments].items[i]]; };
  if (f == "collections defaultdict") {
    make({.kind = Kind::Dict});
  } else if (f == "_codecs encode" && argument(0, Kind::Text) && argument(1, Kind::Text) &&
             value(1).text == "latin1") {  // bytes in protocol 2
    make({.kind = Kind::Binary, .text = keep(latin1(value(0).text))});
  } else if ((f == "__builtin__ bytes" || f == "builtins bytes") &&
             values_[arguments].items.empty()) {
    make({.kind = Kind::Binary});
  } else if ((f == "__builtin__ set" || f == "builtins set") && argument(0, Kind::List)) {
    budget_.take(value(0).items.size(), 2 * sizeof(uint32_t));
    make({.kind = Kind::Tuple, .special = true, .items = value(0).items});
  } else if (f == "torch device" && argument(0, Kind::Text)) {
    std::string name(value(0).text.substr(0, 40));
    if (argument(1, Kind::Int)) name += ":" + std::to_string(value(1).integer);
    make({.kind = Kind::Text, .text = keep(std::move(name))});
  } else {
    return false;
  }
  return true;
}

// NEWOBJ: of the classes only argparse's, which holds names and values as a dict does.
void Pickle::new_object() {
  const uint32_t arguments = pop(), type = pop();
  if (values_[type].kind != Kind::Global || values_[type].text != "argparse Namespace" ||
      !values_[arguments].items.empty())
    refuse("an object of " + std::string(values_[type].text.substr(0, 120)));
  make({.kind = Kind::Dict, .special = true});
}

// Attributes set on an ordered dict (a module's state_dict keeps its versions there) are ignored.
void Pickle::build() {
  const uint32_t state = pop(), object = pop();
  if (values_[object].kind != Kind::Dict) refuse("an object with state");
  push(object);
  if (!values_[object].special) return;
  if (values_[state].kind != Kind::Dict || state == object)
    refuse("a namespace of an unknown form");
  extend(object, values_[state].items.data(), values_[state].items.size());
}

// Plain values.
bool Pickle::simple(uint8_t op) {
  switch (op) {
    case 'N':
      make({});
      return true;
    case 0x88:
    case 0x89:
      make({.kind = Kind::Bool, .integer = op == 0x88});
      return true;  // NEWTRUE, NEWFALSE
    case 'K':
      make({.kind = Kind::Int, .integer = in_.u8()});
      return true;  // BININT1
    case 'M':
      make({.kind = Kind::Int, .integer = in_.u16()});
      return true;  // BININT2
    case 'J':
      make({.kind = Kind::Int, .integer = static_cast<int32_t>(in_.u32())});
      return true;
    case 0x8a: {  // LONG1: two's complement, little-endian
      Bytes b = in_.take(in_.u8());
      if (b.size() > 8) refuse("a number of more than 64 bits");
      uint64_t v = !b.empty() && b.back() & 0x80 ? ~uint64_t{0} : 0;
      for (size_t i = b.size(); i-- > 0;) v = v << 8 | b[i];
      make({.kind = Kind::Int, .integer = static_cast<int64_t>(v)});
      return true;
    }
    case 'G': {  // BINFLOAT: big-endian
      uint64_t bits = 0;
      for (uint8_t b : in_.take(8)) bits = bits << 8 | b;
      make({.kind = Kind::Float, .integer = static_cast<int64_t>(bits)});
      return true;
    }
    case 'X':
      text(in_.u32());
      return true;  // BINUNICODE
    case 0x8c:
      text(in_.u8());
      return true;  // SHORT_BINUNICODE
    case 'B':
      text(in_.u32(), Kind::Binary);
      return true;  // BINBYTES
    case 'C':
      text(in_.u8(), Kind::Binary);
      return true;  // SHORT_BINBYTES
    case ')':
      make({.kind = Kind::Tuple});
      return true;
    case ']':
      make({.kind = Kind::List});
      return true;
    case '}':
      make({.kind = Kind::Dict});
      return true;
    case '(':
      make({.kind = Kind::Mark});
      return true;
    default:
      return false;
  }
}

// Instructions that move values.
bool Pickle::stack(uint8_t op) {
  switch (op) {
    case 'q':
      remember(in_.u8());
      return true;  // BINPUT
    case 'r':
      remember(in_.u32());
      return true;  // LONG_BINPUT
    case 0x94:
      remember(memo_.size());
      return true;  // MEMOIZE
    case 'h':
      push(memo(in_.u8()));
      return true;  // BINGET
    case 'j':
      push(memo(in_.u32()));
      return true;  // LONG_BINGET
    case '0':
      pop();
      return true;  // POP
    case 0x85:
    case 0x86:
    case 0x87:
      tuple(op - 0x84u);
      return true;
    case 't':
      make({.kind = Kind::Tuple, .items = pop_to_mark()});
      return true;
    case 'l':
      make({.kind = Kind::List, .items = pop_to_mark()});
      return true;
    case 'a':
      append({pop()});
      return true;
    case 'e':
      append(pop_to_mark());
      return true;
    case 's': {
      uint32_t value = pop(), key = pop();
      set_items({key, value});
      return true;
    }
    case 'u':
      set_items(pop_to_mark());
      return true;
    default:
      return false;
  }
}

void Pickle::step(uint8_t op) {
  auto line = [&] {
    const size_t begin = in_.at();
    while (in_.u8() != '\n') {
    }
    const size_t end = in_.at();
    in_.seek(begin);
    return view(in_.take(end - begin)).substr(0, end - begin - 1);
  };
  if (simple(op) || stack(op)) return;
  switch (op) {
    case 0x80:
      in_.u8();
      return;  // PROTO
    case 0x95:
      in_.take(8);
      return;  // FRAME
    case 'c': {
      const std::string_view module = line();
      return global(module, line());
    }
    case 0x93: {  // STACK_GLOBAL
      const std::string_view name = values_[pop()].text;
      return global(values_[pop()].text, name);
    }
    case 'Q':
      return persistent_id();
    case 'R':
      return reduce();
    case 0x81:
      return new_object();
    case 'b':
      return build();
    case '.':
      root_ = pop();
      stopped_ = true;
      return;
    default:
      refuse("the instruction " + std::to_string(op));
  }
}

}  // namespace ingot::io
