// See matmul.h.
#include "backend/cuda/cublaslt/matmul.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "backend/cuda/kernels/kernels.h"
#include "backend/cuda/offers.h"
#include "backend/cuda/runtime/gpu.h"
#include "ingot/error.h"

namespace ingot::cuda {
namespace {

constexpr int kCandidates = 8;

struct Layout {
  lt::Layout raw = nullptr;
  ~Layout() {
    if (raw) blaslt().layout_destroy(raw);
  }
};

/// The largest power of two, up to 256, that divides every address the call can see of this
/// operand.
uint32_t alignment(const OperandSpec& o, int64_t batch_stride, bool loops) {
  auto size = static_cast<int64_t>(size_of(o.dtype));
  int64_t g = std::gcd(int64_t{256}, o.offset * size);
  g = std::gcd(g, batch_stride * size);
  return static_cast<uint32_t>(loops ? std::gcd(g, int64_t{16}) : g);
}

class LtMatmul : public CudaExecutable {
 public:
  LtMatmul(Gpu& gpu, const LibrarySpec& spec, const LtProblem& problem)
      : gpu_(gpu),
        lt_(gpu.blas()),
        spec_(spec),
        p_(problem),
        in_(spec.operands[static_cast<size_t>(spec.written)].dtype),
        result_(spec.has(Epilogue::GeluTanh) ? spec.written - 1 : 0),
        bias_(spec.has(Epilogue::BiasGrad) ? 1 : spec.written + 2),
        aux_(!has_aux(spec)      ? -1
             : spec.written == 2 ? 0
                                 : spec.written + 2) {
    describe();
    find_candidates();
    for (const lt::Heuristic& h : candidates_) scratch_bytes = std::max(scratch_bytes, h.workspace);
    launches = static_cast<int>(p_.calls());
    recall();
  }
  ~LtMatmul() override {
    if (desc_) blaslt().desc_destroy(desc_);
  }
  bool ends_with_kernel() const override { return true; }
  bool found() const { return !candidates_.empty(); }

  void enqueue(const LaunchSite& site) override {
    auto set_pointer = [&](int attribute, int operand) {
      const OperandSpec& o = spec_.operands[static_cast<size_t>(operand)];
      const char* at = static_cast<const char*>(site.address(operand)) +
                       o.offset * static_cast<int64_t>(size_of(o.dtype));
      check_lt(blaslt().desc_set(desc_, attribute, &at, sizeof at),
               "setting an epilogue's operand");
    };
    if (spec_.has(Epilogue::Bias) || sums()) set_pointer(lt::kBiasPointer, bias_);
    if (aux_ >= 0) set_pointer(lt::kAuxPointer, aux_);
    if (!chosen_) choose(site);
    std::vector<int64_t> at(p_.loops.size(), 0);
    for (int64_t c = 0, calls = p_.calls(); c < calls; ++c) {
      int64_t a = 0, b = 0, d = 0, rest = c;
      for (size_t l = p_.loops.size(); l-- > 0;) {
        int64_t i = rest % p_.loops[l].count;
        rest /= p_.loops[l].count;
        a += i * p_.loops[l].a, b += i * p_.loops[l].b, d += i * p_.loops[l].d;
      }
      check_lt(call(site, algo_, a, b, d, nullptr), "cublasLtMatmul");
    }
  }

 private:
  bool sums() const { return spec_.has(Epilogue::BiasGrad); }

  void make_layout(Layout& l, DType t, int64_t rows, int64_t cols, int64_t ld,
                   int64_t stride) const {
    check_lt(blaslt().layout_create(&l.raw, lt::data_type(t), static_cast<uint64_t>(rows),
                                    static_cast<uint64_t>(cols), ld),
             "describing a matrix");
    if (p_.batch == 1) return;
    auto count = static_cast<int32_t>(p_.batch);
    check_lt(blaslt().layout_set(l.raw, lt::kBatchCount, &count, sizeof count),
             "describing a batch");
    check_lt(blaslt().layout_set(l.raw, lt::kBatchStride, &stride, sizeof stride),
             "describing a batch");
  }

