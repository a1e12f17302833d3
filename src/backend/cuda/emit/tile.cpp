// A Map whose operands are contiguous along different axes: tiles of 32 x 32 elements, or
// 64 x 64 pairs of small ones. What is contiguous along the other axis (b)
// goes through shared memory, so that every access to global memory runs along the axis that is
// contiguous there. A tile's rows are padded by one element, so that reading it along either side
// meets no bank twice.
#include "backend/cuda/emit/emit.h"

namespace ingot::cuda {

void Emitter::place_tile() {
  int a = k_.n_outer - 1, b = s_.tile_axis;
  int edge = 32 * s_.lanes;
  auto tiles = [edge](int axis) {
    return Numbers::Value([axis, edge](const KernelSpec& k, const Geometry&) {
      return (k.extent[axis] + edge - 1) / edge;
    });
  };
  out_.plain("const int x = threadIdx.x % 32, t = threadIdx.x / 32;");
  std::string na = number("na", tiles(a)), nb = number("nb", tiles(b));
  out_.plain("const unsigned qa = blk / (unsigned)" + na + ", qb = qa / (unsigned)" + nb + ";");
  out_.plain("const I ta = (I)(blk - qa * (unsigned)" + na + ") * " + str(edge) +
             ", tb = (I)(qa - qb * (unsigned)" + nb + ") * " + str(edge) + ";");
  std::string rest = "qb";
  for (int axis = a - 1; axis >= 0; --axis) {
    if (axis == b) continue;
    std::string q = "qt" + str(axis);
    out_.plain("const unsigned " + q + " = " + rest + " / (unsigned)" + extent(axis) + ";");
    out_.plain("const I i" + str(axis) + " = (I)(" + rest + " - " + q + " * (unsigned)" +
               extent(axis) + ");");
    rest = q;
  }
}

bool Emitter::staged_load(int i) const {
  const Instr& in = k_.instrs[i];
  return in.kind == InstrKind::Load && is_staged(k_, in.map, &in, s_.tile_axis);
}

bool Emitter::staged_store(int n) const {
  return is_staged(k_, k_.stores[n].map, nullptr, s_.tile_axis);
}

std::string Emitter::tile_declaration(DType t, const std::string& name) const {
  std::string edge = str(int64_t{32} * s_.lanes);
  return std::string("__shared__ ") + memory_type(t) + " " + name + "[" + edge + "][" + edge +
         " + 1];";
}

/// Reads along axis b into tiles that will be read along axis a.
void Emitter::tile_loads(const std::vector<int>& need) {
  std::vector<int> staged;
  for (int i : need)
    if (staged_load(i)) staged.push_back(i);
  for (size_t n = 0; n < k_.stores.size(); ++n)
    if (staged_store(static_cast<int>(n)))
      out_.plain(tile_declaration(k_.buffers[k_.stores[n].buffer].dtype,
                                  "out" + str(static_cast<int64_t>(n))));
  if (staged.empty()) return;
  std::string lanes = str(s_.lanes),
              groups = "IG_UNROLL for (int u = 0; u < " + str(s_.groups) + "; ++u) {";
  for (int i : staged)
    out_.plain(tile_declaration(k_.buffers[k_.instrs[i].buffer].dtype, "tile" + str(i)));
  out_.plain("{");
  for (int i : staged) out_.plain(raw_type(i) + " r" + str(i) + "[" + str(s_.groups) + "];");
  out_.plain(groups);
  group_place(true);
  for (int i : staged) {
    MapText at = map_text([i](const KernelSpec& k) -> const Affine& { return k.instrs[i].map; });
    std::string into = "r" + str(i) + "[u]";
    if (s_.lanes == 1)
      raw_load(i, into, "ok", at);
    else
      out_.plain("if (ok) ig_load<" + lanes + ", " + str(load_hint(i)) + ">(" + into + ", b" +
                 str(k_.instrs[i].buffer) + " + (" + at.base + "));");
  }
  out_.plain("}");
  out_.plain(groups);
  for (int i : staged)
    out_.lane("tile" + str(i) + "[x * " + lanes + " + j][t + u * " + str(s_.team) + "] = r" +
              str(i) + "[u].e[j];");
  out_.plain("} }\n__syncthreads();");
}

/// Puts the current group of a value into the tile that will be written along axis b.
void Emitter::stage_store(int n) {
  const Store& st = k_.stores[n];
  DType t = k_.buffers[st.buffer].dtype;
  std::string x = to_memory(t, cast(k_.instrs[st.value].dtype, t, operand(st.value)));
  out_.lane("out" + str(n) + "[t + u * " + str(s_.team) + "][x * " + str(s_.lanes) +
            " + j] = " + x + ";");
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
  std::string lanes = str(s_.lanes);
  for (int n : staged) {
    const Store& st = k_.stores[n];
    MapText at = map_text([n](const KernelSpec& k) -> const Affine& { return k.stores[n].map; });
    std::string m = memory_type(k_.buffers[st.buffer].dtype), w = "w" + str(n);
    out_.plain("IgVec<" + m + ", " + lanes + "> " + w + ";");
    out_.lane(w + ".e[j] = out" + str(n) + "[x * " + lanes + " + j][t + u * " + str(s_.team) +
              "];");
    out_.plain(std::string("if (ok") + (st.predicated ? " && run_ok" : "") + ") ig_store<" + lanes +
               ", " + (s_.streaming ? "2" : "0") + ">(b" + str(st.buffer) + " + (" + at.base +
               "), " + w + ");");
  }
  out_.plain("}");
}

}  // namespace ingot::cuda
