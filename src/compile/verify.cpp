// What holds of every graph, whichever passes have run. Types and shapes are inferred here once
// more, from the values alone: graph/shape_rules.cpp has them for nodes, before any pass.
#include "base/env.h"
#include "compile/ir.h"

namespace ingot {
namespace {

struct Verifier {
  const Graph& g;

  [[noreturn]] void fail(size_t v, const std::string& what) const {
    throw Error(ErrorKind::Internal, "verify",
                "value " + std::to_string(v) + " (" + info(g.vals[v].op).name + ") " + what);
  }
  void require(bool holds, size_t v, const char* what) const {
    if (!holds) fail(v, what);
  }

  const Val& in(const Val& v, int k) const { return g.vals[static_cast<size_t>(v.in[k])]; }

  template <class T>
  const T& attrs(size_t i) const {
    require(g.vals[i].attrs.is<T>(), i, "has the attributes of another op");
    return g.vals[i].attrs.as<T>();
  }

  /// Operands that epilogues read.
  static int extra(Epilogues e) {
    int n = 0;
    for (Epilogue one :
         {Epilogue::Bias, Epilogue::Residual, Epilogue::GeluTanhGrad, Epilogue::ReluGrad})
      n += e.has(one);
    return n;
  }

  void operands(size_t i) const {
    const Val& v = g.vals[i];
    for (int k = 0; k < v.n_in; ++k) {
      require(v.in[k] >= 0 && v.in[k] < static_cast<int>(i), i, "uses a later value");
      const Val& from = in(v, k);
      require(from.n_in > 0 || is_source(from.op), i, "reads a value that was dropped");
      const bool moves = v.op == Op::ToDevice || (v.op == Op::Fence && k == 1);
      require(moves || from.device == v.device, i, "reads a value of another device");
    }
    const int arity = info(v.op).arity;
    if (arity != OpInfo::any && v.n_in != arity + extra(v.epilogues))
      fail(i, "has " + std::to_string(v.n_in) + " operands");
    require(v.epilogues.empty() || v.op == Op::Matmul || v.op == Op::Conv, i,
            "has epilogues, and is no product or convolution");
    require(v.stride.empty() || v.stride.size() == v.shape.size(), i,
            "has another number of strides than dims");
  }

  void elementwise(size_t i) const {
    const Val& v = g.vals[i];
    Dims shape;
    for (int k = 0; k < v.n_in; ++k)
      require(broadcast_shapes(shape, in(v, k).shape, shape), i, "has operands of unlike shapes");
    require(shape == v.shape, i, "has another shape than its operands");
    if (v.op == Op::Cast) return;
    if (v.op == Op::Uniform) {
      require(in(v, 0).dtype == DType::Int32 && is_float(v.dtype), i, "has a wrong type");
      return;
    }
    const int first = v.op == Op::Where ? 1 : 0;
    for (int k = first + 1; k < v.n_in; ++k)
      require(in(v, k).dtype == in(v, first).dtype, i, "has operands of several types");
    require(v.op != Op::Where || in(v, 0).dtype == DType::Bool, i,
            "has a condition that is no bool");
    const bool test = info(v.op).rule == TypeRule::Bool;
    require(v.dtype == (test ? DType::Bool : in(v, first).dtype), i,
            "has another type than its operands");
  }

  void slice(size_t i) const {
    const Val& v = g.vals[i];
    const Dims& from = in(v, 0).shape;
    const auto& [start, step] = attrs<SliceAttrs>(i);
    bool ok =
        start.size() == from.size() && step.size() == from.size() && v.shape.size() == from.size();
    for (int d = 0; ok && d < from.size(); ++d) {
      const int64_t last = start[d] + (v.shape[d] - 1) * step[d];
      ok = v.shape[d] == 0 || (start[d] >= 0 && start[d] < from[d] && last >= 0 && last < from[d]);
    }
    require(ok, i, "leaves what it is a slice of");
  }

  void window(size_t i) const {
    const Val& v = g.vals[i];
    const Dims& from = in(v, 0).shape;
    const auto& [stride, dilation] = attrs<WindowAttrs>(i);
    const int n = stride.size(), lead = from.size() - n;
    bool ok = lead >= 0 && dilation.size() == n && v.shape.size() == from.size() + n;
    for (int d = 0; ok && d < lead; ++d) ok = v.shape[d] == from[d];
    for (int d = 0; ok && d < n; ++d) {
      const int64_t at = v.shape[lead + d], width = v.shape[lead + n + d];
      ok = at == 0 || (at - 1) * stride[d] + (width - 1) * dilation[d] < from[lead + d];
    }
    require(ok, i, "has windows that leave what they look at");
  }

  void movement(size_t i) const {
    const Val& v = g.vals[i];
    const Dims& from = in(v, 0).shape;
    require(in(v, 0).dtype == v.dtype, i, "changes the type");
    const bool keeps_rank = v.op == Op::Permute || v.op == Op::Expand || v.op == Op::Pad;
    require(!keeps_rank || from.size() == v.shape.size(), i, "changes the number of dims");
    if (v.op == Op::Reshape) {
      require(in(v, 0).numel() == v.numel(), i, "changes the number of elements");
    } else if (v.op == Op::Permute) {
      const Dims& order = attrs<PermuteAttrs>(i).order;
      require(order.size() == v.shape.size(), i, "permutes another number of dims");
      uint32_t seen = 0;
      for (int d = 0; d < order.size(); ++d) {
        const bool names = order[d] >= 0 && order[d] < order.size() && !(seen >> order[d] & 1);
        require(names && v.shape[d] == from[static_cast<int>(order[d])], i,
                "is no permutation of its operand's dims");
        seen |= 1u << order[d];
      }
    } else if (v.op == Op::Expand) {
      for (int d = 0; d < from.size(); ++d)
        require(v.shape[d] == from[d] || from[d] == 1, i, "repeats a dim of more than one element");
    } else if (v.op == Op::Pad) {
      const Dims& front = attrs<PadAttrs>(i).front;
      require(front.size() == from.size(), i, "pads another number of dims");
      for (int d = 0; d < from.size(); ++d)
        require(front[d] >= 0 && front[d] + from[d] <= v.shape[d], i, "pads to a smaller shape");
    } else if (v.op == Op::Slice) {
      slice(i);
    } else if (v.op == Op::Window) {
      window(i);
    }
  }