  void describe() {
    DType out = spec_.operands[0].dtype;
    bool f64 = in_ == DType::Float64;
    int compute = f64                                   ? lt::kCompute64F
                  : in_ == DType::Float32 && spec_.tf32 ? lt::kCompute32FTf32
                                                        : lt::kCompute32F;
    check_lt(blaslt().desc_create(&desc_, compute, f64 ? lt::kF64 : lt::kF32),
             "describing a product");
    int32_t ta = p_.trans_a, tb = p_.trans_b;
    check_lt(blaslt().desc_set(desc_, lt::kTransA, &ta, sizeof ta), "describing a product");
    check_lt(blaslt().desc_set(desc_, lt::kTransB, &tb, sizeof tb), "describing a product");
    int32_t epilogue = spec_.has(Epilogue::Relu)           ? lt::kRelu
                       : spec_.has(Epilogue::GeluTanh)     ? lt::kGelu
                       : spec_.has(Epilogue::GeluTanhGrad) ? lt::kGeluGrad
                       : !sums()                           ? 0
                       : p_.operand_a == spec_.written     ? lt::kSumA
                                                           : lt::kSumB;
    const void* place =
        reinterpret_cast<const void*>(uintptr_t{256});  // for the heuristics: some aligned address
    if (sums())
      check_lt(blaslt().desc_set(desc_, lt::kBiasPointer, &place, sizeof place),
               "describing the sums");
    if (spec_.has(Epilogue::Bias)) {
      epilogue |= lt::kBias;
      DType bias = spec_.operands[static_cast<size_t>(bias_)].dtype;
      int32_t type = lt::data_type(bias);
      if (bias != out)
        check_lt(blaslt().desc_set(desc_, lt::kBiasType, &type, sizeof type),
                 "describing the bias");
      check_lt(blaslt().desc_set(desc_, lt::kBiasPointer, &place, sizeof place),
               "describing the bias");
    }
    if (aux_ >= 0) {
      epilogue |= lt::kAux;
      check_lt(blaslt().desc_set(desc_, lt::kAuxPointer, &place, sizeof place),
               "describing GELU's operand");
      check_lt(blaslt().desc_set(desc_, lt::kAuxLd, &p_.m, sizeof p_.m),
               "describing GELU's operand");
    }
    epilogue_ = epilogue ? epilogue : lt::kDefault;
    check_lt(blaslt().desc_set(desc_, lt::kEpilogue, &epilogue_, sizeof epilogue_),
             "describing the epilogue");
    make_layout(a_, in_, p_.trans_a ? p_.k : p_.m, p_.trans_a ? p_.m : p_.k, p_.lda, p_.stride_a);
    make_layout(b_, in_, p_.trans_b ? p_.n : p_.k, p_.trans_b ? p_.k : p_.n, p_.ldb, p_.stride_b);
    make_layout(d_, out, p_.m, p_.n, p_.ldd, p_.stride_d);
  }

  void find_candidates() {
    lt::Preference preference = nullptr;
    check_lt(blaslt().preference_create(&preference), "making a preference");
    uint64_t workspace = kMatmulWorkspace;
    bool loops = !p_.loops.empty();
    align_[0] = alignment(spec_.operands[p_.operand_a], p_.stride_a, loops);
    align_[1] = alignment(spec_.operands[p_.operand_b], p_.stride_b, loops);
    align_[2] = alignment(spec_.operands[0], p_.stride_d, loops);
    auto set = [&](int attribute, const auto& v) {
      blaslt().preference_set(preference, attribute, &v, sizeof v);
    };
    set(lt::kMaxWorkspace, workspace);
    set(lt::kAlignA, align_[0]);
    set(lt::kAlignB, align_[1]);
    set(lt::kAlignC, align_[2]);
    set(lt::kAlignD, align_[2]);
    lt::Heuristic h[kCandidates];
    int n = 0;
    int rc = blaslt().heuristic(lt_.handle, desc_, a_.raw, b_.raw, d_.raw, d_.raw, preference,
                                kCandidates, h, &n);
    blaslt().preference_destroy(preference);
    for (int i = 0; rc == 0 && i < n; ++i)
      if (h[i].state == 0 && h[i].workspace <= kMatmulWorkspace) candidates_.push_back(h[i]);
  }

  std::string key() const {
    auto s = [](int64_t v) { return std::to_string(v); };
    return std::string(name_of(in_)) + ":" + std::string(name_of(spec_.operands[0].dtype)) + ":" +
           (p_.trans_a ? "T" : "N") + (p_.trans_b ? "T" : "N") + ":" + s(p_.m) + "x" + s(p_.n) +
           "x" + s(p_.k) + ":ld" + s(p_.lda) + "," + s(p_.ldb) + "," + s(p_.ldd) + ":b" +
           s(p_.batch) + "," + s(p_.stride_a) + "," + s(p_.stride_b) + "," + s(p_.stride_d) + ":e" +
           s(epilogue_) + (spec_.accumulate ? "+" : "") + ":a" + s(align_[0]) + "," + s(align_[1]) +
           "," + s(align_[2]) + (spec_.tf32 ? ":tf32" : "");
  }

