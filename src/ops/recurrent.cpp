// LSTM, GRU and plain RNN. The input's products of all steps are one; then all steps are one op
// (ops/recurrent_steps.cpp). With a projection, or in mixed types, they are recorded step by step:
// one product and one fused cell for each, with the outputs written into one tensor.
#include "ops/recurrent.h"

#include "ingot/rnn.h"
#include "ops/autocast.h"
#include "ops/recurrent_cells.h"

namespace ingot {

Tensor put_step(const Tensor& all, const Tensor& value, int64_t step, const SourceLoc& loc) {
  const SliceAttrs region{{step, 0, 0}, {1, 1, 1}};
  Tensor one = value.unsqueeze(0);
  return tensor_of(
      record(Op::SliceAssign, {node_of(all, "rnn", loc), node_of(one, "rnn", loc)}, {region}, loc));
}

RnnState rnn_step(RnnKind kind, const Tensor& z, const RnnState& s, const Tensor& weight_hh,
                  const Tensor& bias_hh) {
  Tensor r = linear(s.h, weight_hh, bias_hh);
  const int64_t H = r.size(-1) / rnn_gates(kind);
  auto part = [&](const Tensor& t, int64_t i) { return t.narrow(-1, i * H, H); };
  if (kind == RnnKind::Lstm) {
    auto sum = [&](int64_t i) { return part(z, i) + part(r, i); };
    Tensor in = sigmoid(sum(0)), forget = sigmoid(sum(1)), fresh = tanh(sum(2)),
           out = sigmoid(sum(3));
    Tensor c = forget * s.c + in * fresh;
    return {out * tanh(c), c};
  }
  if (kind == RnnKind::Gru) {
    Tensor reset = sigmoid(part(z, 0) + part(r, 0)), update = sigmoid(part(z, 1) + part(r, 1));
    Tensor fresh = tanh(part(z, 2) + reset * part(r, 2));
    return {fresh + update * (s.h - fresh), {}};
  }
  Tensor sum = z + r;
  return {kind == RnnKind::Relu ? relu(sum) : tanh(sum), {}};
}

namespace {

struct Call {
  const char* op;
  RnnKind kind;
  const RnnOptions& o;
  SourceLoc loc;
};

struct Weights {
  Tensor ih, hh, bias_ih, bias_hh, hr;  // hr: what projects an output, or undefined
};

struct Run {
  Tensor output;
  RnnState last;
};

// The lengths of sequences, where they differ.
struct Lengths {
  Tensor on;        // [T, N, 1]: which steps belong to their sequence
  Tensor last;      // [1, N, 1]: each one's last step
  Tensor reversed;  // [T N]: rows with each sequence in reverse order, its rest where it was
  bool given() const { return on.defined(); }
};

// Rows [T, N, F] with each sequence in reverse order.
Tensor reverse_sequences(const Tensor& x, const Tensor& order) {
  const Dims shape = x.shape();
  return x.reshape({shape[0] * shape[1], shape[2]}).index_select(0, order).reshape(shape);
}

bool of_one_type(const Tensor& x, const RnnState& s, const Weights& w) {
  if (autocasting()) return true;
  const DType t = x.dtype();
  return w.hh.dtype() == t && w.ih.dtype() == t && s.h.dtype() == t &&
         (!s.c.defined() || s.c.dtype() == t);
}

// What z is at steps behind a sequence's end: the state stays as it is, or what it becomes is not
// looked at.
Tensor idle_after_end(const RecurrentCell& cell, const Tensor& z, const Tensor& on) {
  const int64_t H = z.size(2) / cell.gates();
  std::vector<Tensor> parts;
  for (double v : cell.idle) parts.push_back(full({H}, v, {z.dtype(), z.device()}));
  return where(on, z, cat(parts, 0));
}

// All steps as one op.
Run run_whole(const Call& k, const RecurrentCell& cell, const Tensor& x, const RnnState& s,
              const Weights& w, bool reverse, const Lengths& lengths) {
  const int64_t T = x.size(0), N = x.size(1), H = w.hh.size(1);
  // The biases of the product are added here, once, but for what a gate multiplies.
  Tensor bias = w.bias_ih, inner;
  if (bias.defined() && !cell.has_bias) bias = bias + w.bias_hh;
  if (bias.defined() && cell.has_bias) {
    const int64_t rest = bias.size(0) - H;
    bias = bias + cat({w.bias_hh.narrow(0, 0, rest), zeros({H}, {bias.dtype(), bias.device()})}, 0);
    inner = w.bias_hh.narrow(0, rest, H);
  }
  Tensor z = linear(x.reshape({T * N, x.size(2)}), w.ih, bias).reshape({T, N, w.ih.size(0)});
  if (lengths.given()) z = idle_after_end(cell, z, lengths.on);
  std::vector<Tensor> operands{z, w.hh.to(z.dtype()), s.h.to(z.dtype())};
  if (cell.has_c) operands.push_back(s.c.to(z.dtype()));
  if (cell.has_bias)
    operands.push_back(inner.defined() ? inner.to(z.dtype()) : zeros({H}, {z.dtype(), z.device()}));
  const RecurrentSteps r = recurrent_steps(cell, operands, reverse, k.loc);
  if (!lengths.given()) return {r.all, {r.all.select(0, reverse ? 0 : T - 1), r.c}};
  const Tensor last = r.all.gather(0, lengths.last.expand({1, N, H})).squeeze(0);
  return {where(lengths.on, r.all, 0.0), {last, r.c}};
}

// One layer in one direction.
Run run_layer(const Call& k, const Tensor& x, RnnState s, const Weights& w, bool reverse,
              const Lengths& lengths) {
  const int64_t T = x.size(0), N = x.size(1);
  const RecurrentCell* cell = find_cell(k.kind);
  if (cell && !w.hr.defined() && of_one_type(x, s, w) && T * N * w.ih.size(0) > 0) {
    if (!reverse || !lengths.given()) return run_whole(k, *cell, x, s, w, reverse, lengths);
    Run r = run_whole(k, *cell, reverse_sequences(x, lengths.reversed), s, w, false, lengths);
    r.output = reverse_sequences(r.output, lengths.reversed);
    return r;
  }
  // Step by step. Outputs have the type that the products have (Autocast's); a cell state keeps its
  // own until the end.
  const Tensor z =
      linear(x.reshape({T * N, x.size(2)}), w.ih, w.bias_ih).reshape({T, N, w.ih.size(0)});
  const DType type = z.dtype();
  s.h = s.h.to(type);
  Tensor all = zeros({T, N, w.hh.size(1)}, {type, x.device()});
  for (int64_t i = 0; i < T; ++i) {
    const int64_t t = reverse ? T - 1 - i : i;
    RnnState next = rnn_step(k.kind, z.select(0, t), s, w.hh, w.bias_hh);
    if (w.hr.defined()) next.h = linear(next.h, w.hr);
    next.h = next.h.to(type);
    if (!lengths.given()) {
      s = next;
      all = put_step(all, s.h, t, k.loc);
      continue;
    }
    Tensor on = lengths.on.select(0, t);
    all = put_step(all, where(on, next.h, 0.0), t, k.loc);
    s.h = where(on, next.h, s.h);
    if (next.c.defined()) s.c = where(on, next.c, s.c);
  }
  if (s.c.defined()) s.c = s.c.to(type);
  return {all, s};
}

void check_state(const Call& k, const Tensor& s, const char* name, const Dims& want) {
  if (s.defined() && !(s.shape() == want))
    fail(ErrorKind::Shape, k.op,
         std::string(name) + " must be " + to_string(want) + ", not " + describe(s), k.loc);
}

// The weights of each layer and direction, checked one by one.
std::vector<Weights> weights_of(const Call& k, const std::vector<Tensor>& flat, bool with_bias,
                                int64_t features) {
  const int64_t directions = k.o.bidirectional ? 2 : 1, count = k.o.num_layers * directions;
  if (k.o.num_layers < 1)
    fail(ErrorKind::Value, k.op, "num_layers is " + std::to_string(k.o.num_layers), k.loc,
         "use 1 or more");
  const auto given = static_cast<int64_t>(flat.size());
  int64_t per = with_bias ? 4 : 2;
  const bool projects = k.kind == RnnKind::Lstm && given == (per + 1) * count;
  if (projects) ++per;
  if (given != per * count)
    fail(ErrorKind::Value, k.op,
         "wants " + std::to_string(per * count) + " weights (" + std::to_string(per) +
             " for each of " + std::to_string(k.o.num_layers) + " layers and " +
             std::to_string(directions) + (directions == 1 ? " direction" : " directions") +
             "), not " + std::to_string(flat.size()),
         k.loc);
  for (const Tensor& t : flat) node_of(t, k.op, k.loc);
  const int64_t gates = rnn_gates(k.kind), G = flat[1].dim() == 2 ? flat[1].size(0) : 0,
                H = G / gates, out = flat[1].dim() == 2 ? flat[1].size(1) : 0;
  std::vector<Weights> all;
  for (int64_t i = 0; i < count; ++i) {
    const Tensor* p = &flat[static_cast<size_t>(i * per)];
    Weights w{p[0], p[1], with_bias ? p[2] : Tensor(), with_bias ? p[3] : Tensor(),
              projects ? p[per - 1] : Tensor()};
    const int64_t in = i < directions ? features : out * directions;
    const bool ok =
        w.ih.shape() == Dims{G, in} && w.hh.shape() == Dims{G, out} && H > 0 && G == H * gates &&
        (!with_bias || (w.bias_ih.shape() == Dims{G} && w.bias_hh.shape() == Dims{G})) &&
        (projects ? w.hr.shape() == Dims{out, H} : out == H);
    if (!ok)
      fail(ErrorKind::Shape, k.op,
           "layer " + std::to_string(i / directions) + " wants weights [" + std::to_string(G) +
               ", " + std::to_string(in) + "], [" + std::to_string(G) + ", " + std::to_string(out) +
               "] and biases [" + std::to_string(G) + "], not " + describe(w.ih) + " and " +
               describe(w.hh),
           k.loc);
    all.push_back(w);
  }
  return all;
}

Lengths lengths_of(const Call& k, int64_t T, int64_t N, const Device& device) {
  const std::vector<int64_t>& lengths = k.o.lengths;
  if (lengths.empty()) return {};
  bool ok = static_cast<int64_t>(lengths.size()) == N;
  for (int64_t l : lengths) ok = ok && l >= 1 && l <= T;
  if (!ok)
    fail(ErrorKind::Value, k.op,
         "lengths must be one for each of the " + std::to_string(N) + " sequences, from 1 to " +
             std::to_string(T),
         k.loc);
  const Tensor length = tensor(lengths).to(device).reshape({1, N, 1});
  const Tensor t = arange(T, {DType::Int64, device}).reshape({T, 1, 1});
  Lengths l{t < length, length - 1, {}};
  if (!k.o.bidirectional) return l;
  const Tensor n = arange(N, {DType::Int64, device}).reshape({1, N, 1});
  l.reversed = (where(l.on, length - 1 - t, t) * N + n).flatten();
  return l;
}

RnnResult recurrent(const Call& k, const Tensor& input, const Tensor& h0, const Tensor& c0,
                    const std::vector<Tensor>& flat, bool with_bias) {
  LocScope scope(k.loc);
  NodeRef n = node_of(input, k.op, k.loc);
  if (n->rank() != 3 && n->rank() != 2)
    fail(
        ErrorKind::Shape, k.op,
        "wants [steps, batch, features], or [steps, features] without a batch, not " + describe(*n),
        k.loc);
  if (!is_float(n->dtype))
    fail(ErrorKind::DType, k.op, "needs a floating type, not " + describe(*n), k.loc,
         "convert with x.to(float32)");
  const bool single = n->rank() == 2, transposed = k.o.batch_first && !single;
  Tensor x = single ? input.unsqueeze(1) : transposed ? input.transpose(0, 1) : input;
  const std::vector<Weights> weights = weights_of(k, flat, with_bias, x.size(2));
  const int64_t T = x.size(0), N = x.size(1), directions = k.o.bidirectional ? 2 : 1,
                H = weights[0].hh.size(0) / rnn_gates(k.kind), out = weights[0].hh.size(1);
  if (T < 1) fail(ErrorKind::Shape, k.op, "there are no steps in " + describe(*n), k.loc);
  const int64_t states = k.o.num_layers * directions;
  check_state(k, h0, "h0", single ? Dims{states, out} : Dims{states, N, out});
  check_state(k, c0, "c0", single ? Dims{states, H} : Dims{states, N, H});
  auto state = [&](const Tensor& s, int64_t i, int64_t size) {
    if (!s.defined()) return zeros({N, size}, {x.dtype(), x.device()});
    return s.select(0, i).reshape({N, size});
  };
  const Lengths lengths = lengths_of(k, T, N, x.device());
  std::vector<Tensor> hs, cs;
  for (int64_t layer = 0; layer < k.o.num_layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t i = layer * directions + d;
      RnnState s{state(h0, i, out), k.kind == RnnKind::Lstm ? state(c0, i, H) : Tensor()};
      Run r = run_layer(k, x, s, weights[static_cast<size_t>(i)], d == 1, lengths);
      outputs.push_back(r.output);
      hs.push_back(r.last.h);
      if (r.last.c.defined()) cs.push_back(r.last.c);
    }
    x = outputs.size() == 1 ? outputs[0] : cat(outputs, 2);
    if (layer + 1 < k.o.num_layers)
      x = dropout(x, k.o.dropout, k.o.training, default_generator(), k.loc);
  }
  auto join = [&](const std::vector<Tensor>& s) {
    if (s.empty()) return Tensor();
    Tensor all = stack(s, 0);
    return single ? all.squeeze(1) : all;
  };
  return {single ? x.squeeze(1) : transposed ? x.transpose(0, 1) : x, join(hs), join(cs)};
}

}  // namespace

