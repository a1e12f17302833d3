// See rewrite.h.
#include "compile/rewrite.h"

#include <queue>
#include <tuple>

#include "runtime/backend.h"

namespace ingot {
namespace {

size_t at(int v) { return static_cast<size_t>(v); }

}  // namespace

Rewriter::Rewriter(Graph& g) : g_(g), reads_(g.vals.size()), readers_(g.vals.size()) {
  place_.resize(g.vals.size());
  for (size_t v = 0; v < g.vals.size(); ++v) {
    place_[v] = static_cast<int>(v);
    for (int k = 0; k < g.vals[v].n_in; ++k) read(g.vals[v].in[at(k)], static_cast<int>(v), 1);
  }
}

void Rewriter::read(int v, int reader, int sign) {
  reads_[at(v)] += sign;
  readers_[at(v)] ^= reader;
}

int Rewriter::users(int v) const { return reads_[at(v)] + (*this)[v].output; }

int Rewriter::reader(int v) const { return reads_[at(v)] == 1 ? readers_[at(v)] : -1; }

bool Rewriter::used_once(int v) const { return reads_[at(v)] == 1 && !(*this)[v].output; }

int Rewriter::push(Val v) {
  const int id = static_cast<int>(g_.vals.size());
  v.node = now_ >= 0 ? (*this)[now_].node : v.node;
  g_.vals.push_back(std::move(v));
  reads_.push_back(0);
  readers_.push_back(0);
  place_.push_back(now_ >= 0 ? place_[at(now_)] : id);
  for (int k = 0; k < g_.vals.back().n_in; ++k) read(g_.vals.back().in[at(k)], id, 1);
  unsorted_ = true;
  return id;
}

int Rewriter::compute(Op op, DType type, const Dims& shape, std::initializer_list<int> in,
                      Attributes attrs) {
  Val v;
  v.op = op;
  v.dtype = type;
  v.shape = shape;
  v.device = in.size() ? (*this)[*in.begin()].device : (*this)[now_].device;
  v.attrs = std::move(attrs);
  for (int i : in) v.in[v.n_in++] = i;
  return push(std::move(v));
}

int Rewriter::view(Op op, int of, const Dims& shape, Attributes attrs) {
  return compute(op, (*this)[of].dtype, shape, {of}, std::move(attrs));
}

int Rewriter::cast(int v, DType type) {
  const Val& of = (*this)[v];
  return of.dtype == type ? v : compute(Op::Cast, type, Dims(of.shape), {v});
}

int Rewriter::constant(double x, DType type, const Device& device) {
  const int c = compute(Op::Const, type, {}, {}, ConstAttrs{x});
  edit(c).device = device;
  return c;
}

void Rewriter::set_input(int v, int k, int to) {
  read((*this)[v].in[at(k)], v, -1);
  edit(v).in[at(k)] = to;
  read(to, v, 1);
  unsorted_ = unsorted_ || to >= v;
}

void Rewriter::add_input(int v, int in) {
  Val& val = edit(v);
  val.in[val.n_in++] = in;
  read(in, v, 1);
  unsorted_ = unsorted_ || in >= v;
}

void Rewriter::drop_inputs(int v) {
  const InputList in = (*this)[v].in;
  const size_t n = (*this)[v].n_in;
  edit(v).n_in = 0;
  for (size_t k = 0; k < n; ++k) read(in[k], v, -1);
  // A view that nobody reads any more does not count as a reader of what it looks through.
  for (size_t k = 0; k < n; ++k) {
    const Val& of = (*this)[in[k]];
    if (of.op == Op::Reshape && of.view() && of.n_in > 0 && users(in[k]) == 0) drop_inputs(in[k]);
  }
}

void Rewriter::become(int v, Op op, std::initializer_list<int> in, Attributes attrs) {
  for (int i : in) read(i, v, 1);  // first, so that nothing looks unread in between
  drop_inputs(v);
  Val& val = edit(v);
  val.op = op;
  val.attrs = std::move(attrs);
  val.copied = false;
  val.epilogues = {};
  for (int i : in) {
    val.in[val.n_in++] = i;
    unsorted_ = unsorted_ || i >= v;
  }
}

void Rewriter::replace(int v, int with) {
  Val& to = edit(with);
  to.history = to.history || (*this)[v].history;
  to.node = (*this)[v].node;
  to.output = (*this)[v].output;
  become(v, Op::Reshape, {with});
  edit(v).output = false;
}

// Inputs first again. Values keep their order where they can, and new values precede the value that
// they were made for.
void Rewriter::sort() {
  const size_t n = g_.vals.size();
  std::vector<int> waits(n, 0), id(n, -1);
  std::vector<std::vector<int>> users(n);
  for (size_t i = 0; i < n; ++i)
    for (int k = 0; k < g_.vals[i].n_in; ++k) {
      ++waits[i];
      users[at(g_.vals[i].in[at(k)])].push_back(static_cast<int>(i));
    }
  auto key = [&](int v) { return std::tuple(place_[at(v)], place_[at(v)] == v, v); };
  auto later = [&](int a, int b) { return key(a) > key(b); };
  std::priority_queue<int, std::vector<int>, decltype(later)> ready(later);
  for (size_t i = 0; i < n; ++i)
    if (waits[i] == 0) ready.push(static_cast<int>(i));
  std::vector<Val> sorted;
  sorted.reserve(n);
  while (!ready.empty()) {
    const int v = ready.top();
    ready.pop();
    id[at(v)] = static_cast<int>(sorted.size());
    sorted.push_back(std::move(g_.vals[at(v)]));
    for (int u : users[at(v)])
      if (--waits[at(u)] == 0) ready.push(u);
  }
  if (sorted.size() != n) throw Error(ErrorKind::Internal, "rewrite", "the graph has a cycle");
  for (Val& v : sorted)
    for (int k = 0; k < v.n_in; ++k) v.in[at(k)] = id[at(v.in[at(k)])];
  g_.vals = std::move(sorted);
}

void Rewriter::settle() {
  if (unsorted_) sort();
  drop_dead(g_);
}

Pattern Pattern::as(int number) const {
  Pattern p = *this;
  p.number_ = number;
  return p;
}
Pattern Pattern::once() const {
  Pattern p = *this;
  p.once_ = true;
  return p;
}
Pattern Pattern::commutative() const {
  Pattern p = *this;
  p.commutative_ = true;
  return p;
}
Pattern Pattern::rows() const {
  Pattern p = *this;
  p.rows_ = true;
  return p;
}
Pattern Pattern::where(bool (*accepts)(const Rewriter& r, int v)) const {
  Pattern p = *this;
  p.accepts_ = accepts;
  return p;
}

bool Pattern::matches_inputs(const Rewriter& r, int v, Match& m, bool exchanged) const {
  for (size_t k = 0; k < in_.size(); ++k)
    if (!in_[k].matches(r, r[v].in[exchanged ? 1 - k : k], m)) return false;
  return true;
}

bool Pattern::matches(const Rewriter& r, int v, Match& m) const {
  if (rows_ && r[v].op == Op::Reshape && r[v].n_in == 1) {
    const Val &top = r[v], &of = r[top.in[0]];
    const bool keeps = !top.copied && r.used_once(v) && !top.shape.empty() && !of.shape.empty() &&
                       top.shape.back() == of.shape.back();
    if (!keeps) return false;
    v = top.in[0];
  }
  const Val& val = r[v];
  if (op_ != Op::Count_ && val.op != op_) return false;
  if (static_cast<int>(in_.size()) > val.n_in) return false;
  if (once_ && !r.used_once(v)) return false;
  if (accepts_ && !accepts_(r, v)) return false;
  const Match before = m;
  if (number_ >= 0) m.captured[at(number_)] = v;
  if (matches_inputs(r, v, m, false)) return true;
  if (commutative_) {
    m = before;
    if (number_ >= 0) m.captured[at(number_)] = v;
    if (matches_inputs(r, v, m, true)) return true;
  }
  m = before;
  return false;
}

bool rewrite(Graph& g, std::span<const Rule> rules) {
  std::array<std::vector<const Rule*>, static_cast<size_t>(Op::Count_)> by_op;
  bool possible = false;
  for (const Rule& rule : rules) by_op[static_cast<size_t>(rule.pattern.op())].push_back(&rule);
  for (const Val& v : g.vals) possible = possible || !by_op[static_cast<size_t>(v.op)].empty();
  if (!possible) return false;
  Rewriter r(g);
  bool any = false;
  const int n = static_cast<int>(g.vals.size());
  for (int v = 0; v < n; ++v) {
    if (r.users(v) == 0) continue;
    for (const Rule* rule : by_op[static_cast<size_t>(r[v].op)]) {
      Match m;
      m.root = r.now_ = v;
      if (!rule->pattern.matches(r, v, m) || !rule->apply(r, m)) continue;
      any = true;
      break;
    }
  }
  r.now_ = -1;
  if (any) r.settle();
  return any;
}

LibrarySpec abstract_call(const Graph& g, int v) {
  const Val& val = g.vals[at(v)];
  LibrarySpec s;
  s.op = val.op;
  s.attrs = val.attrs;
  s.epilogues = val.epilogues;
  auto add = [&](DType type, const Dims& shape) {
    s.operands.push_back({type, shape, row_major(shape), 0});
  };
  add(val.dtype, val.shape);
  if (val.epilogues.has(Epilogue::KeepSum)) add(val.dtype, val.shape);
  if (val.epilogues.has(Epilogue::BiasGrad)) add(val.dtype, {val.shape[val.shape.size() - 2]});
  s.written = static_cast<int>(s.operands.size());
  for (int k = 0; k < val.n_in; ++k) {
    const Val& in = g.vals[at(val.in[at(k)])];
    const bool bias = k == 2 && val.epilogues.has(Epilogue::Bias);
    add(in.dtype, bias ? Dims{in.numel()} : in.shape);
  }
  return s;
}

Graph call_alone(const Graph& g, int v) {
  Graph alone;
  const Val& call = g.vals[at(v)];
  alone.vals.push_back(call);
  for (int k = 0; k < call.n_in; ++k) {
    alone.vals.push_back(g.vals[at(call.in[at(k)])]);
    alone.vals[0].in[at(k)] = k + 1;
  }
  return alone;
}

bool takes_epilogue(const Graph& g, int v, Epilogue e, int operand) {
  Backend* backend = backend_for(g.vals[at(v)].device.type());
  if (!backend) return false;
  const Offer plain = backend->best_offer(abstract_call(g, v));
  Graph asked = call_alone(g, v);  // as it would be
  asked.vals[0].epilogues.set(e);
  if (operand >= 0) {
    Val& call = asked.vals[0];
    call.in[call.n_in++] = static_cast<int>(asked.vals.size());
    asked.vals.push_back(g.vals[at(operand)]);
  }
  const Offer with = backend->best_offer(abstract_call(asked, 0));
  return with && with.kernel == plain.kernel;
}

}  // namespace ingot
