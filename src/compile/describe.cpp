#include "compile/describe.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <memory>
#include <mutex>

#include <ostream>

#include "graph/cell.h"
#include "graph/recorder.h"
#include "ingot/runtime.h"

namespace ingot {
namespace {

std::string format(const char* f, ...) __attribute__((format(printf, 1, 2)));
std::string format(const char* f, ...) {
  char buf[512];
  va_list args;
  va_start(args, f);
  std::vsnprintf(buf, sizeof buf, f, args);
  va_end(args);
  return buf;
}

std::string human(double bytes) {
  const char* unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int u = 0;
  while (bytes >= 1024 && u < 4) {
    bytes /= 1024;
    ++u;
  }
  return format(u ? "%.1f %s" : "%.0f %s", bytes, unit[u]);
}

}  // namespace

double memory_seconds(const Step& s, const DeviceRates& r) {
  return (s.bytes_read + s.bytes_written) / (r.memory_gbs * 1e9);
}

double compute_seconds(const Step& s, const DeviceRates& r) {
  bool half = s.kind == Step::Library && !s.library.operands.empty() &&
              is_half(s.library.operands[0].dtype);
  return s.flops / (s.kind == Step::Library ? (half ? r.flops_16 : r.flops_f32) : r.scalar_flops);
}

double predicted_seconds(const Step& s, const DeviceRates& r) {
  return std::max(memory_seconds(s, r), compute_seconds(s, r)) +
         r.launch_us * 1e-6 * (s.exe ? s.exe->launches : 1);
}

const char* kind_name(const Step& s) {
  return s.kind == Step::Copy      ? "copy"
         : s.kind == Step::Library ? "library"
         : s.parts[0].is_row()     ? "row"
         : s.parts[0].has_reduce() ? "reduce"
                                   : "map";
}

namespace {

std::string place(const Step& s, const Plan& p) {
  std::string out;
  for (size_t b = 0; b < s.buffers.size() && b < 12; ++b) {
    bool written = false;
    if (s.kind != Step::Kernel) {
      written = b == 0;
    } else {
      size_t at = b;
      for (const auto* list : {&s.parts, &s.second})
        for (const KernelSpec& k : *list) {
          if (at < k.buffers.size()) written = k.buffers[at].written;
          at -= k.buffers.size();
        }
    }
    if (!written) continue;
    const Binding& w = s.buffers[b];
    if (!out.empty()) out += " ";
    if (w.place == Binding::Arena) out += "arena+" + std::to_string(w.offset);
    if (w.place == Binding::Leaf) out += "in place";
    if (w.place == Binding::Output) out += p.outputs[w.index].donated >= 0 ? "in place" : "kept";
  }
  return out;
}

// An H200 as measured: copy bandwidth, bf16 matmul of 8192, TF32 off.
DeviceRates h200() {
  return {.name = "h200",
          .memory_gbs = 4284,
          .flops_f32 = 50e12,
          .flops_16 = 786e12,
          .flops_f64 = 60e12,
          .scalar_flops = 30e12,
          .launch_us = 1,
          .threads = 132 * 2048};
}

DeviceRates named_rates(const std::string& name, const Plan& p, const SourceLoc& loc) {
  if (name == "h200") return h200();
  if (!name.empty())
    throw Error(ErrorKind::Value, "explain", "there are no rates for \"" + name + "\"",
                user_loc(loc), "use \"h200\", or \"\" for the tensors' own device");
  Device d = p.steps.empty() ? Device(DeviceType::CPU, 0) : p.steps[0].device;
  return backend_for(d.type())->rates(d.index());
}

}  // namespace

namespace {

/// "few rows: there are too many rows", ...
std::vector<std::string> texts_of(const std::vector<Refusal>& refused) {
  std::vector<std::string> texts;
  for (const Refusal& r : refused) texts.push_back(std::string(r.kernel) + ": " + r.why);
  return texts;
}

// Library calls, in order, and what was decomposed.
std::vector<Explanation::Choice> choices_of(const Plan& p) {
  std::vector<Explanation::Choice> choices;
  for (const Step& s : p.steps)
    if (s.exe && s.exe->kernel)
      choices.push_back({s.label, s.exe->kernel, texts_of(s.exe->refused)});
  for (const DecomposedCall& d : p.decomposed) choices.push_back({d.call, "", texts_of(d.refused)});
  return choices;
}

std::string reasons(const std::vector<Refusal>& refused) {
  std::string out;
  for (const Refusal& r : refused)
    out += std::string("       not [") + r.kernel + "]: " + r.why + "\n";
  return out;
}

}  // namespace

std::string describe_plan(const Plan& p, const Trace& t, const DescribeOptions& options) {
  const DeviceRates* rates = options.rates;
  std::string out = format("plan: %zu recorded ops, %zu inputs -> %zu steps, %d launches\n",
                           t.nodes.size(), t.leaves.size(), p.steps.size(), p.launches);
  out += format("%4s %-9s %10s %10s %10s %10s  %-18s %s\n", "", "kind", "read", "written", "flops",
                "time us", "place", "ops");
  double read = 0, written = 0, flops = 0, time = 0;
  int n = 0;
  for (const Step& s : p.steps) {
    DeviceRates r = rates ? *rates : backend_for(s.device.type())->rates(s.device.index());
    double us = predicted_seconds(s, r) * 1e6;
    const char* kind = kind_name(s);
    const bool named = s.exe && s.exe->kernel;
    out += format("%4d %-9s %10s %10s %10.3g %10.2f  %-18s %s%s\n", n++, kind,
                  human(s.bytes_read).c_str(), human(s.bytes_written).c_str(), s.flops, us,
                  place(s, p).c_str(), s.label.substr(0, 200).c_str(),
                  named ? (std::string(" [") + s.exe->kernel + "]").c_str() : "");
    if (options.why && named) out += reasons(s.exe->refused);
    if (options.memory) {
      out += "       buffers:";
      for (size_t b = 0; b < s.buffers.size() && b < 24; ++b) {
        const Binding& w = s.buffers[b];
        const char* where = w.place == Binding::Arena  ? "arena+"
                            : w.place == Binding::Leaf ? "input "
                                                       : "output ";
        out += format(" v%d@%s%zu", s.vals[b], where,
                      w.place == Binding::Arena ? w.offset : static_cast<size_t>(w.index));
      }
      out += "\n";
    }
    if (options.kernels)
      for (const auto* list : {&s.parts, &s.second})
        for (const KernelSpec& k : *list) out += to_string(k) + "\n";
    read += s.bytes_read;
    written += s.bytes_written;
    flops += s.flops;
    time += us;
  }
  out += format("total: %s read, %s written, %.4g flops, predicted %.1f us", human(read).c_str(),
                human(written).c_str(), flops, time);
  if (!p.steps.empty())
    out +=
        " on " +
        (rates ? *rates : backend_for(p.steps[0].device.type())->rates(p.steps[0].device.index()))
            .name;
  out += "\n";
  for (const PlanArena& a : p.arenas)
    out += format("arena on %s: %zu bytes at peak\n", a.device.name().c_str(), a.bytes);
  for (size_t v = 0; v < p.graph.vals.size(); ++v)
    if (p.graph.vals[v].copied && !p.graph.vals[v].output && p.graph.users[v] > 0)
      out += format("copied: %s of %s has no index map\n", info(p.graph.vals[v].op).name,
                    to_string(p.graph.vals[v].shape).c_str());
  if (options.why)
    for (const DecomposedCall& d : p.decomposed)
      out += "decomposed: " + d.call + "\n" + reasons(d.refused);
  for (const PlanOutput& o : p.outputs) {
    const Node* node = t.nodes[o.node];
    out += format("kept: %s %s%s, %s (%s:%u)\n", name_of(node->op, node->attrs).c_str(),
                  to_string(node->shape).c_str(), o.donated >= 0 ? " in place" : "",
                  human(static_cast<double>(o.bytes)).c_str(), node->loc.file, node->loc.line);
  }
  if (options.memory)
    for (const Plan::Value& v : p.arena_values)
      out += format("arena: [%zu, %zu) steps %d-%d %s\n", v.offset, v.offset + v.bytes, v.first,
                    v.last, v.what.c_str());
  return out;
}

Explanation explain(const std::vector<Tensor>& tensors, const ExplainOptions& options,
                    SourceLoc loc) {
  Recorder& rec = Recorder::current();
  std::vector<NodeRef> asked;
  for (const Tensor& x : tensors) {
    if (!x.defined())
      throw Error(ErrorKind::State, "explain", "the tensor is undefined", user_loc(loc));
    Node* n = asked.emplace_back(x.cell()->current());
    if (n->recorder && n->recorder != &rec)
      materialise({&n, 1}, user_loc(loc));  // another thread's
  }
  std::lock_guard lock(rec.run_mutex);
  for (NodeRef& n : asked)
    while (!n->computed && (n->op == Op::Alias || n->op == Op::Reshape || n->op == Op::Fence))
      n = n->in[0];
  std::erase_if(asked,
                [](const NodeRef& n) { return n->computed.load(std::memory_order_acquire); });
  Trace t = make_trace(rec, pointers(asked), true);
  Explanation e;
  if (t.nodes.empty()) {
    e.text = "nothing to run: every value is computed already\n";
    return e;
  }
  std::shared_ptr<Plan> p = plan_for(t);
  DeviceRates r = named_rates(options.rates, *p, loc);
  e.text = describe_plan(*p, t, {.memory = true, .why = options.why, .rates = &r});
  e.choices = choices_of(*p);
  for (const Step& s : p->steps) {
    e.generated += s.kind == Step::Kernel;
    e.library += s.kind == Step::Library;
    e.copies += s.kind == Step::Copy;
    e.bytes_read += s.bytes_read;
    e.bytes_written += s.bytes_written;
    e.flops += s.flops;
    e.predicted_us += predicted_seconds(s, r) * 1e6;
    e.kernels.push_back(s.label);
  }
  e.launches = p->launches;
  for (const PlanArena& a : p->arenas) e.peak_bytes += a.bytes;
  for (const PlanOutput& o : p->outputs)
    if (o.donated < 0) e.peak_bytes += o.bytes;
  return e;
}

std::ostream& operator<<(std::ostream& out, const Explanation& e) { return out << e.text; }

std::string what_differs(const std::vector<uint64_t>& key) {
  static std::mutex mutex;
  static std::vector<uint64_t> last;
  std::lock_guard lock(mutex);
  std::string out = "the first plan";
  if (!last.empty()) {
    size_t i = 0;
    while (i < std::min(key.size(), last.size()) && key[i] == last[i]) ++i;
    out = format("differs from the last new plan at word %zu of %zu (was %zu long)", i, key.size(),
                 last.size());
  }
  last = key;
  return out;
}

}  // namespace ingot
