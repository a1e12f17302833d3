// The steps of a recurrent layer as one op, and their gradient as another (graph/ops.def): a call
// where the backend offers one, else decomposed step by step. Backwards through time only the
// cell's gradient and one product are left for each step; the recurrent weight's gradient is one
// product over all steps instead of a sum of one for each. Where the gradient needs a history
// itself, the steps are recorded again, and everything below is differentiable.
#include "graph/lift.h"
#include "ingot/autograd.h"
#include "ingot/ops.h"
#include "ops/composed.h"
#include "ops/recurrent_cells.h"

namespace ingot {
namespace {

Tensor select_part(const Tensor& t, int64_t i, int64_t H) { return t.narrow(-1, i * H, H); }

struct Given {
  const RecurrentCell& cell;
  Tensor z, h0, c0, weight, bias;  // without c0 or bias where the cell has none
  bool reverse;
  SourceLoc loc;

  int64_t steps() const { return z.size(0); }
  int64_t width() const { return weight.size(1); }
  /// What the cell computes in, and keeps its c in: values in 16 bits are sums of many steps
  /// otherwise.
  DType wide() const { return compute_type(z.dtype()); }
  int64_t at(int64_t i) const { return reverse ? steps() - 1 - i : i; }
  RecurrentAttrs attrs() const { return {reverse, cell.kind == RnnKind::Relu}; }
  std::vector<Tensor> operands() const {
    std::vector<Tensor> all{z, weight, h0};
    if (cell.has_c) all.push_back(c0);
    if (cell.has_bias) all.push_back(bias);
    return all;
  }
};

Given given_of(const RecurrentCell& cell, const std::vector<Tensor>& in, bool reverse,
               const SourceLoc& loc) {
  return {cell,    in[0],
          in[2],   cell.has_c ? in[3] : Tensor(),
          in[1],   cell.has_bias ? in.back() : Tensor(),
          reverse, loc};
}

Tensor zeros_of_steps(const Given& k, int64_t width, DType type) {
  return zeros({k.steps(), k.z.size(1), width}, {type, k.z.device()});
}

// What the call gives: h of all steps, what the gradient reads, c of all steps.
struct Walked {
  Tensor all, kept, c;
};

Walked walk(const Given& k) {
  const int64_t H = k.width();
  Walked w{zeros_of_steps(k, H, k.z.dtype()), {}, {}};
  if (k.cell.keeps_gates()) w.kept = zeros_of_steps(k, k.cell.kept * H, k.z.dtype());
  if (k.cell.has_c) w.c = zeros_of_steps(k, H, k.wide());
  Tensor h = k.h0, c = k.cell.has_c ? k.c0.to(k.wide()) : Tensor();
  for (int64_t i = 0; i < k.steps(); ++i) {
    // Gate by gate, so that the sums are not stored.
    const Tensor z = k.z.select(0, k.at(i)), r = linear(h, k.weight);
    CellInputs in{{}, {}, h.to(k.wide()), c, k.cell.has_bias ? k.bias.to(k.wide()) : Tensor()};
    for (int64_t g = 0; g < k.cell.gates(); ++g) {
      in.z.push_back(select_part(z, g, H).to(k.wide()));
      in.product.push_back(select_part(r, g, H).to(k.wide()));
    }
    const CellResults s = k.cell.step(in);
    h = s.h.to(k.z.dtype());
    w.all = put_step(w.all, h, k.at(i), k.loc);
    if (w.kept.defined()) w.kept = put_step(w.kept, cat(s.kept, 1).to(k.z.dtype()), k.at(i), k.loc);
    if (!w.c.defined()) continue;
    c = s.c;
    w.c = put_step(w.c, c, k.at(i), k.loc);
  }
  return w;
}

struct Gradients {
  Tensor kept;  // in the place of what was kept
  Tensor dh, dc;
};

// From the last step to the first. `kept`: what walk() gave, or h of all steps.
Gradients walk_back(const RecurrentCell& cell, const Tensor& kept, const Tensor& all,
                    const Tensor& h0, const Tensor& c, const Tensor& c0, const Tensor& weight,
                    const Tensor& top, const Tensor& last_dc, bool reverse, const SourceLoc& loc) {
  const int64_t T = kept.size(0), H = weight.size(1);
  const DType narrow = kept.dtype(), wide = compute_type(narrow);
  auto at = [&](int64_t i) { return reverse ? T - 1 - i : i; };
  auto step = [&](const Tensor& t, int64_t i) { return t.select(0, at(i)).to(wide); };
  Gradients g{zeros(kept.shape(), {narrow, kept.device()}), {}, last_dc};
  if (cell.has_c) g.dc = last_dc.to(wide);
  for (int64_t i = T - 1; i >= 0; --i) {
    CellGradInputs in;
    for (int64_t n = 0; n < cell.kept; ++n) in.kept.push_back(select_part(step(kept, i), n, H));
    if (all.defined()) {
      in.h = step(all, i);
      in.h_before = i > 0 ? step(all, i - 1) : h0.to(wide);
    }
    if (cell.has_c) {
      in.c = step(c, i);
      in.c_before = i > 0 ? step(c, i - 1) : c0.to(wide);
      in.dc = g.dc;
    }
    in.dh = g.dh.defined() ? step(top, i) + g.dh : step(top, i);
    const CellGradients d = cell.back(in);
    const Tensor rows = cat(d.kept, 1).to(narrow);
    g.kept = put_step(g.kept, rows, at(i), loc);
    Tensor product = rows;
    if (cell.gates() != cell.kept) {
      std::vector<Tensor> parts;
      for (int n : cell.product) parts.push_back(select_part(rows, n, H));
      product = cat(parts, 1);
    }
    g.dh = matmul(product, weight).to(wide);
    if (d.dh.defined()) g.dh = g.dh + d.dh;
    g.dc = d.dc;
  }
  return g;
}

// The h that each step began with, in the order of z.
Tensor states_before(const Given& k, const Tensor& all) {
  const Tensor first = k.h0.unsqueeze(0);
  if (k.steps() == 1) return first;
  const Tensor rest = all.narrow(0, k.reverse ? 1 : 0, k.steps() - 1);
  return k.reverse ? cat({rest, first}, 0) : cat({first, rest}, 0);
}

// One product over all steps for each run of gates that are stored side by side.
Tensor weight_gradient(const Given& k, const Tensor& kept, const Tensor& all) {
  const int64_t H = k.width(), rows = k.steps() * k.z.size(1);
  const Tensor before = states_before(k, all).reshape({rows, H});
  const Tensor flat = kept.reshape({rows, kept.size(2)});
  std::vector<Tensor> parts;
  const std::vector<int>& of = k.cell.product;
  for (size_t g = 0, next = 0; g < of.size(); g = next) {
    for (next = g + 1; next < of.size() && of[next] == of[next - 1] + 1;) ++next;
    const Tensor columns = flat.narrow(1, of[g] * H, static_cast<int64_t>(next - g) * H);
    parts.push_back(matmul(columns.transpose(0, 1), before));
  }
  return parts.size() == 1 ? parts[0] : cat(parts, 0);
}

// In the order of the operands.
std::vector<Tensor> gradients_of(const Given& k, const Gradients& g, const Tensor& all) {
  const int64_t H = k.width();
  std::vector<Tensor> out{g.kept.narrow(2, 0, k.cell.gates() * H), weight_gradient(k, g.kept, all),
                          g.dh.defined() ? g.dh.to(k.h0.dtype()) : Tensor()};
  if (k.cell.has_c) out.push_back(g.dc.defined() ? g.dc.to(k.c0.dtype()) : Tensor());
  if (k.cell.has_bias)
    out.push_back(g.kept.narrow(2, (k.cell.kept - 1) * H, H).sum({0, 1}).to(k.bias.dtype()));
  return out;
}

// ---- As one node

NodeRef call(const Given& k) {
  std::vector<NodeRef> in;
  for (const Tensor& t : k.operands()) in.push_back(node_of(t));
  return record_taking(k.cell.forward, in, {k.attrs()}, k.loc);
}

// By the call, or op by op where each runs at its line, since a call would run before its further
// results are asked for.
Walked forward(const Given& k) {
  Given wide = k;
  if (k.cell.has_c) wide.c0 = k.c0.to(k.wide());
  if (is_eager()) return walk(wide);
  NodeRef node = call(wide);
  Walked w;
  if (k.cell.keeps_gates()) w.kept = result_of(node, 1, k.loc);
  if (k.cell.has_c) w.c = result_of(node, 2, k.loc);
  w.all = lift(std::move(node));
  return w;
}

Gradients backward(const Given& k, const Walked& w, const Tensor& top, const Tensor& dc,
                   bool wants_h, bool wants_c) {
  const Tensor& kept = k.cell.keeps_gates() ? w.kept : w.all;
  const Tensor c0 = k.cell.has_c ? k.c0.to(k.wide()) : Tensor();
  const bool reads_states = k.cell.keeps_gates() && !k.cell.has_c;
  if (is_eager())
    return walk_back(k.cell, kept, reads_states ? w.all : Tensor(), k.h0, w.c, c0, k.weight, top,
                     dc, k.reverse, k.loc);
  std::vector<NodeRef> in{node_of(kept), node_of(k.weight), node_of(top)};
  if (k.cell.has_c) in.insert(in.end(), {node_of(dc), node_of(w.c), node_of(c0)});
  if (reads_states) in.insert(in.end(), {node_of(w.all), node_of(k.h0)});
  NodeRef node = record_taking(k.cell.backward, in, {k.attrs()}, k.loc);
  Gradients g;
  if (wants_h) g.dh = result_of(node, 1, k.loc);
  if (wants_c) g.dc = result_of(node, 2, k.loc);
  g.kept = lift(std::move(node));
  return g;
}

// From all of c the last one, in the type that was given.
Tensor last_c(const Given& k, const Tensor& c) {
  return (c.select(0, k.at(k.steps() - 1)) * 1.0).to(k.c0.dtype());
}

std::vector<Tensor> results_of(const Given& k, const Walked& w) {
  std::vector<Tensor> r{w.all};
  if (k.cell.has_c) r.push_back(last_c(k, w.c));
  return r;
}

}  // namespace

std::vector<Tensor> decompose_recurrent(Op op, const OpSpec& call, const std::vector<Tensor>& in) {
  const SourceLoc loc = user_loc(SourceLoc::current());
  const RecurrentAttrs& a = call.attrs.as<RecurrentAttrs>();
  const RecurrentCell& cell = cell_of(op, a);
  if (op == cell.forward) {
    const Walked w = walk(given_of(cell, in, a.reverse, loc));
    return {w.all, w.kept, w.c};
  }
  Gradients g;
  if (cell.has_c)  // gates, weight, top, dc, c, c0
    g = walk_back(cell, in[0], {}, {}, in[4], in[5], in[1], in[2], in[3], a.reverse, loc);
  else if (cell.keeps_gates())  // gates, weight, top, h, h0
    g = walk_back(cell, in[0], in[3], in[4], {}, {}, in[1], in[2], {}, a.reverse, loc);
  else  // h, weight, top
    g = walk_back(cell, in[0], {}, {}, {}, {}, in[1], in[2], {}, a.reverse, loc);
  return {g.kept, g.dh, g.dc};
}

RecurrentSteps recurrent_steps(const RecurrentCell& cell, const std::vector<Tensor>& operands,
                               bool reverse, const SourceLoc& loc) {
  bool wanted = false;
  for (const Tensor& t : operands) wanted = wanted || t.requires_grad();
  if (!is_grad_enabled() || !wanted) {
    const Given k = given_of(cell, operands, reverse, loc);
    const std::vector<Tensor> r = results_of(k, forward(k));
    return {r[0], cell.has_c ? r[1] : Tensor()};
  }
  const size_t n = operands.size();
  CustomFunction steps(
      [&cell, reverse, loc](FunctionContext& ctx, const std::vector<Tensor>& in) {
        const Given k = given_of(cell, in, reverse, loc);
        const Walked w = forward(k);
        std::vector<Tensor> saved = in;
        saved.push_back(w.all);
        if (w.kept.defined()) saved.push_back(w.kept);
        if (w.c.defined()) saved.push_back(w.c);
        ctx.save_for_backward(saved);
        return results_of(k, w);
      },
      [&cell, n, reverse, loc](FunctionContext& ctx, const std::vector<Tensor>& g) {
        const std::vector<Tensor>& s = ctx.saved();
        const Given k =
            given_of(cell, {s.begin(), s.begin() + static_cast<int64_t>(n)}, reverse, loc);
        const Tensor dc = cell.has_c ? g[1].to(k.wide()) : Tensor();
        if (!is_grad_enabled()) {
          Walked w{s[n], {}, {}};
          size_t next = n + 1;
          if (cell.keeps_gates()) w.kept = s[next++];
          if (cell.has_c) w.c = s[next];
          return gradients_of(k,
                              backward(k, w, g[0], dc, ctx.needs_input_grad(2),
                                       cell.has_c && ctx.needs_input_grad(3)),
                              w.all);
        }
        const Walked w = walk(k);
        const Tensor& kept = cell.keeps_gates() ? w.kept : w.all;
        const Tensor c0 = cell.has_c ? k.c0.to(k.wide()) : Tensor();
        return gradients_of(
            k, walk_back(cell, kept, w.all, k.h0, w.c, c0, k.weight, g[0], dc, reverse, loc),
            w.all);
      },
      info(cell.forward).name);
  const std::vector<Tensor> r = steps(operands, loc);
  return {r[0], cell.has_c ? r[1] : Tensor()};
}

}  // namespace ingot
