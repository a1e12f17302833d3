// Methods of Tensor for the functions of sorting.h, indexing.h and reductions.h, and the forms that
// write into the tensor.
#include "ingot/indexing.h"
#include "ingot/reductions.h"
#include "ingot/sorting.h"
#include "ops/common.h"

namespace ingot {

Tensor Tensor::cumsum(int64_t dim, std::optional<DType> dtype, SourceLoc loc) const {
  return ingot::cumsum(*this, dim, dtype, loc);
}
Tensor Tensor::cumprod(int64_t dim, std::optional<DType> dtype, SourceLoc loc) const {
  return ingot::cumprod(*this, dim, dtype, loc);
}
Tensor Tensor::logcumsumexp(int64_t dim, SourceLoc loc) const {
  return ingot::logcumsumexp(*this, dim, loc);
}
ValuesIndices Tensor::cummax(int64_t dim, SourceLoc loc) const {
  return ingot::cummax(*this, dim, loc);
}
ValuesIndices Tensor::cummin(int64_t dim, SourceLoc loc) const {
  return ingot::cummin(*this, dim, loc);
}
ValuesIndices Tensor::sort(int64_t dim, bool descending, SourceLoc loc) const {
  return ingot::sort(*this, dim, descending, loc);
}
Tensor Tensor::argsort(int64_t dim, bool descending, bool stable, SourceLoc loc) const {
  return ingot::argsort(*this, dim, descending, stable, loc);
}
ValuesIndices Tensor::topk(int64_t k, int64_t dim, bool largest, bool sorted, SourceLoc loc) const {
  return ingot::topk(*this, k, dim, largest, sorted, loc);
}
ValuesIndices Tensor::kthvalue(int64_t k, int64_t dim, bool keepdim, SourceLoc loc) const {
  return ingot::kthvalue(*this, k, dim, keepdim, loc);
}
Tensor Tensor::median(SourceLoc loc) const { return ingot::median(*this, loc); }
ValuesIndices Tensor::median(int64_t dim, bool keepdim, SourceLoc loc) const {
  return ingot::median(*this, dim, keepdim, loc);
}
Tensor Tensor::norm(double p, const Axes& dim, bool keepdim, SourceLoc loc) const {
  return ingot::norm(*this, p, dim, keepdim, loc);
}
Tensor Tensor::count_nonzero(const Axes& dim, SourceLoc loc) const {
  return ingot::count_nonzero(*this, dim, loc);
}
Tensor Tensor::nansum(const Axes& dim, bool keepdim, SourceLoc loc) const {
  return ingot::nansum(*this, dim, keepdim, loc);
}
Tensor Tensor::nanmean(const Axes& dim, bool keepdim, SourceLoc loc) const {
  return ingot::nanmean(*this, dim, keepdim, loc);
}
Tensor Tensor::take(const Tensor& index, SourceLoc loc) const {
  return ingot::take(*this, index, loc);
}
Tensor Tensor::take_along_dim(const Tensor& index, std::optional<int64_t> dim,
                              SourceLoc loc) const {
  return ingot::take_along_dim(*this, index, dim, loc);
}
Tensor Tensor::masked_select(const Tensor& mask, SourceLoc loc) const {
  return ingot::masked_select(*this, mask, loc);
}
Tensor Tensor::nonzero(SourceLoc loc) const { return ingot::nonzero(*this, loc); }
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Operand& src, SourceLoc loc) const {
  return ingot::scatter(*this, dim, index, src, loc);
}
Tensor Tensor::scatter_add(int64_t dim, const Tensor& index, const Tensor& src,
                           SourceLoc loc) const {
  return ingot::scatter_add(*this, dim, index, src, loc);
}
Tensor Tensor::scatter_reduce(int64_t dim, const Tensor& index, const Tensor& src,
                              std::string_view reduce, bool include_self, SourceLoc loc) const {
  return ingot::scatter_reduce(*this, dim, index, src, reduce, include_self, loc);
}
Tensor Tensor::index_add(int64_t dim, const Tensor& index, const Tensor& source,
                         const Scalar& alpha, SourceLoc loc) const {
  return ingot::index_add(*this, dim, index, source, alpha, loc);
}
Tensor Tensor::index_copy(int64_t dim, const Tensor& index, const Tensor& source,
                          SourceLoc loc) const {
  return ingot::index_copy(*this, dim, index, source, loc);
}
Tensor Tensor::index_fill(int64_t dim, const Tensor& index, const Operand& value,
                          SourceLoc loc) const {
  return ingot::index_fill(*this, dim, index, value, loc);
}
Tensor Tensor::masked_scatter(const Tensor& mask, const Tensor& source, SourceLoc loc) const {
  return ingot::masked_scatter(*this, mask, source, loc);
}

namespace {

Tensor& into(Tensor& x, const Tensor& value, const char* op, const SourceLoc& loc) {
  write_through(x, node_of(value, op, loc), op, loc);
  return x;
}

}  // namespace

Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Operand& src, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return into(*this, ingot::scatter(*this, dim, index, src, loc), "scatter_", loc);
}
Tensor& Tensor::scatter_add_(int64_t dim, const Tensor& index, const Tensor& src, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return into(*this, ingot::scatter_add(*this, dim, index, src, loc), "scatter_add_", loc);
}
Tensor& Tensor::scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& src,
                                std::string_view reduce, bool include_self, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return into(*this, ingot::scatter_reduce(*this, dim, index, src, reduce, include_self, loc),
              "scatter_reduce_", loc);
}
Tensor& Tensor::index_add_(int64_t dim, const Tensor& index, const Tensor& source,
                           const Scalar& alpha, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return into(*this, ingot::index_add(*this, dim, index, source, alpha, loc), "index_add_", loc);
}
Tensor& Tensor::index_copy_(int64_t dim, const Tensor& index, const Tensor& source,
                            SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return into(*this, ingot::index_copy(*this, dim, index, source, loc), "index_copy_", loc);
}
Tensor& Tensor::index_fill_(int64_t dim, const Tensor& index, const Operand& value,
                            SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return into(*this, ingot::index_fill(*this, dim, index, value, loc), "index_fill_", loc);
}
Tensor& Tensor::masked_scatter_(const Tensor& mask, const Tensor& source, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return into(*this, ingot::masked_scatter(*this, mask, source, loc), "masked_scatter_", loc);
}
Tensor& Tensor::put_(const Tensor& index, const Tensor& source, bool accumulate, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return into(*this, ingot::put(*this, index, source, accumulate, loc), "put_", loc);
}

}  // namespace ingot
