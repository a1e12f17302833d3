// See pickle.h. Opcodes are named in the comments as in Python's pickletools.
#include "io/pickle.h"

#include <algorithm>

namespace ingot::io {

using Kind = PickleValue::Kind;

Pickle::Pickle(Bytes data, const char* op, const std::string& path, const SourceLoc& loc)
    : in_(data, op, path, loc) {
  run();
}

void Pickle::refuse(const std::string& what) {
  in_.fail("its pickle holds " + what + ", which is not read here: nothing in the file is executed",
           "save a plain dict of tensors: torch.save(model.state_dict(), path)");
}

uint32_t Pickle::make(PickleValue v) {
  values_.push_back(std::move(v));
  stack_.push_back(static_cast<uint32_t>(values_.size() - 1));
  return stack_.back();
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
  if (at == memo_.end()) in_.fail("its pickle is damaged: it names a value that is not there");
  return at->second;
}

void Pickle::tuple(size_t n) {
  PickleValue v{.kind = Kind::Tuple};
  for (size_t i = 0; i < n; ++i) v.items.push_back(pop());
  std::reverse(v.items.begin(), v.items.end());
  make(std::move(v));
}

void Pickle::text(size_t n, Kind kind) {
  Bytes b = in_.take(n);
  make({.kind = kind, .text = std::string(b.begin(), b.end())});
}

void Pickle::append(const std::vector<uint32_t>& items) {
  uint32_t list = pop();
  if (values_[list].kind != Kind::List) refuse("an append to something else than a list");
  values_[list].items.insert(values_[list].items.end(), items.begin(), items.end());
  stack_.push_back(list);
}

void Pickle::set_items(const std::vector<uint32_t>& items) {
  uint32_t dict = pop();
  if (values_[dict].kind != Kind::Dict || items.size() % 2) refuse("items set in something else than a dict");
  values_[dict].items.insert(values_[dict].items.end(), items.begin(), items.end());
  stack_.push_back(dict);
}

void Pickle::global(std::string name) { make({.kind = Kind::Global, .text = std::move(name)}); }

// ('storage', torch.FloatStorage, '0', 'cpu', 12)
void Pickle::persistent_id() {
  const PickleValue t = values_[pop()];
  if (t.kind != Kind::Tuple || t.items.size() < 5 || values_[t.items[0]].text != "storage" ||
      values_[t.items[2]].kind != Kind::Text)
    refuse("a reference to something else than a tensor's storage");
  const PickleValue& type = values_[t.items[1]];
  if (type.kind != Kind::Global || type.text.rfind("torch ", 0) != 0) refuse("a storage of an unknown kind");
  PickleValue v{.kind = Kind::Storage};
  v.text = values_[t.items[2]].text;
  v.type = type.text.substr(6);
  make(std::move(v));
}

std::vector<int64_t> Pickle::numbers(uint32_t id) {
  const PickleValue& t = values_[id];
  if (t.kind != Kind::Tuple) refuse("a tensor with sizes that are not a tuple");
  std::vector<int64_t> v;
  for (uint32_t i : t.items) {
    if (values_[i].kind != Kind::Int) refuse("a tensor with a size that is not a number");
    v.push_back(values_[i].integer);
  }
  return v;
}

// _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks, ...)
uint32_t Pickle::rebuild_tensor(const PickleValue& a) {
  if (a.items.size() < 4 || values_[a.items[0]].kind != Kind::Storage ||
      values_[a.items[1]].kind != Kind::Int)
    refuse("a tensor of an unknown kind");
  PickleValue v{.kind = Kind::Tensor};
  v.items = {a.items[0]};
  v.integer = values_[a.items[1]].integer;
  v.shape = numbers(a.items[2]);
  v.stride = numbers(a.items[3]);
  if (v.shape.size() != v.stride.size()) refuse("a tensor with as many strides as it has not dims");
  return make(std::move(v));
}

void Pickle::reduce() {
  const PickleValue arguments = values_[pop()], f = values_[pop()];
  if (f.kind != Kind::Global || arguments.kind != Kind::Tuple)
    refuse("a call of something that is not a function");
  if (f.text == "torch._utils _rebuild_tensor_v2" || f.text == "torch._utils _rebuild_tensor") {
    rebuild_tensor(arguments);
  } else if (f.text == "torch._utils _rebuild_parameter" && !arguments.items.empty()) {
    stack_.push_back(arguments.items[0]);
  } else if (f.text == "collections OrderedDict") {
    PickleValue d{.kind = Kind::Dict};
    // The form of old pickles: a list of pairs.
    if (!arguments.items.empty())
      for (uint32_t pair : values_[arguments.items[0]].items) {
        if (values_[pair].items.size() != 2) refuse("an ordered dict of an unknown form");
        d.items.insert(d.items.end(), values_[pair].items.begin(), values_[pair].items.end());
      }
    make(std::move(d));
  } else if (f.text == "torch Size" && !arguments.items.empty()) {
    stack_.push_back(arguments.items[0]);
  } else if (!plain_call(f.text, arguments)) {
    refuse("a call of " + f.text.substr(0, 120));
  }
}

// The bytes that a text of characters below 256 stands for.
std::string Pickle::latin1(const std::string& utf8) {
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
bool Pickle::plain_call(const std::string& f, const PickleValue& arguments) {
  auto argument = [&](size_t i, Kind kind) {
    return i < arguments.items.size() && values_[arguments.items[i]].kind == kind;
  };
  if (f == "collections defaultdict") {
    make({.kind = Kind::Dict});
  } else if (f == "_codecs encode" && argument(0, Kind::Text) && argument(1, Kind::Text) &&
             values_[arguments.items[1]].text == "latin1") {  // bytes in protocol 2
    std::string bytes = latin1(values_[arguments.items[0]].text);
    make({.kind = Kind::Binary, .text = std::move(bytes)});
  } else if ((f == "__builtin__ bytes" || f == "builtins bytes") && arguments.items.empty()) {
    make({.kind = Kind::Binary});
  } else if ((f == "__builtin__ set" || f == "builtins set") && argument(0, Kind::List)) {
    std::vector<uint32_t> items = values_[arguments.items[0]].items;
    make({.kind = Kind::Tuple, .type = "set", .items = std::move(items)});
  } else if (f == "torch device" && argument(0, Kind::Text)) {
    std::string name = values_[arguments.items[0]].text;
    if (argument(1, Kind::Int)) name += ":" + std::to_string(values_[arguments.items[1]].integer);
    make({.kind = Kind::Text, .text = std::move(name)});
  } else {
    return false;
  }
  return true;
}

// NEWOBJ: of the classes only argparse's, which holds names and values as a dict does.
void Pickle::new_object() {
  uint32_t arguments = pop(), type = pop();
  if (values_[type].kind != Kind::Global || values_[type].text != "argparse Namespace" ||
      !values_[arguments].items.empty())
    refuse("an object of " + values_[type].text.substr(0, 120));
  make({.kind = Kind::Dict, .type = "Namespace"});
}

// Attributes set on an ordered dict (a module's state_dict carries its versions so) are passed over.
void Pickle::build() {
  uint32_t state = pop(), object = pop();
  if (values_[object].kind != Kind::Dict) refuse("an object with a state of its own");
  stack_.push_back(object);
  if (values_[object].type != "Namespace") return;
  if (values_[state].kind != Kind::Dict || state == object) refuse("a namespace of an unknown form");
  std::vector<uint32_t> items = values_[state].items;
  set_items(items);
}

// Values that stand by themselves.
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

// What moves values about.
bool Pickle::stack(uint8_t op) {
  auto top = [&] {
    uint32_t id = pop();
    stack_.push_back(id);
    return id;
  };
  switch (op) {
    case 'q':
      memo_[in_.u8()] = top();
      return true;  // BINPUT
    case 'r':
      memo_[in_.u32()] = top();
      return true;  // LONG_BINPUT
    case 0x94:
      memo_[memo_.size()] = top();
      return true;  // MEMOIZE
    case 'h':
      stack_.push_back(memo(in_.u8()));
      return true;  // BINGET
    case 'j':
      stack_.push_back(memo(in_.u32()));
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
    std::string s;
    for (uint8_t c = in_.u8(); c != '\n'; c = in_.u8()) s += static_cast<char>(c);
    return s;
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
      std::string module = line();
      return global(module + " " + line());
    }
    case 0x93: {  // STACK_GLOBAL
      std::string name = values_[pop()].text, module = values_[pop()].text;
      return global(module + " " + name);
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

void Pickle::run() {
  while (!stopped_) {
    if (values_.size() > 50'000'000) in_.fail("its pickle holds too many values");
    step(in_.u8());
  }
}

}  // namespace ingot::io
