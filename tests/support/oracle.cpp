// The oracle's walk over a graph, and every op that is not of the elementwise table. Elements are
// visited by their index (a Dims), counted up like an odometer; an operand's element is found by
// row-major arithmetic.
#include "support/oracle.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

#include "codegen/philox.h"
#include "graph/composite.h"
#include "runtime/backend.h"
#include "runtime/storage.h"

namespace ingot::oracle {

Value::Value(DType t, const Dims& s) : dtype(t), shape(s) {
  size_t n = static_cast<size_t>(s.numel());
  if (is_float(t))
    f.resize(n);
  else
    i.resize(n);
}

namespace {

// Next index in row-major order.
void advance(Dims& index, const Dims& shape) {
  for (int d = shape.size() - 1; d >= 0; --d) {
    if (++index[d] < shape[d]) return;
    index[d] = 0;
  }
}

int64_t position(const Dims& index, const Dims& shape) {
  int64_t p = 0;
  for (int d = 0; d < shape.size(); ++d) p = p * shape[d] + index[d];
  return p;
}

// Position of the element that an operand of `shape` contributes at `index` of a broadcast result.
int64_t broadcast_position(const Dims& index, const Dims& shape) {
  int64_t p = 0;
  int skip = index.size() - shape.size();
  for (int d = 0; d < shape.size(); ++d) p = p * shape[d] + (shape[d] == 1 ? 0 : index[d + skip]);
  return p;
}

void copy_element(Value& to, int64_t k, const Value& from, int64_t j) {
  if (is_float(to.dtype))
    to.f[k] = from.f[j];
  else
    to.i[k] = from.i[j];
}

template <class F>
void each_index(const Dims& shape, F fn) {
  Dims index = Dims::filled(shape.size(), 0);
  for (int64_t k = 0, n = shape.numel(); k < n; ++k, advance(index, shape)) fn(k, index);
}

Value source(const Node& n) {
  Value v(n.dtype, n.shape);
  for (int64_t k = 0; k < v.numel(); ++k) {
    if (n.op == Op::Random) {
      const auto& [seed, offset] = n.attrs.as<RandomAttrs>();
      uint32_t bits = philox(static_cast<uint64_t>(offset + k / 4), seed).v[k % 4];
      v.i[k] = static_cast<int32_t>(bits);
    } else if (n.op == Op::Iota) {
      v.i[k] = k;
    } else if (n.op == Op::Arg) {
      v.f[k] = n.attrs.as<ArgAttrs>().value;
    } else if (is_float(n.dtype)) {
      v.f[k] = n.attrs.as<ConstAttrs>().f;
    } else {
      v.i[k] = n.attrs.as<ConstAttrs>().i;
    }
  }
  return v;
}

int64_t in_region(const Node& n, const Dims& at, int d) {
  const auto& [start, step] = n.attrs.as<SliceAttrs>();
  return start[d] + at[d] * step[d];
}

Value movement(const Node& n, const Value& a) {
  Value v(n.dtype, n.shape);
  each_index(n.shape, [&](int64_t k, const Dims& at) {
    Dims from = at;
    switch (n.op) {
      case Op::Reshape:
        return copy_element(v, k, a, k);
      case Op::Expand:
        return copy_element(v, k, a, broadcast_position(at, a.shape));
      case Op::Permute:
        for (int d = 0; d < at.size(); ++d)
          from[static_cast<int>(n.attrs.as<PermuteAttrs>().order[d])] = at[d];
        break;
      case Op::Slice:
        for (int d = 0; d < at.size(); ++d) from[d] = in_region(n, at, d);
        break;
      default:
        for (int d = 0; d < at.size(); ++d) {
          from[d] = at[d] - n.attrs.as<PadAttrs>().front[d];
          if (from[d] < 0 || from[d] >= a.shape[d]) {
            if (is_float(n.dtype))
              v.f[k] = n.attrs.as<PadAttrs>().value;
            else
              v.i[k] = static_cast<int64_t>(n.attrs.as<PadAttrs>().value);
            return;
          }
        }
    }
    copy_element(v, k, a, position(from, a.shape));
  });
  return v;
}

Value side_by_side(const Node& n, const std::vector<const Value*>& parts) {
  Value v(n.dtype, n.shape);
  const int axis = n.attrs.as<CatAttrs>().axis;
  each_index(n.shape, [&](int64_t k, const Dims& at) {
    Dims from = at;
    for (const Value* p : parts) {
      if (from[axis] < p->shape[axis]) return copy_element(v, k, *p, position(from, p->shape));
      from[axis] -= p->shape[axis];
    }
  });
  return v;
}

Value cast(const Node& n, const Value& a) {
  Value v(n.dtype, n.shape);
  for (int64_t k = 0; k < v.numel(); ++k) {
    if (is_float(n.dtype))
      v.f[k] = a.at(k);
    else if (!is_float(a.dtype))
      v.i[k] = a.i[k];
    else if (n.dtype == DType::Bool)
      v.i[k] = a.f[k] != 0;
    else
      v.i[k] = static_cast<int64_t>(a.f[k]);
  }
  return v;
}

Value uniform(const Node& n, const Value& a) {
  Value v(n.dtype, n.shape);
  for (int64_t k = 0; k < v.numel(); ++k) {
    uint32_t bits = static_cast<uint32_t>(a.i[k]);
    v.f[k] = n.dtype == DType::Float64 ? std::ldexp(bits, -32) : std::ldexp(bits >> 8, -24);
  }
  return v;
}

Value where(const Node& n, const Value& c, const Value& a, const Value& b) {
  Value v(n.dtype, n.shape);
  each_index(n.shape, [&](int64_t k, const Dims& at) {
    const Value& from = c.i[broadcast_position(at, c.shape)] ? a : b;
    copy_element(v, k, from, broadcast_position(at, from.shape));
  });
  return v;
}

Value slice_assign(const Node& n, const Value& base, const Value& value) {
  Value v = base;
  each_index(value.shape, [&](int64_t k, const Dims& at) {
    Dims to = at;
    for (int d = 0; d < at.size(); ++d) to[d] = in_region(n, at, d);
    copy_element(v, position(to, v.shape), value, k);
  });
  return v;
}

Value table_op(const Node& n, const Value& a, const Value& b) {
  Value v(n.dtype, n.shape);
  bool from_float = is_float(a.dtype);
  each_index(n.shape, [&](int64_t k, const Dims& at) {
    int64_t ka = broadcast_position(at, a.shape), kb = broadcast_position(at, b.shape);
    if (is_float(n.dtype))
      v.f[k] = float_element(n.op, a.f[ka], b.f[kb]);
    else if (from_float)
      v.i[k] = bool_element(n.op, a.f[ka], b.f[kb]);
    else
      v.i[k] = int_element(n.op, a.dtype, a.i[ka], b.i[kb]);
  });
  return v;
}

// Does candidate beat the best so far? NaN wins, the first of equals stays.
bool beats(double candidate, double best, bool larger) {
  if (std::isnan(best)) return false;
  return std::isnan(candidate) || (larger ? candidate > best : candidate < best);
}

Value reduce(const Node& n, const Value& a) {
  bool integer = !is_float(a.dtype), arg = n.op == Op::ArgMax || n.op == Op::ArgMin;
  bool larger = n.op == Op::Max || n.op == Op::ArgMax;
  Value v(n.dtype, n.shape);
  Value best(a.dtype, n.shape);
  std::vector<int64_t> count(static_cast<size_t>(v.numel()), 0);
  if (n.op == Op::Prod) {
    std::fill(best.f.begin(), best.f.end(), 1.0);
    std::fill(best.i.begin(), best.i.end(), 1);
  }
  each_index(a.shape, [&](int64_t k, const Dims& at) {
    Dims to = at;
    for (int d = 0; d < at.size(); ++d)
      if (n.attrs.as<ReduceAttrs>().axes >> d & 1) to[d] = 0;
    int64_t j = position(to, n.shape);
    bool take = count[j] == 0;
    if (n.op == Op::Sum)
      integer ? void(best.i[j] += a.i[k]) : void(best.f[j] += a.f[k]);
    else if (n.op == Op::Prod)
      integer ? void(best.i[j] *= a.i[k]) : void(best.f[j] *= a.f[k]);
    else if (take || (integer ? (larger ? a.i[k] > best.i[j] : a.i[k] < best.i[j])
                              : beats(a.f[k], best.f[j], larger))) {
      copy_element(best, j, a, k);
      if (arg) v.i[j] = count[j];
    }
    ++count[j];
  });
  if (arg) return v;
  best.dtype = n.dtype;
  return best;
}

Value gather(const Node& n, const Value& src, const Value& index) {
  Value v(n.dtype, n.shape);
  const int axis = n.attrs.as<IndexAttrs>().axis;
  each_index(n.shape, [&](int64_t k, const Dims& at) {
    Dims from = at;
    from[axis] = index.i[k];
    if (from[axis] < 0 || from[axis] >= src.shape[axis])
      throw std::runtime_error("oracle: gather index out of range");
    copy_element(v, k, src, position(from, src.shape));
  });
  return v;
}

Value scatter_add(const Node& n, const Value& index, const Value& value) {
  Value v(n.dtype, n.shape);
  const int axis = n.attrs.as<IndexAttrs>().axis;
  each_index(value.shape, [&](int64_t k, const Dims& at) {
    Dims to = at;
    to[axis] = index.i[k];
    if (to[axis] < 0 || to[axis] >= n.shape[axis])
      throw std::runtime_error("oracle: scatter index out of range");
    int64_t j = position(to, n.shape);
    is_float(n.dtype) ? void(v.f[j] += value.f[k]) : void(v.i[j] += value.i[k]);
  });
  return v;
}

Value scatter(const Node& n, const Value& base, const Value& index, const Value& value) {
  Value v = base;
  const int axis = n.attrs.as<ScatterAttrs>().axis;
  const ScatterMode mode = n.attrs.as<ScatterAttrs>().mode;
  bool larger = mode == ScatterMode::Max;
  each_index(value.shape, [&](int64_t k, const Dims& at) {
    Dims to = at;
    to[axis] = index.i[k];
    if (to[axis] < 0 || to[axis] >= n.shape[axis])
      throw std::runtime_error("oracle: scatter index out of range");
    int64_t j = position(to, n.shape);
    bool floating = is_float(n.dtype);
    if (mode == ScatterMode::Prod)
      floating ? void(v.f[j] *= value.f[k]) : void(v.i[j] *= value.i[k]);
    else if (mode == ScatterMode::Set || (floating ? beats(value.f[k], v.f[j], larger)
                                          : larger ? value.i[k] > v.i[j]
                                                   : value.i[k] < v.i[j]))
      copy_element(v, j, value, k);
  });
  return v;
}

Value scan(const Node& n, const Value& a) {
  Value v(n.dtype, n.shape);
  const int axis = n.attrs.as<ScanAttrs>().axis;
  const ScanKind kind = n.attrs.as<ScanAttrs>().kind;
  bool places = kind == ScanKind::ArgMax || kind == ScanKind::ArgMin, integer = !is_float(a.dtype);
  each_index(n.shape, [&](int64_t k, const Dims& at) {
    double f = kind == ScanKind::Prod, sum = 0;
    int64_t i = kind == ScanKind::Prod, best = 0;
    double top = -std::numeric_limits<double>::infinity();
    Dims from = at;
    for (from[axis] = 0; from[axis] <= at[axis]; ++from[axis]) {
      int64_t p = position(from, a.shape);
      if (places) {
        Dims old = at;
        old[axis] = best;
        double x = a.at(p), b = a.at(position(old, a.shape));
        if (std::isnan(x) || (!std::isnan(b) && (kind == ScanKind::ArgMax ? x >= b : x <= b)))
          best = from[axis];
      } else if (integer) {
        const auto x = static_cast<uint64_t>(i),
                   y = static_cast<uint64_t>(a.i[p]);  // integers wrap around
        i = static_cast<int64_t>(kind == ScanKind::Sum ? x + y : x * y);
      } else if (kind == ScanKind::LogSum) {
        top = std::isnan(top) || a.f[p] <= top ? top : a.f[p];
      } else {
        f = kind == ScanKind::Sum ? f + a.f[p] : f * a.f[p];
      }
    }
    if (kind == ScanKind::LogSum) {
      for (from[axis] = 0; from[axis] <= at[axis]; ++from[axis]) {
        double x = a.f[position(from, a.shape)];
        sum += x == top ? 1 : std::exp(x - top);
      }
      f = top + std::log(sum);
    }
    if (places)
      v.i[k] = best;
    else if (integer)
      v.i[k] = i;
    else
      v.f[k] = f;
  });
  return v;
}

// The place of an element is the number of those that come before it.
Value sort(const Node& n, const Value& a) {
  Value v(n.dtype, n.shape);
  const int axis = n.attrs.as<SortAttrs>().axis;
  bool down = n.attrs.as<SortAttrs>().descending;
  auto before = [&](int64_t p, int64_t q, bool earlier) {
    if (!is_float(a.dtype)) return a.i[p] == a.i[q] ? earlier : (a.i[p] < a.i[q]) != down;
    bool np = std::isnan(a.f[p]), nq = std::isnan(a.f[q]);
    if (np || nq) return np && nq ? earlier : nq != down;
    return a.f[p] == a.f[q] ? earlier : (a.f[p] < a.f[q]) != down;
  };
  each_index(a.shape, [&](int64_t k, const Dims& at) {
    Dims other = at;
    int64_t rank = 0;
    for (other[axis] = 0; other[axis] < a.shape[axis]; ++other[axis])
      rank +=
          other[axis] != at[axis] && before(position(other, a.shape), k, other[axis] < at[axis]);
    if (rank >= n.shape[axis]) return;
    other[axis] = rank;
    v.i[position(other, n.shape)] = at[axis];
  });
  return v;
}

Value matmul(const Node& n, const Value& a, const Value& b) {
  Value v(n.dtype, n.shape);
  int r = n.rank();
  int64_t M = n.shape[r - 2], N = n.shape[r - 1], K = a.shape[r - 1];
  int64_t batch = 1;
  for (int d = 0; d < r - 2; ++d) batch *= n.shape[d];
  for (int64_t s = 0; s < batch; ++s)
    for (int64_t i = 0; i < M; ++i)
      for (int64_t j = 0; j < N; ++j)
        for (int64_t k = 0; k < K; ++k) {
          int64_t o = (s * M + i) * N + j, p = (s * M + i) * K + k, q = (s * K + k) * N + j;
          is_float(n.dtype) ? void(v.f[o] += a.f[p] * b.f[q]) : void(v.i[o] += a.i[p] * b.i[q]);
        }
  return v;
}

// Every product that a convolution of x with w adds into y, as positions (y, x, w).
void each_product(const Node& n, const Dims& x, const Dims& w, const Dims& y,
                  const std::function<void(int64_t, int64_t, int64_t)>& fn) {
  const ConvAttrs& c = n.attrs.as<ConvAttrs>();
  const int r = x.size() - 2;
  const int64_t per_group = w[0] / c.groups;
  each_index(y, [&](int64_t ky, const Dims& at) {
    each_index(w, [&](int64_t kw, const Dims& k) {
      if (k[0] != at[1]) return;
      Dims from = at;
      from[1] = at[1] / per_group * w[1] + k[1];
      for (int d = 0; d < r; ++d) {
        from[2 + d] = at[2 + d] * c.stride[d] + k[2 + d] * c.dilation[d] - c.front[d];
        if (from[2 + d] < 0 || from[2 + d] >= x[2 + d]) return;
      }
      fn(ky, position(from, x), kw);
    });
  });
}

Value conv(const Node& n, const Value& a, const Value& b) {
  Value v(n.dtype, n.shape);
  const bool fl = is_float(n.dtype);
  auto add = [&](int64_t o, int64_t p, int64_t q) {
    fl ? void(v.f[o] += a.f[p] * b.f[q]) : void(v.i[o] += a.i[p] * b.i[q]);
  };
  if (n.op == Op::Conv)
    each_product(n, a.shape, b.shape, n.shape,
                 [&](int64_t y, int64_t x, int64_t w) { add(y, x, w); });
  else if (n.op == Op::ConvGradInput)
    each_product(n, n.shape, b.shape, a.shape,
                 [&](int64_t y, int64_t x, int64_t w) { add(x, y, w); });
  else
    each_product(n, a.shape, n.shape, b.shape,
                 [&](int64_t y, int64_t x, int64_t w) { add(w, x, y); });
  return v;
}

Value window(const Node& n, const Value& a) {
  Value v(n.dtype, n.shape);
  const Dims &stride = n.attrs.as<WindowAttrs>().stride,
             &dilation = n.attrs.as<WindowAttrs>().dilation;
  const int r = stride.size(), lead = a.shape.size() - r;
  each_index(n.shape, [&](int64_t k, const Dims& at) {
    Dims from(at.begin(), a.shape.size());
    for (int d = 0; d < r; ++d)
      from[lead + d] = at[lead + d] * stride[d] + at[lead + r + d] * dilation[d];
    copy_element(v, k, a, position(from, a.shape));
  });
  return v;
}

Value fold(const Node& n, const Value& a, const Value* place) {
  Value v(n.dtype, n.shape);
  const FoldAttrs& f = n.attrs.as<FoldAttrs>();
  const Dims& kernel = f.window;
  const int r = kernel.size(), lead = n.shape.size() - r;
  each_index(a.shape, [&](int64_t k, const Dims& at) {
    Dims in_window = Dims::filled(r, 0);
    if (!place) {
      for (int d = 0; d < r; ++d) in_window[d] = at[lead + r + d];
    } else {
      int64_t rest = place->i[k];
      for (int d = r - 1; d >= 0; --d) {
        in_window[d] = rest % kernel[d];
        rest /= kernel[d];
      }
    }
    Dims to(at.begin(), n.shape.size());
    for (int d = 0; d < r; ++d)
      to[lead + d] = at[lead + d] * f.stride[d] + in_window[d] * f.dilation[d] - f.front[d];
    for (int d = 0; d < r; ++d)
      if (to[lead + d] < 0 || to[lead + d] >= n.shape[lead + d]) return;
    int64_t j = position(to, n.shape);
    is_float(n.dtype) ? void(v.f[j] += a.f[k]) : void(v.i[j] += a.i[k]);
  });
  return v;
}

// Gauss and Jordan on the whole of [a | b], rows swapped for the largest pivot; the determinant
// falls out.
Value linalg(const Node& n, const Value& a, const Value* b) {
  Value v(n.dtype, n.shape);
  const LinalgAttrs& how = n.attrs.as<LinalgAttrs>();
  const LinalgKind kind = how.kind;
  int64_t N = a.shape.back(), K = b ? b->shape.back() : N, batch = N ? a.numel() / (N * N) : 0;
  for (int64_t s = 0; s < batch; ++s) {
    auto at = [&](int64_t i, int64_t j) { return a.f[(s * N + i) * N + j]; };
    if (kind == LinalgKind::Cholesky) {
      for (int64_t i = 0; i < N; ++i)
        for (int64_t j = 0; j <= i; ++j) {
          double sum = at(i, j);
          for (int64_t k = 0; k < j; ++k)
            sum -= v.f[(s * N + i) * N + k] * v.f[(s * N + j) * N + k];
          v.f[(s * N + i) * N + j] = i == j ? std::sqrt(sum) : sum / v.f[(s * N + j) * N + j];
        }
      continue;
    }
    std::vector<std::vector<double>> m(static_cast<size_t>(N),
                                       std::vector<double>(static_cast<size_t>(N + K)));
    double sign = 1, log_det = 0;
    for (int64_t i = 0; i < N; ++i) {
      for (int64_t j = 0; j < N; ++j) {
        double x = how.transposed ? at(j, i) : at(i, j);
        bool above = how.transposed ? i > j : j > i;  // above the diagonal of a itself
        if (kind == LinalgKind::Triangular && i != j && above != how.upper) x = 0;
        if (kind == LinalgKind::Triangular && i == j && how.unit_diagonal) x = 1;
        m[i][j] = x;
      }
      for (int64_t j = 0; j < K; ++j) m[i][N + j] = b ? b->f[(s * N + i) * K + j] : i == j;
    }
    for (int64_t c = 0; c < N; ++c) {
      int64_t best = c;
      for (int64_t i = c; i < N; ++i)
        if (std::fabs(m[i][c]) > std::fabs(m[best][c])) best = i;
      if (best != c) {
        std::swap(m[best], m[c]);
        sign = -sign;
      }
      double p = m[c][c];
      sign *= (p > 0) - (p < 0);
      log_det += std::log(std::fabs(p));
      if (p == 0) break;
      for (int64_t j = c; j < N + K; ++j) m[c][j] /= p;
      for (int64_t i = 0; i < N; ++i) {
        double f = m[i][c];
        if (i == c || f == 0) continue;
        for (int64_t j = c; j < N + K; ++j) m[i][j] -= f * m[c][j];
      }
    }
    if (kind == LinalgKind::Slogdet) {
      v.f[2 * s] = sign;
      v.f[2 * s + 1] = log_det;
      continue;
    }
    for (int64_t i = 0; i < N; ++i)
      for (int64_t j = 0; j < K; ++j) v.f[(s * N + i) * K + j] = m[i][N + j];
  }
  return v;
}

Value read_node(const Node& n) {
  std::vector<char> host(n.bytes());
  Backend* backend = backend_for(n.device.type());
  if (!host.empty())
    backend->copy_to_host(n.device.index(), host.data(), n.storage->data, host.size());
  return read_memory(n.dtype, n.shape, host.data());
}

}  // namespace

Value Oracle::compute(const Node& n) {
  auto in = [&](int k) -> const Value& { return values_.at(n.inputs()[static_cast<size_t>(k)]); };
  switch (n.op) {
    case Op::Const:
    case Op::Arg:
    case Op::Iota:
    case Op::Random:
      return source(n);
    case Op::Leaf:
      throw std::runtime_error("oracle: a leaf without data");
    case Op::Reshape:
    case Op::Permute:
    case Op::Expand:
    case Op::Slice:
    case Op::Pad:
      return movement(n, in(0));
    case Op::Cast:
      return cast(n, in(0));
    case Op::Where:
      return where(n, in(0), in(1), in(2));
    case Op::Uniform:
      return uniform(n, in(0));
    case Op::Alias:
    case Op::Fence:
    case Op::ToDevice:
      return in(0);
    case Op::Assign:
      return in(1);
    case Op::SliceAssign:
      return slice_assign(n, in(0), in(1));
    case Op::Gather:
      return gather(n, in(0), in(1));
    case Op::ScatterAdd:
      return scatter_add(n, in(0), in(1));
    case Op::Scatter:
      return scatter(n, in(0), in(1), in(2));
    case Op::Scan:
      return scan(n, in(0));
    case Op::Sort:
      return sort(n, in(0));
    case Op::Cat: {
      std::vector<const Value*> parts;
      for (const Node* i : n.inputs()) parts.push_back(&values_.at(i));
      return side_by_side(n, parts);
    }
    case Op::Matmul:
      return matmul(n, in(0), in(1));
    case Op::Linalg:
      return linalg(n, in(0), n.n_inputs == 2 ? &in(1) : nullptr);
    case Op::Conv:
    case Op::ConvGradInput:
    case Op::ConvGradWeight:
      return conv(n, in(0), in(1));
    case Op::Lstm:
    case Op::LstmGrad:
    case Op::Gru:
    case Op::GruGrad:
    case Op::Rnn:
    case Op::RnnGrad:
    case Op::Attention:
    case Op::AttentionGrad:
    case Op::Composite:
    case Op::CompositeGrad:
      return several(n)[0];
    case Op::Result:
      return several(*n.inputs()[0]).at(static_cast<size_t>(n.attrs.as<ResultAttrs>().index));
    case Op::Window:
      return window(n, in(0));
    case Op::Fold:
      return fold(n, in(0), n.n_inputs == 2 ? &in(1) : nullptr);
    default:
      break;
  }
  if (is_reduce(n.op)) return reduce(n, in(0));
  return table_op(n, in(0), in(n.n_inputs > 1 ? 1 : 0));
}

std::vector<Value> Oracle::several(const Node& n) {
  std::vector<const Value*> in;
  for (const Node* i : n.inputs()) in.push_back(&values_.at(i));
  const bool exact = precision_ == Precision::Exact;
  if (n.op == Op::Lstm) return lstm(n, in, exact);
  if (n.op == Op::LstmGrad) return lstm_grad(n, in, exact);
  if (is_composite(n.op)) return decomposed(n);
  throw std::runtime_error(std::string("oracle: no ") + info(n.op).name);
}

// By the ops that it stands for, which are recorded apart and never run.
std::vector<Value> Oracle::decomposed(const Node& n) {
  std::vector<OperandType> operands;
  for (Node* i : n.inputs()) operands.push_back({i->dtype, i->shape, i->device});
  std::vector<Value> values;
  record_decomposition(n.op, {n.attrs, n.shape, n.dtype, n.device}, operands,
                       [&](auto leaves, auto results) {
                         Oracle inner(precision_);
                         for (size_t k = 0; k < leaves.size(); ++k)
                           inner.values_.emplace(leaves[k].get(), values_.at(n.inputs()[k]));
                         for (const NodeRef& r : results) values.push_back(inner(r.get()));
                       });
  return values;
}

const Value& Oracle::operator()(const Node* root) {
  std::vector<const Node*> stack{root};
  while (!stack.empty()) {
    const Node* n = stack.back();
    if (values_.contains(n)) {
      stack.pop_back();
      continue;
    }
    size_t before = stack.size();
    if (!n->computed)
      for (const Node* in : n->inputs())
        if (!values_.contains(in)) stack.push_back(in);
    if (stack.size() > before) continue;
    Value v = n->computed ? read_node(*n) : compute(*n);
    for (double& x : v.f) x = precision_ == Precision::Exact ? x : round_to(n->dtype, x);
    for (int64_t& x : v.i) x = wrap_to(n->dtype, x);
    values_.insert_or_assign(n, std::move(v));
    stack.pop_back();
  }
  return values_.at(root);
}

}  // namespace ingot::oracle