RnnResult lstm(const Tensor& input, const Tensor& h0, const Tensor& c0,
               const std::vector<Tensor>& weights, bool with_bias, const RnnOptions& options,
               SourceLoc loc) {
  return recurrent({"lstm", RnnKind::Lstm, options, user_loc(loc)}, input, h0, c0, weights,
                   with_bias);
}
RnnResult gru(const Tensor& input, const Tensor& h0, const std::vector<Tensor>& weights,
              bool with_bias, const RnnOptions& options, SourceLoc loc) {
  return recurrent({"gru", RnnKind::Gru, options, user_loc(loc)}, input, h0, {}, weights,
                   with_bias);
}
RnnResult rnn(const Tensor& input, const Tensor& h0, const std::vector<Tensor>& weights,
              bool with_bias, const RnnOptions& options, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  if (options.nonlinearity != "tanh" && options.nonlinearity != "relu")
    fail(ErrorKind::Value, "rnn", "nonlinearity is \"" + std::string(options.nonlinearity) + "\"",
         loc, "use \"tanh\" or \"relu\"");
  const RnnKind kind = options.nonlinearity == "relu" ? RnnKind::Relu : RnnKind::Tanh;
  return recurrent({"rnn", kind, options, loc}, input, h0, {}, weights, with_bias);
}

}  // namespace ingot
