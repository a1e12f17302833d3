// Linear algebra: products brought to matmul, and the factorisations, which record Op::Linalg on
// the CPU.
#include "ingot/linalg.h"

#include <algorithm>

#include "ingot/movement.h"
#include "ops/common.h"

namespace ingot {
namespace {

Node* ranked(const Tensor& x, int rank, const char* op, const char* what, const SourceLoc& loc) {
  NodeRef n = node_of(x, op, loc);
  if (n->rank() != rank)
    fail(ErrorKind::Shape, op, std::string("takes ") + what + ", not " + describe(x), loc,
         "use matmul() for other shapes");
  return n;
}

}  // namespace

// ---- Products

Tensor mm(const Tensor& a, const Tensor& b, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  ranked(a, 2, "mm", "matrices", loc);
  ranked(b, 2, "mm", "matrices", loc);
  return matmul(a, b, loc);
}

Tensor bmm(const Tensor& a, const Tensor& b, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  Node *x = ranked(a, 3, "bmm", "batches of matrices", loc),
       *y = ranked(b, 3, "bmm", "batches of matrices", loc);
  if (x->shape[0] != y->shape[0])
    fail(ErrorKind::Shape, "bmm",
         "the batches differ in size: " + describe(a) + " and " + describe(b), loc);
  return matmul(a, b, loc);
}

Tensor mv(const Tensor& mat, const Tensor& vec, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  ranked(mat, 2, "mv", "a matrix and a vector", loc);
  ranked(vec, 1, "mv", "a matrix and a vector", loc);
  return matmul(mat, vec, loc);
}

Tensor dot(const Tensor& a, const Tensor& b, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  ranked(a, 1, "dot", "two vectors", loc);
  ranked(b, 1, "dot", "two vectors", loc);
  return matmul(a, b, loc);
}

Tensor inner(const Tensor& a, const Tensor& b, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  if (node_of(a, "inner", loc)->rank() == 0 || node_of(b, "inner", loc)->rank() == 0)
    return mul(a, b, loc);
  return tensordot(a, b, Dims{-1}, Dims{-1}, loc);
}

Tensor outer(const Tensor& a, const Tensor& b, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  ranked(a, 1, "outer", "two vectors", loc);
  ranked(b, 1, "outer", "two vectors", loc);
  return mul(unsqueeze(a, 1, loc), b, loc);
}

Tensor kron(const Tensor& a, const Tensor& b, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef x = node_of(a, "kron", loc), y = node_of(b, "kron", loc);
  int r = std::max(x->rank(), y->rank());
  if (2 * r > kMaxDims)
    fail(ErrorKind::Shape, "kron", "takes at most 5 dims: " + describe(a) + " and " + describe(b),
         loc);
  Dims sa, sb, out;
  for (int i = 0; i < r; ++i) {
    int64_t p = i < r - x->rank() ? 1 : x->shape[i - (r - x->rank())],
            q = i < r - y->rank() ? 1 : y->shape[i - (r - y->rank())];
    sa.push_back(p);
    sa.push_back(1);
    sb.push_back(1);
    sb.push_back(q);
    out.push_back(p * q);
  }
  return reshape(mul(reshape(a, sa, loc), reshape(b, sb, loc), loc), out, loc);
}

Tensor vecdot(const Tensor& a, const Tensor& b, int64_t dim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  node_of(a, "vecdot", loc);
  return sum(mul(a, b, loc), dim, false, loc);
}

Tensor cross(const Tensor& a, const Tensor& b, int64_t dim, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  std::vector<Tensor> both = broadcast_tensors({a, b}, loc);
  NodeRef n = both[0].cell()->current();
  int d = wrap_dim(dim, n, "cross", loc);
  if (n->rank() == 0 || n->shape[d] != 3)
    fail(ErrorKind::Shape, "cross",
         "dim " + std::to_string(dim) + " of " + describe(a) + " and " + describe(b) +
             " must have 3 elements",
         loc);
  auto rolled = [&](const Tensor& x, int64_t by) { return roll(x, -by, d, loc); };
  return rolled(both[0], 1) * rolled(both[1], 2) - rolled(both[0], 2) * rolled(both[1], 1);
}

namespace {

// beta * x + alpha * product. The sum with a plain product stays one library call where there is
// one.
Tensor added(const Tensor& x, const Tensor& product, const Scalar& beta, const Scalar& alpha,
             const char* op, const SourceLoc& loc) {
  NodeRef n = node_of(x, op, loc), p = product.cell()->current();
  Dims out;
  if (!broadcast_shapes(n->shape, p->shape, out) || !(out == p->shape))
    fail(ErrorKind::Shape, op,
         describe(x) + " does not broadcast to the product's shape " + to_string(p->shape), loc);
  if (n->dtype != p->dtype)
    fail(ErrorKind::DType, op,
         "operands differ in type: " + describe(x) + " and a product of " +
             std::string(name_of(p->dtype)),
         loc, "convert one of them");
  if (!is_float(n->dtype) &&
      (alpha.kind == Scalar::Kind::Float || beta.kind == Scalar::Kind::Float) &&
      (alpha.f != static_cast<double>(static_cast<int64_t>(alpha.f)) ||
       beta.f != static_cast<double>(static_cast<int64_t>(beta.f))))
    fail(ErrorKind::DType, op, "beta and alpha must be integers for integer tensors", loc,
         "convert with .to(float32)");
  auto times = [&](const Tensor& t, const Scalar& s) {
    return s.f == 1 ? t : is_float(n->dtype) ? t * s.f : t * s.to<int64_t>();
  };
  Tensor y = times(product, alpha);
  return beta.f == 0 ? y : y + times(x, beta);
}

}  // namespace

#define INGOT_ADDED(name, product)                                                   \
  Tensor name(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta, \
              const Scalar& alpha, SourceLoc place) {                                \
    SourceLoc loc = user_loc(place);                                                 \
    LocScope scope(loc);                                                             \
    node_of(x, #name, loc);                                                          \
    return added(x, product, beta, alpha, #name, loc);                               \
  }
INGOT_ADDED(addmm, mm(a, b, loc))
INGOT_ADDED(addmv, mv(a, b, loc))
INGOT_ADDED(addr, outer(a, b, loc))
INGOT_ADDED(baddbmm, bmm(a, b, loc))
INGOT_ADDED(addbmm, bmm(a, b, loc).sum(0))
#undef INGOT_ADDED

Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& dims_a, const Dims& dims_b,
                 SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef x = node_of(a, "tensordot", loc), y = node_of(b, "tensordot", loc);
  bool ok = dims_a.size() == dims_b.size();
  uint32_t in_a = 0, in_b = 0;
  Dims pa, pb;  // contracted dims, in order
  for (int i = 0; ok && i < dims_a.size(); ++i) {
    int p = wrap_dim(dims_a[i], x, "tensordot", loc), q = wrap_dim(dims_b[i], y, "tensordot", loc);
    ok = !(in_a >> p & 1) && !(in_b >> q & 1) && x->rank() && y->rank() &&
         x->shape[p] == y->shape[q];
    in_a |= 1u << p;
    in_b |= 1u << q;
    pa.push_back(p);
    pb.push_back(q);
  }
  if (!ok)
    fail(ErrorKind::Shape, "tensordot",
         "dims " + to_string(dims_a) + " of " + describe(a) + " do not pair with dims " +
             to_string(dims_b) + " of " + describe(b),
         loc, "name each dim once, in pairs of equal size");
  Dims order_a, order_b = pb, out;
  int64_t m = 1, n = 1, k = 1;
  for (int i = 0; i < x->rank(); ++i)
    if (!(in_a >> i & 1)) {
      order_a.push_back(i);
      out.push_back(x->shape[i]);
      m *= x->shape[i];
    }
  for (int64_t p : pa) {
    order_a.push_back(p);
    k *= x->shape[static_cast<int>(p)];
  }
  for (int i = 0; i < y->rank(); ++i)
    if (!(in_b >> i & 1)) {
      order_b.push_back(i);
      out.push_back(y->shape[i]);
      n *= y->shape[i];
    }
  Tensor left = reshape(permute(a, order_a, loc), {m, k}, loc),
         right = reshape(permute(b, order_b, loc), {k, n}, loc);
  return reshape(matmul(left, right, loc), out, loc);
}

Tensor tensordot(const Tensor& a, const Tensor& b, int64_t dims, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef x = node_of(a, "tensordot", loc), y = node_of(b, "tensordot", loc);
  if (dims < 0 || dims > x->rank() || dims > y->rank())
    fail(ErrorKind::Shape, "tensordot",
         "cannot sum over " + std::to_string(dims) + " dims of " + describe(a) + " and " +
             describe(b),
         loc);
  Dims da, db;
  for (int i = 0; i < dims; ++i) {
    da.push_back(x->rank() - dims + i);
    db.push_back(i);
  }
  return tensordot(a, b, da, db, loc);
}

// Cheapest order by the classical recursion over where the last product splits.
Tensor multi_dot(const std::vector<Tensor>& tensors, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  size_t n = tensors.size();
  if (n < 2)
    fail(ErrorKind::Value, "multi_dot", "needs at least two tensors, not " + std::to_string(n),
         loc);
  std::vector<Tensor> m = tensors;
  for (size_t i = 0; i < n; ++i) {
    int r = node_of(m[i], "multi_dot", loc)->rank();
    if (r != 2 && !(r == 1 && (i == 0 || i + 1 == n)))
      fail(ErrorKind::Shape, "multi_dot",
           "takes matrices, and vectors at the ends, not " + describe(m[i]), loc);
  }
  bool row = m[0].dim() == 1, col = m[n - 1].dim() == 1;
  if (row) m[0] = unsqueeze(m[0], 0, loc);
  if (col) m[n - 1] = unsqueeze(m[n - 1], 1, loc);
  std::vector<double> size{static_cast<double>(m[0].size(0))};
  for (const Tensor& t : m) size.push_back(static_cast<double>(t.size(1)));
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> at(n, std::vector<size_t>(n, 0));
  for (size_t len = 1; len < n; ++len)
    for (size_t i = 0; i + len < n; ++i) {
      size_t j = i + len;
      cost[i][j] = -1;
      for (size_t k = i; k < j; ++k) {
        double c = cost[i][k] + cost[k + 1][j] + size[i] * size[k + 1] * size[j + 1];
        if (cost[i][j] < 0 || c < cost[i][j]) {
          cost[i][j] = c;
          at[i][j] = k;
        }
      }
    }
  auto product = [&](auto&& self, size_t i, size_t j) -> Tensor {
    return i == j ? m[i] : matmul(self(self, i, at[i][j]), self(self, at[i][j] + 1, j), loc);
  };
  Tensor y = product(product, 0, n - 1);
  if (row) y = squeeze(y, 0, loc);
  return col ? squeeze(y, -1, loc) : y;
}

Tensor trace(const Tensor& x, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  if (node_of(x, "trace", loc)->rank() != 2)
    fail(ErrorKind::Shape, "trace", "takes a matrix, not " + describe(x), loc);
  return sum(diagonal(x, 0, 0, 1, loc), {}, false, loc);
}

Tensor matrix_power(const Tensor& x, int64_t n, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef m = node_of(x, "matrix_power", loc);
  int r = m->rank();
  if (r < 2 || m->shape[r - 1] != m->shape[r - 2])
    fail(ErrorKind::Shape, "matrix_power", "takes square matrices, not " + describe(x), loc);
  if (n == 0) return expand(eye(m->shape[r - 1], {}, {m->dtype, m->device}), m->shape);
  Tensor base = n < 0 ? inv(x, loc) : x, y;
  for (uint64_t k = static_cast<uint64_t>(n < 0 ? -n : n); k; k >>= 1) {
    if (k & 1) y = y.defined() ? matmul(y, base) : base;
    if (k > 1) base = matmul(base, base);
  }
  return y;
}

// ---- Factorisations

namespace {

// Square matrices of a type LAPACK knows.
NodeRef square(const Tensor& x, const char* op, const SourceLoc& loc) {
  NodeRef n = node_of(x, op, loc);
  if (n->dtype != DType::Float32 && n->dtype != DType::Float64)
    fail(ErrorKind::DType, op, "takes float32 and float64, not " + describe(x), loc,
         "convert with x.to(float32)");
  int r = n->rank();
  if (r < 2 || n->shape[r - 1] != n->shape[r - 2])
    fail(ErrorKind::Shape, op, "takes square matrices, not " + describe(x), loc);
  return n;
}

// Factorisations run on the CPU, wherever their operands are.
Tensor linalg(const LinalgAttrs& attrs, const std::vector<Tensor>& in, const SourceLoc& loc) {
  Device home = in[0].device(), cpu(DeviceType::CPU, home.is_cpu() ? home.index() : 0);
  std::vector<NodeRef> here;
  for (const Tensor& x : in) here.push_back(move_to(x.cell()->current(), cpu, loc));
  return tensor_of(move_to(record_taking(Op::Linalg, here, {attrs}, loc), home, loc));
}

// a and b under common batch dims; a vector b as one column.
struct System {
  Tensor a, b;
  bool vector;
};
System system(const Tensor& a, const Tensor& b, bool left, const char* op, const SourceLoc& loc) {
  NodeRef x = square(a, op, loc), y = node_of(b, op, loc);
  if (x->dtype != y->dtype)
    fail(ErrorKind::DType, op, "operands differ in type: " + describe(a) + " and " + describe(b),
         loc, "convert one of them: .to(" + std::string(name_of(x->dtype)) + ")");
  if (x->device != y->device)
    fail(ErrorKind::Device, op,
         "operands are on different devices: " + describe(a) + " and " + describe(b), loc,
         "move one of them with .to(\"" + x->device.name() + "\")");
  Dims batch_of_a(x->shape.begin(), x->rank() - 1);
  bool vector = y->rank() == 1 || (y->rank() == x->rank() - 1 && batch_of_a == y->shape);
  Tensor m = vector ? unsqueeze(b, -1, loc) : b;
  NodeRef z = m.cell()->current();
  Dims ba(x->shape.begin(), x->rank() - 2), bb(z->shape.begin(), z->rank() - 2), batch;
  int64_t n = x->shape.back(), fits = z->shape[left || vector ? z->rank() - 2 : z->rank() - 1];
  if (fits != n || (!left && vector) || !broadcast_shapes(ba, bb, batch))
    fail(ErrorKind::Shape, op, describe(a) + " and " + describe(b) + " do not fit", loc,
         std::string("the right side needs ") + (left ? "rows" : "columns") + " of " +
             std::to_string(n) + " elements and equal batch dims");
  auto with = [&](const Tensor& t) {
    Dims s = batch;
    s.push_back(t.size(-2));
    s.push_back(t.size(-1));
    return expand(t, s, loc);
  };
  return {with(a), with(m), vector};
}

Tensor solved(LinalgAttrs attrs, const Tensor& a, const Tensor& b, bool left, const char* op,
              const SourceLoc& loc) {
  System s = system(a, b, left, op, loc);
  if (!left) attrs.transposed = !attrs.transposed;
  Tensor x = left ? linalg(attrs, {s.a, s.b}, loc) : mT(linalg(attrs, {s.a, mT(s.b)}, loc));
  return s.vector ? squeeze(x, -1, loc) : x;
}

}  // namespace

Tensor solve(const Tensor& a, const Tensor& b, bool left, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  return solved({LinalgKind::Solve}, a, b, left, "solve", loc);
}

Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left, bool unitriangular,
                        SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  return solved({.kind = LinalgKind::Triangular, .upper = upper, .unit_diagonal = unitriangular}, a,
                b, left, "solve_triangular", loc);
}

Tensor cholesky(const Tensor& x, bool upper, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  square(x, "cholesky", loc);
  Tensor l = linalg({LinalgKind::Cholesky}, {upper ? mT(x) : x}, loc);
  return upper ? mT(l) : l;
}

Tensor cholesky_solve(const Tensor& b, const Tensor& l, bool upper, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  square(l, "cholesky_solve", loc);
  Tensor lower = upper ? mT(l) : l;
  Tensor y = solved({LinalgKind::Triangular}, lower, b, true, "cholesky_solve", loc);
  return solved({.kind = LinalgKind::Triangular, .transposed = true}, lower, y, true,
                "cholesky_solve", loc);
}

Tensor inv(const Tensor& x, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  square(x, "inv", loc);
  return linalg({LinalgKind::Inverse}, {x}, loc);
}

SignLogdet slogdet(const Tensor& x, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef n = square(x, "slogdet", loc);
  if (n->shape.back() == 0) {  // the empty product
    Dims batch(n->shape.begin(), n->rank() - 2);
    Options o{n->dtype, n->device};
    return {ones(batch, o), zeros(batch, o)};
  }
  Tensor both = linalg({LinalgKind::Slogdet}, {x}, loc);
  return {select(both, -1, 0), select(both, -1, 1)};
}

Tensor det(const Tensor& x, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  square(x, "det", loc);
  SignLogdet d = slogdet(x, loc);
  return d.sign * exp(d.logabsdet);
}

Tensor logdet(const Tensor& x, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  square(x, "logdet", loc);
  SignLogdet d = slogdet(x, loc);
  return where(d.sign < 0.0, tensor_of(constant(__builtin_nan(""), x.dtype(), x.device(), loc)),
               d.logabsdet);
}

}  // namespace ingot
