#include "ingot/nn/containers.h"

#include <memory>

#include "ops/common.h"

namespace ingot::nn {

ParameterList::ParameterList(const std::vector<Tensor>& tensors, SourceLoc loc) {
  for (const Tensor& t : tensors) push_back(t, loc);
}

void ParameterList::push_back(const Tensor& t, SourceLoc loc) {
  register_parameter(std::to_string(own_count()), t, user_loc(loc));
}

Tensor ParameterList::operator[](size_t i) const {
  if (i >= own_count())
    fail(ErrorKind::Index, "ParameterList",
         "there is no parameter " + std::to_string(i) + ", only " + std::to_string(own_count()),
         user_loc(SourceLoc::current()));
  return own(i);
}

Sequential::Sequential() : items_(std::make_shared<std::vector<Item>>()) {}

size_t Sequential::size() const { return items_->size(); }

void Sequential::append(Item item) { items_->push_back(std::move(item)); }

Sequential::Sequential(const Sequential& o) : Module(o), items_(o.items_) {
  if (!detail::is_cloning()) return;
  items_ = std::make_shared<std::vector<Item>>();
  for (const Item& item : *o.items_) items_->push_back({item.copy(*item.layer), item.copy});
}

Tensor Sequential::forward(Tensor x) {
  for (const Item& item : *items_) x = (*item.layer)(std::move(x));
  return x;
}

Module& Sequential::operator[](size_t i) {
  if (i >= items_->size())
    fail(ErrorKind::Index, "Sequential",
         "there is no module " + std::to_string(i) + ", only " + std::to_string(items_->size()),
         user_loc(SourceLoc::current()));
  return *(*items_)[i].layer;
}

}  // namespace ingot::nn