  /// The choice of an earlier process, if the library still knows it.
  void recall() {
    if (candidates_.empty()) return;
    if (!Tuning::wanted() || candidates_.size() == 1) {
      set_choice(candidates_[0]);
      return;
    }
    lt::Heuristic h{};
    if (!unhex(lt_.tuning.find(key()), h.algo.data)) return;
    lt::Heuristic checked{};
    if (blaslt().check_algo(lt_.handle, desc_, a_.raw, b_.raw, d_.raw, d_.raw, &h.algo, &checked) !=
        0)
      return;
    if (checked.workspace > scratch_bytes) return;
    h.workspace = checked.workspace;
    set_choice(h);
  }

  void set_choice(const lt::Heuristic& h) {
    algo_ = h;
    chosen_ = true;
  }

  int call(const LaunchSite& site, const lt::Heuristic& h, int64_t a, int64_t b, int64_t d,
           void* elsewhere) const {
    auto place = [&](int operand, int64_t more) {
      const OperandSpec& o = spec_.operands[static_cast<size_t>(operand)];
      return static_cast<char*>(site.address(operand)) +
             (o.offset + more) * static_cast<int64_t>(size_of(o.dtype));
    };
    void* out = elsewhere ? elsewhere : place(result_, d);
    const double one64 = 1, beta64 = spec_.accumulate ? 1 : 0;
    const float one32 = 1, beta32 = spec_.accumulate ? 1 : 0;
    bool f64 = in_ == DType::Float64;
    const void *alpha = f64 ? static_cast<const void*>(&one64) : &one32,
               *beta = f64 ? static_cast<const void*>(&beta64) : &beta32;
    return blaslt().matmul(lt_.handle, desc_, alpha, place(p_.operand_a, a), a_.raw,
                           place(p_.operand_b, b), b_.raw, beta, out, d_.raw, out, d_.raw, &h.algo,
                           site.header.scratch, h.workspace, site.stream);
  }

  /// Times the candidates on the run's own operands. What this writes is written again by the call
  /// itself, except when that adds to what is there: then a copy is written.
  void choose(const LaunchSite& site) {
    set_choice(candidates_[0]);
    if (site.capturing) {  // nothing may be waited for now
      chosen_ = false;
      return;
    }
    void* elsewhere = nullptr;
    size_t bytes = static_cast<size_t>((p_.n - 1) * p_.ldd + p_.m + (p_.batch - 1) * p_.stride_d) *
                   size_of(spec_.operands[0].dtype);
    if (spec_.accumulate && !(elsewhere = gpu_.allocate(bytes))) return;
    CUevent begin, end;
    check(driver().event_create(&begin, CU_EVENT_DEFAULT), "making an event");
    check(driver().event_create(&end, CU_EVENT_DEFAULT), "making an event");
    auto time = [&](const lt::Heuristic& h, int repeats) -> float {
      check(driver().event_record(begin, site.stream), "recording an event");
      for (int r = 0; r < repeats; ++r)
        if (call(site, h, 0, 0, 0, elsewhere) != 0) return -1;
      check(driver().event_record(end, site.stream), "recording an event");
      check(driver().event_synchronize(end), "measuring a product");
      float ms = 0;
      check(driver().event_elapsed_time(&ms, begin, end), "measuring a product");
      return ms / static_cast<float>(repeats);
    };
    float best = 1e30f;
    for (const lt::Heuristic& h : candidates_) {
      float warm = time(h, 1);
      if (warm < 0) continue;
      float again = time(h, 1);
      if (again > 1.5f * best) continue;
      int repeats = std::clamp(static_cast<int>(0.5f / std::max(again, 1e-3f)), 2, 30);
      float ms = std::min(time(h, repeats), time(h, repeats));
      if (ms < best * 0.99f) {  // a later suggestion must be clearly better
        best = ms;
        set_choice(h);
      }
    }
    driver().event_destroy(begin);
    driver().event_destroy(end);
    if (elsewhere) gpu_.deallocate(elsewhere, bytes);
    lt_.tuning.keep(key(), hex(algo_.algo.data));
  }