  void reduce(size_t i) const {
    const Val& v = g.vals[i];
    Dims shape = in(v, 0).shape;
    const uint32_t axes = attrs<ReduceAttrs>(i).axes;
    require(axes >> shape.size() == 0, i, "reduces a dim that its operand does not have");
    for (int d = 0; d < shape.size(); ++d)
      if (axes >> d & 1) shape[d] = 1;
    require(shape == v.shape, i, "keeps other dims than it does not reduce");
    const bool finds = v.op == Op::ArgMax || v.op == Op::ArgMin;
    require(v.dtype == (finds ? DType::Int64 : in(v, 0).dtype), i,
            "has another type than its operand");
  }

  void matmul(size_t i) const {
    const Val& v = g.vals[i];
    const Dims &a = in(v, 0).shape, &b = in(v, 1).shape;
    const int r = v.shape.size();
    bool ok = r >= 2 && a.size() == r && b.size() == r && a[r - 1] == b[r - 2] &&
              a[r - 2] == v.shape[r - 2] && b[r - 1] == v.shape[r - 1];
    for (int d = 0; ok && d < r - 2; ++d) ok = a[d] == v.shape[d] && b[d] == v.shape[d];
    require(ok, i, "has factors that do not fit its shape");
    require(in(v, 0).dtype == v.dtype && in(v, 1).dtype == v.dtype, i,
            "has factors of another type");
  }

  /// What epilogues read: a bias, then a value of the result's shape.
  void epilogues(size_t i) const {
    const Val& v = g.vals[i];
    int k = 2;
    if (v.epilogues.has(Epilogue::Bias)) {
      const int64_t n = v.op == Op::Conv ? v.shape[1] : v.shape.back();
      require(in(v, k).numel() == n, i, "has a bias of another size");
      ++k;
    }
    for (; k < v.n_in; ++k)
      require(in(v, k).numel() == v.numel(), i, "has an epilogue's operand of another size");
    for (k = 2; k < v.n_in; ++k)
      require(in(v, k).dtype == v.dtype, i, "has an epilogue's operand of another type");
  }

  void inferred(size_t i) const {
    const Val& v = g.vals[i];
    if (is_elementwise(v.op)) return elementwise(i);
    if (is_movement(v.op)) return movement(i);
    if (is_reduce(v.op)) return reduce(i);
    switch (v.op) {
      case Op::Alias:
      case Op::Fence:
      case Op::Assign:
        require(in(v, 0).dtype == v.dtype, i, "changes the type");
        require(in(v, 0).shape == v.shape, i, "changes the shape");
        break;
      case Op::Gather:
        require(in(v, 0).dtype == v.dtype, i, "changes the type");
        require(in(v, 1).shape == v.shape, i, "has another shape than its index");
        break;
      case Op::Result: {
        const int index = attrs<ResultAttrs>(i).index;
        const int results = in(v, 0).joined() ? info(in(v, 0).op).results : in(v, 0).results();
        require(index >= 1 && index < results, i, "is a result that its call does not have");
        break;
      }
      case Op::Matmul:
        matmul(i);
        [[fallthrough]];
      case Op::Conv:
        epilogues(i);
        break;
      default:
        break;
    }
  }

  void readers(Dead dead) const {
    if (g.users.empty() && dead == Dead::Allowed) return;  // not counted yet
    if (g.users.size() != g.vals.size())
      throw Error(ErrorKind::Internal, "verify", "the readers of some values were not counted");
    std::vector<int> reads(g.vals.size());
    for (const Val& v : g.vals)
      for (int k = 0; k < v.n_in; ++k) ++reads[static_cast<size_t>(v.in[k])];
    for (size_t i = 0; i < g.vals.size(); ++i) {
      require(reads[i] + g.vals[i].output <= g.users[i], i, "has more readers than were counted");
      require(dead == Dead::Allowed || g.users[i] > 0 || g.vals[i].n_in == 0, i,
              "is dead and has operands");
    }
  }
};

}  // namespace

void verify(const Graph& g, Dead dead) {
  const Verifier v{g};
  for (size_t i = 0; i < g.vals.size(); ++i) {
    if (g.vals[i].n_in == 0) continue;  // a source, or dropped
    v.operands(i);
    v.inferred(i);
  }
  v.readers(dead);
}

void check_graph(const Graph& g, const char* pass, Dead dead) {
  try {
    verify(g, dead);
  } catch (const Error& e) {
    throw Error(ErrorKind::Internal, "verify", std::string("after ") + pass + ": " + e.reason());
  }
}

bool checks_graphs() {
#ifndef NDEBUG
  return true;
#else
  return env::flag("INGOT_VERIFY");
#endif
}

}  // namespace ingot
