// Methods of Tensor, each the function of the same name: those of methods.def, and the ones with
// more arguments.
#include "ingot/creation.h"
#include "ingot/elementwise.h"
#include "ingot/linalg.h"
#include "ingot/movement.h"
#include "ops/common.h"

namespace ingot {

#define INGOT_UNARY(name) \
  Tensor Tensor::name(SourceLoc loc) const { return ingot::name(*this, loc); }
#define INGOT_BINARY(name) \
  Tensor Tensor::name(const Operand& b, SourceLoc loc) const { return ingot::name(*this, b, loc); }
#include "ingot/methods.def"

// ---- Movement

std::vector<Tensor> Tensor::split(const std::vector<int64_t>& sizes, int64_t dim,
                                  SourceLoc loc) const {
  return ingot::split(*this, sizes, dim, loc);
}
std::vector<Tensor> Tensor::tensor_split(int64_t sections, int64_t dim, SourceLoc loc) const {
  return ingot::tensor_split(*this, sections, dim, loc);
}
std::vector<Tensor> Tensor::unbind(int64_t dim, SourceLoc loc) const {
  return ingot::unbind(*this, dim, loc);
}
Tensor Tensor::unflatten(int64_t dim, const Dims& sizes, SourceLoc loc) const {
  return ingot::unflatten(*this, dim, sizes, loc);
}
Tensor Tensor::movedim(int64_t source, int64_t destination, SourceLoc loc) const {
  return ingot::movedim(*this, source, destination, loc);
}
Tensor Tensor::movedim(const Dims& source, const Dims& destination, SourceLoc loc) const {
  return ingot::movedim(*this, source, destination, loc);
}
Tensor Tensor::roll(const Dims& shifts, const Dims& dims, SourceLoc loc) const {
  return ingot::roll(*this, shifts, dims, loc);
}
Tensor Tensor::roll(int64_t shift, int64_t dim, SourceLoc loc) const {
  return ingot::roll(*this, shift, dim, loc);
}
Tensor Tensor::rot90(int64_t k, const Dims& dims, SourceLoc loc) const {
  return ingot::rot90(*this, k, dims, loc);
}
Tensor Tensor::tile(const Dims& dims, SourceLoc loc) const { return ingot::tile(*this, dims, loc); }
Tensor Tensor::repeat_interleave(int64_t repeats, std::optional<int64_t> dim, SourceLoc loc) const {
  return ingot::repeat_interleave(*this, repeats, dim, loc);
}
Tensor Tensor::repeat_interleave(const Tensor& repeats, std::optional<int64_t> dim,
                                 SourceLoc loc) const {
  return ingot::repeat_interleave(*this, repeats, dim, loc);
}
Tensor Tensor::diag(int64_t k, SourceLoc loc) const { return ingot::diag(*this, k, loc); }
Tensor Tensor::diagonal(int64_t offset, int64_t dim1, int64_t dim2, SourceLoc loc) const {
  return ingot::diagonal(*this, offset, dim1, dim2, loc);
}
Tensor Tensor::diag_embed(int64_t offset, int64_t dim1, int64_t dim2, SourceLoc loc) const {
  return ingot::diag_embed(*this, offset, dim1, dim2, loc);
}

namespace {

Options like(const Tensor& x, const Options& o, const SourceLoc& loc) {
  return {dtype_or(o, x.dtype(loc)), o.device ? *o.device : x.device(loc)};
}

}  // namespace

Tensor Tensor::new_zeros(const Dims& shape, const Options& o, SourceLoc loc) const {
  return zeros(shape, like(*this, o, loc), loc);
}
Tensor Tensor::new_ones(const Dims& shape, const Options& o, SourceLoc loc) const {
  return ones(shape, like(*this, o, loc), loc);
}
Tensor Tensor::new_full(const Dims& shape, const Scalar& value, const Options& o,
                        SourceLoc loc) const {
  return full(shape, value, like(*this, o, loc), loc);
}

// ---- Elementwise

Tensor Tensor::add(const Operand& b, const Scalar& alpha, SourceLoc loc) const {
  return ingot::add(*this, b, alpha, loc);
}
Tensor Tensor::sub(const Operand& b, const Scalar& alpha, SourceLoc loc) const {
  return ingot::sub(*this, b, alpha, loc);
}
Tensor Tensor::div(const Operand& b, std::string_view rounding_mode, SourceLoc loc) const {
  return ingot::div(*this, b, rounding_mode, loc);
}
Tensor Tensor::round(int64_t decimals, SourceLoc loc) const {
  return ingot::round(*this, decimals, loc);
}
Tensor Tensor::logit(std::optional<double> eps, SourceLoc loc) const {
  return ingot::logit(*this, eps, loc);
}
Tensor Tensor::lerp(const Tensor& end, const Operand& weight, SourceLoc loc) const {
  return ingot::lerp(*this, end, weight, loc);
}
Tensor Tensor::addcmul(const Tensor& a, const Tensor& b, const Scalar& value, SourceLoc loc) const {
  return ingot::addcmul(*this, a, b, value, loc);
}
Tensor Tensor::addcdiv(const Tensor& a, const Tensor& b, const Scalar& value, SourceLoc loc) const {
  return ingot::addcdiv(*this, a, b, value, loc);
}
Tensor Tensor::nan_to_num(double nan, std::optional<double> posinf, std::optional<double> neginf,
                          SourceLoc loc) const {
  return ingot::nan_to_num(*this, nan, posinf, neginf, loc);
}
Tensor Tensor::isclose(const Tensor& other, double rtol, double atol, bool equal_nan,
                       SourceLoc loc) const {
  return ingot::isclose(*this, other, rtol, atol, equal_nan, loc);
}
bool Tensor::allclose(const Tensor& other, double rtol, double atol, bool equal_nan,
                      SourceLoc loc) const {
  return ingot::allclose(*this, other, rtol, atol, equal_nan, loc);
}
bool Tensor::equal(const Tensor& other, SourceLoc loc) const {
  return ingot::equal(*this, other, loc);
}
Tensor Tensor::where(const Tensor& condition, const Operand& other, SourceLoc loc) const {
  return ingot::where(condition, *this, other, loc);
}

// ---- Linear algebra

Tensor Tensor::mm(const Tensor& other, SourceLoc loc) const { return ingot::mm(*this, other, loc); }
Tensor Tensor::bmm(const Tensor& other, SourceLoc loc) const {
  return ingot::bmm(*this, other, loc);
}
Tensor Tensor::mv(const Tensor& vec, SourceLoc loc) const { return ingot::mv(*this, vec, loc); }
Tensor Tensor::dot(const Tensor& other, SourceLoc loc) const {
  return ingot::dot(*this, other, loc);
}
Tensor Tensor::vdot(const Tensor& other, SourceLoc loc) const {
  return ingot::dot(*this, other, loc);
}
Tensor Tensor::inner(const Tensor& other, SourceLoc loc) const {
  return ingot::inner(*this, other, loc);
}
Tensor Tensor::outer(const Tensor& vec2, SourceLoc loc) const {
  return ingot::outer(*this, vec2, loc);
}
Tensor Tensor::kron(const Tensor& other, SourceLoc loc) const {
  return ingot::kron(*this, other, loc);
}
#define INGOT_ADD(name)                                                                          \
  Tensor Tensor::name(const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha, \
                      SourceLoc loc) const {                                                     \
    return ingot::name(*this, a, b, beta, alpha, loc);                                           \
  }
INGOT_ADD(addmm)
INGOT_ADD(addmv)
INGOT_ADD(addr)
INGOT_ADD(addbmm)
INGOT_ADD(baddbmm)
#undef INGOT_ADD
Tensor Tensor::matrix_power(int64_t n, SourceLoc loc) const {
  return ingot::matrix_power(*this, n, loc);
}
Tensor Tensor::cholesky(bool upper, SourceLoc loc) const {
  return ingot::cholesky(*this, upper, loc);
}
SignLogdet Tensor::slogdet(SourceLoc loc) const { return ingot::slogdet(*this, loc); }

}  // namespace ingot
