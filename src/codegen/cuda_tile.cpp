// A Map whose operands are contiguous along different axes: 32 x 32 tiles. What is contiguous along the other axis (b)
// goes through shared memory, so that every access to global memory runs along the axis that is contiguous there.
// A tile's rows are padded by one element, so that reading it along either side meets no bank twice.
#include "codegen/cuda_emit.h"

namespace ingot::cuda {

void Emitter::place_tile() {
  int a = k_.n_outer - 1, b = s_.tile_axis;
  auto tiles = [](int axis) {
    return Numbers::Value([axis](const KernelSpec& k, const Geometry&) { return (k.extent[axis] + 31) / 32; });
  };
  out_.plain("const int x = threadIdx.x % 32, t = threadIdx.x / 32;");
  std::string na = number("na", tiles(a)), nb = number("nb", tiles(b));
  out_.plain("const unsigned qa = blk / (unsigned)" + na + ", qb = qa / (unsigned)" + nb + ";");
  out_.plain("const I ta = (I)(blk - qa * (unsigned)" + na + ") * 32, tb = (I)(qa - qb * (unsigned)" + nb + ") * 32;");
  std::string rest = "qb";
  for (int axis = a - 1; axis >= 0; --axis) {
    if (axis == b) continue;
    std::string q = "qt" + str(axis);
    out_.plain("const unsigned " + q + " = " + rest + " / (unsigned)" + extent(axis) + ";");
    out_.plain("const I i" + str(axis) + " = (I)(" + rest + " - " + q + " * (unsigned)" + extent(axis) + ");");
    rest = q;
  }
}

bool Emitter::staged_load(int i) const {
  const Instr& in = k_.instrs[i];
  if (in.kind != InstrKind::Load || in.indirect >= 0) return false;
  int64_t last = in.map.stride[k_.n_outer - 1];
  return last != 0 && last != 1 && in.map.stride[s_.tile_axis] == 1;
}

bool Emitter::staged_store(int n) const {
  const Affine& map = k_.stores[n].map;
  return map.stride[k_.n_outer - 1] != 1 && map.stride[s_.tile_axis] == 1;
}

/// Reads along axis b into tiles that will be read along axis a.
void Emitter::tile_loads(const std::vector<int>& need) {
  std::vector<int> staged;
  for (int i : need)
    if (staged_load(i)) staged.push_back(i);
  for (size_t n = 0; n < k_.stores.size(); ++n)
    if (staged_store(static_cast<int>(n)))
      out_.plain("__shared__ " + std::string(memory_type(k_.buffers[k_.stores[n].buffer].dtype)) + " out" +
                 str(static_cast<int64_t>(n)) + "[32][33];");
  if (staged.empty()) return;
  for (int i : staged)
    out_.plain("__shared__ " + std::string(memory_type(k_.buffers[k_.instrs[i].buffer].dtype)) + " tile" + str(i) + "[32][33];");
  out_.plain("{");
  for (int i : staged) out_.plain(raw_type(i) + " r" + str(i) + "[" + str(s_.groups) + "];");
  out_.plain("IG_UNROLL for (int u = 0; u < " + str(s_.groups) + "; ++u) {");
  group_place(true);
  for (int i : staged)
    raw_load(i, "r" + str(i) + "[u]", "ok", map_text([i](const KernelSpec& k) -> const Affine& { return k.instrs[i].map; }));
  out_.plain("}");
  out_.plain("IG_UNROLL for (int u = 0; u < " + str(s_.groups) + "; ++u) {");
  for (int i : staged) out_.plain("tile" + str(i) + "[x][t + u * " + str(s_.team) + "] = r" + str(i) + "[u].e[0];");
  out_.plain("} }\n__syncthreads();");
}

/// Writes along axis b what was computed along axis a.
void Emitter::tile_stores() {
  std::vector<int> staged;
  for (size_t n = 0; n < k_.stores.size(); ++n)
    if (staged_store(static_cast<int>(n))) staged.push_back(static_cast<int>(n));
  if (staged.empty()) return;
  out_.plain("__syncthreads();");
  out_.plain("IG_UNROLL for (int u = 0; u < " + str(s_.groups) + "; ++u) {");
  group_place(true);
  for (int n : staged) {
    const Store& st = k_.stores[n];
    MapText at = map_text([n](const KernelSpec& k) -> const Affine& { return k.stores[n].map; });
    std::string m = memory_type(k_.buffers[st.buffer].dtype);
    out_.plain(std::string("if (ok") + (st.predicated ? " && run_ok" : "") + ") ig_store1<" + (s_.streaming ? "2" : "0") + ", " + m +
               ">(b" + str(st.buffer) + " + (" + at.base + "), out" + str(n) + "[x][t + u * " + str(s_.team) + "]);");
  }
  out_.plain("}");
}

}  // namespace ingot::cuda
