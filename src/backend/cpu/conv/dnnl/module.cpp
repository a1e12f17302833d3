// See api.h. oneDNN's parallel regions have one thread here: Ingot's own threads share the work, so
// that results do not depend on their number and no other thread pool exists.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "backend/cpu/conv/dnnl/api.h"
#include "dnnl.hpp"

namespace {

using dnnl::memory;
using ingot::cpu::DnnlApi;
using ingot::cpu::DnnlBlocking;
using ingot::cpu::DnnlConvDesc;

/// The setting belongs to the calling thread.
void one_thread() {
  static auto* set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  static auto* here = set ? set : [] {
    Dl_info info{};
    void* self = dladdr(reinterpret_cast<void*>(&one_thread), &info)
                     ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD)
                     : nullptr;
    return self ? reinterpret_cast<void (*)(int)>(dlsym(self, "omp_set_num_threads")) : nullptr;
  }();
  if (here) here(1);
}

const dnnl::engine& engine() {
  static const dnnl::engine e = [] {
    // Ingot shares equal primitives and frees them with the plans that use them; oneDNN's own cache
    // would keep a thousand more.
    dnnl::set_primitive_cache_capacity(0);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return e;
}

/// What a thread keeps from call to call.
const dnnl::stream& thread_stream() {
  thread_local const dnnl::stream stream = [] {
    one_thread();
    return dnnl::stream(engine());
  }();
  return stream;
}

struct Conv {
  dnnl::primitive primitive;
  memory::desc a, b, out, bias, scratch, weight;
  int a_arg, b_arg, out_arg;
};

memory::desc activation(const DnnlConvDesc& d, int64_t channels, const int64_t* size) {
  memory::dims s{d.N, channels};
  s.insert(s.end(), size, size + d.dims);
  const memory::format_tag tags[] = {memory::format_tag::nwc, memory::format_tag::nhwc,
                                     memory::format_tag::ndhwc};
  return {s, d.bf16 ? memory::data_type::bf16 : memory::data_type::f32, tags[d.dims - 1]};
}

struct Geometry {
  memory::desc x, w, y, bias;
  memory::dims stride, dilation, front, behind;
  explicit Geometry(const DnnlConvDesc& d) {
    x = activation(d, d.C, d.x);
    y = activation(d, d.O, d.y);
    memory::dims s;
    if (d.G > 1)
      s = {d.G, d.O / d.G, d.C / d.G};
    else
      s = {d.O, d.C};
    s.insert(s.end(), d.k, d.k + d.dims);
    const bool f32 = !d.bf16 || d.kind == DnnlConvDesc::GradWeight;
    w = memory::desc(s, f32 ? memory::data_type::f32 : memory::data_type::bf16,
                     memory::format_tag::any);
    if (d.bias)
      bias = memory::desc({d.O}, d.bf16 ? memory::data_type::bf16 : memory::data_type::f32,
                          memory::format_tag::x);
    stride.assign(d.stride, d.stride + d.dims);
    dilation.assign(d.dilation, d.dilation + d.dims);
    for (auto& v : dilation) v -= 1;
    front.assign(d.front, d.front + d.dims);
    behind.assign(d.behind, d.behind + d.dims);
  }
};

constexpr auto kDirect = dnnl::algorithm::convolution_direct;
using Forward = dnnl::convolution_forward;
using GradInput = dnnl::convolution_backward_data;
using GradWeight = dnnl::convolution_backward_weights;

#if DNNL_VERSION_MAJOR >= 3
Forward::primitive_desc forward_of(const Geometry& g, bool bias, const memory::desc& w,
                                   const dnnl::primitive_attr& attr) {
  const auto kind = dnnl::prop_kind::forward_training;
  if (bias)
    return {engine(), kind,     kDirect,    g.x,     w,        g.bias,
            g.y,      g.stride, g.dilation, g.front, g.behind, attr};
  return {engine(), kind, kDirect, g.x, w, g.y, g.stride, g.dilation, g.front, g.behind, attr};
}
GradInput::primitive_desc grad_input_of(const Geometry& g, const Forward::primitive_desc& f,
                                        const dnnl::primitive_attr& attr) {
  return {engine(), kDirect, g.x, g.w, g.y, g.stride, g.dilation, g.front, g.behind, f, attr};
}
GradWeight::primitive_desc grad_weight_of(const Geometry& g, const Forward::primitive_desc& f,
                                          const dnnl::primitive_attr& attr) {
  return {engine(), kDirect, g.x, g.w, g.y, g.stride, g.dilation, g.front, g.behind, f, attr};
}
void blocking_of(const memory::desc& m, DnnlBlocking& b) {
  const auto size = m.get_dims(), padded = m.get_padded_dims(), stride = m.get_strides(),
             block = m.get_inner_blks(), dim = m.get_inner_idxs();
  b.rank = static_cast<int32_t>(size.size());
  for (int i = 0; i < b.rank; ++i)
    b.size[i] = size[i], b.padded[i] = padded[i], b.stride[i] = stride[i];
  b.blocks = m.get_inner_nblks();
  for (int i = 0; i < b.blocks; ++i) b.block[i] = block[i], b.dim[i] = static_cast<int32_t>(dim[i]);
}
bool is_blocked(const memory::desc& m) {
  return m.get_format_kind() == memory::format_kind::blocked;
}
#else
Forward::primitive_desc forward_of(const Geometry& g, bool bias, const memory::desc& w,
                                   const dnnl::primitive_attr& attr) {
  const auto kind = dnnl::prop_kind::forward_training;
  if (bias)
    return {{kind, kDirect, g.x, w, g.bias, g.y, g.stride, g.dilation, g.front, g.behind},
            attr,
            engine()};
  return {{kind, kDirect, g.x, w, g.y, g.stride, g.dilation, g.front, g.behind}, attr, engine()};
}
GradInput::primitive_desc grad_input_of(const Geometry& g, const Forward::primitive_desc& f,
                                        const dnnl::primitive_attr& attr) {
  return {{kDirect, g.x, g.w, g.y, g.stride, g.dilation, g.front, g.behind}, attr, engine(), f};
}
GradWeight::primitive_desc grad_weight_of(const Geometry& g, const Forward::primitive_desc& f,
                                          const dnnl::primitive_attr& attr) {
  return {{kDirect, g.x, g.w, g.y, g.stride, g.dilation, g.front, g.behind}, attr, engine(), f};
}
void blocking_of(const memory::desc& m, DnnlBlocking& b) {
  b.rank = m.data.ndims;
  for (int i = 0; i < b.rank; ++i) {
    b.size[i] = m.data.dims[i];
    b.padded[i] = m.data.padded_dims[i];
    b.stride[i] = m.data.format_desc.blocking.strides[i];
  }
  b.blocks = m.data.format_desc.blocking.inner_nblks;
  for (int i = 0; i < b.blocks; ++i) {
    b.block[i] = m.data.format_desc.blocking.inner_blks[i];
    b.dim[i] = static_cast<int32_t>(m.data.format_desc.blocking.inner_idxs[i]);
  }
}
bool is_blocked(const memory::desc& m) { return m.data.format_kind == dnnl_blocked; }
#endif

template <class Desc>
bool is_slow(const Desc& pd) {
  const char* name = pd.impl_info_str();
  return std::strncmp(name, "ref", 3) == 0 || std::strncmp(name, "simple", 6) == 0;
}

/// The AVX-512 gradient of a 1x1 window with a stride copies the input's rows in blocks of 16
/// channels and writes past the scratch memory it asked for when the last block is not full
/// (2.6.3).
template <class Desc>
bool overruns(const Desc& pd, const DnnlConvDesc& d) {
  return std::strncmp(pd.impl_info_str(), "jit_1x1", 7) == 0 && d.C % 16 != 0 &&
         std::any_of(d.stride, d.stride + d.dims, [](int64_t s) { return s > 1; });
}

std::unique_ptr<Conv> make(const DnnlConvDesc& d) {
  const Geometry g(d);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  auto c = std::make_unique<Conv>();
  // The hint of a gradient is a forward of the same types.
  memory::desc any = g.w;
  if (d.bf16 && d.kind == DnnlConvDesc::GradWeight)
    any = memory::desc(g.w.dims(), memory::data_type::bf16, memory::format_tag::any);
  Forward::primitive_desc f = forward_of(g, d.bias != 0, any, attr);
  if (d.kind == DnnlConvDesc::Forward) {
    if (is_slow(f)) return nullptr;
    *c = {Forward(f),          f.src_desc(),     f.weights_desc(), f.dst_desc(),     g.bias,
          f.scratchpad_desc(), f.weights_desc(), DNNL_ARG_SRC,     DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
  } else if (d.kind == DnnlConvDesc::GradInput) {
    GradInput::primitive_desc p = grad_input_of(g, f, attr);
    if (is_slow(p) || overruns(p, d)) return nullptr;
    *c = {GradInput(p),
          p.diff_dst_desc(),
          p.weights_desc(),
          p.diff_src_desc(),
          {},
          p.scratchpad_desc(),
          p.weights_desc(),
          DNNL_ARG_DIFF_DST,
          DNNL_ARG_WEIGHTS,
          DNNL_ARG_DIFF_SRC};
  } else {
    GradWeight::primitive_desc p = grad_weight_of(g, f, attr);
    if (is_slow(p) || overruns(p, d)) return nullptr;
    *c = {GradWeight(p),         p.src_desc(), p.diff_dst_desc(),
          p.diff_weights_desc(), {},           p.scratchpad_desc(),
          p.diff_weights_desc(), DNNL_ARG_SRC, DNNL_ARG_DIFF_DST,
          DNNL_ARG_DIFF_WEIGHTS};
  }
  return is_blocked(c->weight) ? std::move(c) : nullptr;
}

void* conv_create(const DnnlConvDesc* d) {
  one_thread();
  try {
    return make(*d).release();
  } catch (const std::exception&) {
    return nullptr;
  }
}
void conv_destroy(void* c) { delete static_cast<Conv*>(c); }
void conv_weight(void* c, DnnlBlocking* b) {
  const memory::desc& w = static_cast<Conv*>(c)->weight;
  blocking_of(w, *b);
  b->bytes = static_cast<int64_t>(w.get_size());
}
size_t conv_scratch(void* c) { return static_cast<Conv*>(c)->scratch.get_size(); }

void conv_run(void* handle, const void* a, const void* b, void* out, const void* bias,
              void* scratch) {
  const dnnl::stream& stream = thread_stream();
  Conv& c = *static_cast<Conv*>(handle);
  std::unordered_map<int, memory> args;
  auto put = [&](int arg, const memory::desc& m, const void* p) {
    args.emplace(arg, memory(m, engine(), const_cast<void*>(p)));
  };
  put(c.a_arg, c.a, a);
  put(c.b_arg, c.b, b);
  put(c.out_arg, c.out, out);
  if (bias) put(DNNL_ARG_BIAS, c.bias, bias);
  if (c.scratch.get_size()) put(DNNL_ARG_SCRATCHPAD, c.scratch, scratch);
  c.primitive.execute(stream, args);
}

}  // namespace

extern "C" const DnnlApi* ingot_dnnl_api() {
  static const DnnlApi api{
      ingot::cpu::kDnnlApiVersion, conv_create, conv_destroy, conv_weight, conv_scratch, conv_run};
  return &api;
}