  Gpu& gpu_;
  BlasLt& lt_;
  LibrarySpec spec_;
  LtProblem p_;
  DType in_;
  int result_, bias_, aux_;  // operands; -1: none
  lt::MatmulDesc desc_ = nullptr;
  Layout a_, b_, d_;
  int32_t epilogue_ = lt::kDefault;
  uint32_t align_[3] = {};
  std::vector<lt::Heuristic> candidates_;
  lt::Heuristic algo_{};
  bool chosen_ = false;
};

/// What a separate kernel does after the product; a bias stays the product's.
constexpr Epilogues kPassed{Epilogue::GeluTanh, Epilogue::KeepSum, Epilogue::GeluTanhGrad,
                            Epilogue::BiasGrad};

/// The product, then what its epilogue would have done, by a kernel of its own.
class ThenPass : public CudaExecutable {
 public:
  ThenPass(Gpu& gpu, const LibrarySpec& spec) : at_end_(spec.has(Epilogue::GeluTanhGrad)) {
    LibrarySpec plain = spec;
    plain.epilogues = spec.epilogues.without(kPassed);
    plain.written = 1;
    // out, a, b and a bias in their order: what is more lies beside out, or at the end.
    if (at_end_)
      plain.operands.pop_back();
    else
      plain.operands.erase(plain.operands.begin() + 1);
    buffers_ = static_cast<int>(plain.operands.size());
    auto own = [](std::unique_ptr<Executable> e) {
      return std::unique_ptr<CudaExecutable>(static_cast<CudaExecutable*>(e.release()));
    };
    product_ = own(prepare_library(gpu, plain));
    const bool sums = spec.has(Epilogue::BiasGrad);
    CudaKernel k = sums ? row_sums(spec) : gelu_pass(spec);
    auto module = gpu.modules->get(k.text);
    pass_ =
        std::make_unique<KernelExecutable>(k.text, std::move(k.launch), 1, 2, std::move(module));
    to_ = at_end_ ? 0 : 1;
    from_ = at_end_ ? buffers_ : sums ? 2 : 0;
    scratch_bytes = product_->scratch_bytes;
    launches = product_->launches + 1;
  }
  void ready() override {
    product_->ready();
    pass_->ready();
  }
  bool ends_with_kernel() const override { return true; }
  void enqueue(const LaunchSite& site) override {
    std::vector<int64_t> of_product{site.pointers[0]};
    for (int b = 1; b < buffers_; ++b) of_product.push_back(site.pointers[at_end_ ? b : b + 1]);
    LaunchSite first = site;
    first.pointers = of_product.data();
    product_->enqueue(first);
    const int64_t of_pass[2] = {site.pointers[to_], site.pointers[from_]};
    LaunchSite second = site;
    second.pointers = of_pass;
    second.after_kernel = site.after_kernel && product_->ends_with_kernel();
    pass_->enqueue(second);
  }

 private:
  bool at_end_;
  int buffers_, to_, from_;  // of the call's buffers: what the pass writes and reads
  std::unique_ptr<CudaExecutable> product_, pass_;
};

}  // namespace

const char* lt_matmul_refuses(const LibrarySpec& spec) {
  LtProblem p;
  const DType type = spec.operands[0].dtype;
  if (!blaslt().matmul) return "the library was not found";
  if (type == DType::Float64 && spec.has(Epilogue::GeluTanh))
    return "its GELU is not exact to float64's digits";
  if (type == DType::Float32 && spec.has(Epilogue::BiasGrad))
    return "its bias gradient is for 16-bit types";
  return describe_matmul(spec, p) ? nullptr : "it does not take these types or strides";
}

std::unique_ptr<Executable> prepare_lt_matmul(Gpu& gpu, const LibrarySpec& spec, const char*& why) {
  LtProblem p;
  gpu.make_current();
  describe_matmul(spec, p);
  auto call = std::make_unique<LtMatmul>(gpu, spec, p);
  if (call->found()) return call;
  why = "the library has no algorithm for it";
  return nullptr;
}

std::unique_ptr<Executable> prepare_matmul_and_pass(Gpu& gpu, const LibrarySpec& spec,
                                                    const char*&) {
  gpu.make_current();
  return std::make_unique<ThenPass>(gpu, spec);
}

}  // namespace ingot::cuda
