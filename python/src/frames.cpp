// The user's line: the innermost Python frame whose file is not the package's own. Every op asks
// for it, and below a few modules it is several frames up. The public functions create an object
// for every frame they pass; in CPython 3.11 and 3.12, whose frame layout is known, the frames are
// only read.
#include <cstring>
#include <string>
#include <unordered_map>

#include "bind.h"

namespace ingot_python {
namespace {

struct File {
  const char* name;
  bool own;
};
std::string package_folder = "\x01";

// A file's name is looked up by its string object, which all code of one file shares; both are
// kept.
const File& find_file(PyObject* name) {
  static auto* files = new std::unordered_map<PyObject*, File>;
  auto [at, is_new] = files->try_emplace(name);
  if (is_new) {
    Py_INCREF(name);
    const char* text = PyUnicode_AsUTF8(name);
    if (!text) PyErr_Clear();
    at->second.name = text ? text : "?";
    at->second.own =
        text && (std::strncmp(text, package_folder.c_str(), package_folder.size()) == 0 ||
                 std::strncmp(text, "<frozen ", 8) == 0);
  }
  return at->second;
}

const File& file_of(const PyCodeObject* code) {
  struct Seen {
    PyObject* name = nullptr;
    const File* file = nullptr;
  };
  static Seen seen[64];  // under the GIL, as all of this
  PyObject* name = code->co_filename;
  Seen& s = seen[reinterpret_cast<uintptr_t>(name) / 16 % 64];
  if (s.name != name) s = {name, &find_file(name)};
  return *s.file;
}

SourceLoc by_frame_objects() {
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  SourceLoc found{"", 0};
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const File& file = file_of(code);
    Py_DECREF(code);
    if (!file.own) {
      found = {file.name, static_cast<uint32_t>(PyFrame_GetLineNumber(frame))};
      break;
    }
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  return found;
}

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030D0000 && !defined(PYPY_VERSION) && \
    !defined(Py_LIMITED_API)
#define INGOT_KNOWN_FRAMES 1

// The interpreter's own frame as these two versions lay it out (its header is not for extensions).
struct Frame {
#if PY_VERSION_HEX < 0x030C0000
  void* function;
  void* names[3];
  PyCodeObject* code;
  void* object;
  Frame* previous;
#else
  PyCodeObject* code;
  Frame* previous;
  void* function;
  void* names[3];
  void* object;
#endif
  _Py_CODEUNIT* instruction;
  int top;
#if PY_VERSION_HEX < 0x030C0000
  bool is_entry;
#else
  uint16_t return_offset;
#endif
  char owner;
};
constexpr char kOwnedByC = 3;  // 3.12: a frame of the interpreter's, with no code of the program

SourceLoc by_frames() {
  auto* frame = reinterpret_cast<Frame*>(PyThreadState_Get()->cframe->current_frame);
  for (; frame; frame = frame->previous) {
    if (frame->owner == kOwnedByC) continue;
    const File& file = file_of(frame->code);
    if (file.own) continue;
    auto* first = reinterpret_cast<_Py_CODEUNIT*>(frame->code->co_code_adaptive);
    int at = static_cast<int>(frame->instruction - first) * static_cast<int>(sizeof(_Py_CODEUNIT));
    return {file.name, static_cast<uint32_t>(PyCode_Addr2Line(frame->code, at))};
  }
  return {"", 0};
}

// If an interpreter of these versions had another frame layout, the first lines would differ.
bool frames_are_known() {
  static int agreed = 0;
  if (agreed < 0 || agreed >= 8) return agreed > 0;
  SourceLoc a = by_frames(), b = by_frame_objects();
  agreed = a.file == b.file && a.line == b.line ? agreed + 1 : -1;
  return agreed > 0;
}
#endif

}  // namespace

void set_package_folder(const std::string& folder) { package_folder = folder; }

SourceLoc here() {
  drop_now();
#ifdef INGOT_KNOWN_FRAMES
  if (frames_are_known()) return by_frames();
#endif
  return by_frame_objects();
}

}  // namespace ingot_python
