// The verifier of the compiler's graph: for each invariant a graph that breaks it, and the error
// that names it.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <cstdlib>
#include <functional>

#include "compile/ir.h"
#include "compile/plan.h"

using namespace ingot;

namespace {

const Device kCpu(DeviceType::CPU, 0);

struct Builder {
  Graph g;

  int add(Op op, const Dims& shape, std::initializer_list<int> in = {}, Attributes attrs = {},
          DType t = DType::Float32) {
    Val v;
    v.op = op;
    v.dtype = t;
    v.device = kCpu;
    v.shape = shape;
    v.attrs = std::move(attrs);
    for (int i : in) v.in[v.n_in++] = i;
    g.vals.push_back(std::move(v));
    return static_cast<int>(g.vals.size()) - 1;
  }
  int leaf(const Dims& shape, DType t = DType::Float32) { return add(Op::Leaf, shape, {}, {}, t); }
  Val& operator[](int v) { return g.vals[static_cast<size_t>(v)]; }

  /// The last value is the result; what the verifier says.
  std::string error() {
    g.vals.back().output = true;
    g.count_users();
    try {
      verify(g);
    } catch (const Error& e) {
      CHECK(e.kind() == ErrorKind::Internal);
      return e.reason();
    }
    return "";
  }
};

struct Broken {
  const char* says;
  std::function<void(Builder&)> plant;
};

const Broken kBroken[] = {
    {"(add) uses a later value",
     [](Builder& b) {
       const int x = b.leaf({4});
       b.add(Op::Add, {4}, {x, 1});
     }},
    {"(neg) reads a value that was dropped",
     [](Builder& b) { b.add(Op::Neg, {4}, {b.add(Op::Exp, {4})}); }},
    {"(add) reads a value of another device",
     [](Builder& b) {
       const int x = b.leaf({4}), y = b.leaf({4});
       b[y].device = Device(DeviceType::CPU, 1);
       b.add(Op::Add, {4}, {x, y});
     }},
    {"(add) has 1 operands", [](Builder& b) { b.add(Op::Add, {4}, {b.leaf({4})}); }},
    {"(matmul) has 2 operands",
     [](Builder& b) {
       const int m = b.add(Op::Matmul, {4, 4}, {b.leaf({4, 4}), b.leaf({4, 4})});
       b[m].epilogues.set(Epilogue::Bias);
     }},
    {"(neg) has epilogues, and is no product or convolution",
     [](Builder& b) { b[b.add(Op::Neg, {4}, {b.leaf({4})})].epilogues.set(Epilogue::Relu); }},
    {"(neg) has another number of strides than dims",
     [](Builder& b) {
       b[b.add(Op::Neg, {4}, {b.leaf({4})})].stride = {4, 1};
     }},
    {"(add) has operands of unlike shapes",
     [](Builder& b) {
       b.add(Op::Add, {4}, {b.leaf({4}), b.leaf({3})});
     }},
    {"(neg) has another shape than its operands",
     [](Builder& b) { b.add(Op::Neg, {5}, {b.leaf({4})}); }},
    {"(add) has operands of several types",
     [](Builder& b) {
       b.add(Op::Add, {4}, {b.leaf({4}), b.leaf({4}, DType::Float64)});
     }},
    {"(where) has a condition that is no bool",
     [](Builder& b) {
       b.add(Op::Where, {4}, {b.leaf({4}), b.leaf({4}), b.leaf({4})});
     }},
    {"(neg) has another type than its operands",
     [](Builder& b) { b.add(Op::Neg, {4}, {b.leaf({4})}, {}, DType::Float64); }},
    {"(gt) has another type than its operands",
     [](Builder& b) {
       b.add(Op::Gt, {4}, {b.leaf({4}), b.leaf({4})});
     }},
    {"(uniform) has a wrong type", [](Builder& b) { b.add(Op::Uniform, {4}, {b.leaf({4})}); }},
    {"(reshape) changes the number of elements",
     [](Builder& b) { b.add(Op::Reshape, {5}, {b.leaf({4})}); }},
    {"(reshape) changes the type",
     [](Builder& b) {
       b.add(Op::Reshape, {4}, {b.leaf({2, 2})}, {}, DType::Float64);
     }},
    {"(permute) changes the number of dims",
     [](Builder& b) {
       b.add(Op::Permute, {4}, {b.leaf({2, 2})}, PermuteAttrs{{0}});
     }},
    {"(permute) has the attributes of another op",
     [](Builder& b) {
       b.add(Op::Permute, {2, 3}, {b.leaf({3, 2})});
     }},
    {"(permute) permutes another number of dims",
     [](Builder& b) {
       b.add(Op::Permute, {2, 3}, {b.leaf({3, 2})}, PermuteAttrs{{1}});
     }},
    {"(permute) is no permutation of its operand's dims",
     [](Builder& b) {
       b.add(Op::Permute, {3, 2}, {b.leaf({3, 2})}, PermuteAttrs{{1, 0}});
     }},
    {"(permute) is no permutation of its operand's dims",
     [](Builder& b) {
       b.add(Op::Permute, {3, 3}, {b.leaf({3, 3})}, PermuteAttrs{{1, 1}});
     }},
    {"(expand) repeats a dim of more than one element",
     [](Builder& b) { b.add(Op::Expand, {4}, {b.leaf({2})}); }},
    {"(pad) pads to a smaller shape",
     [](Builder& b) { b.add(Op::Pad, {5}, {b.leaf({4})}, PadAttrs{{2}}); }},
    {"(pad) pads another number of dims",
     [](Builder& b) {
       b.add(Op::Pad, {5}, {b.leaf({4})}, PadAttrs{{0, 0}});
     }},
    {"(slice) leaves what it is a slice of",
     [](Builder& b) {
       b.add(Op::Slice, {3}, {b.leaf({4})}, SliceAttrs{{0}, {2}});
     }},
    {"(window) has windows that leave what they look at",
     [](Builder& b) {
       b.add(Op::Window, {3, 3}, {b.leaf({4})}, WindowAttrs{{1}, {1}});
     }},
    {"(sum) keeps other dims than it does not reduce",
     [](Builder& b) {
       b.add(Op::Sum, {4, 1}, {b.leaf({4, 3})}, ReduceAttrs{1});
     }},
    {"(sum) reduces a dim that its operand does not have",
     [](Builder& b) { b.add(Op::Sum, {1}, {b.leaf({4})}, ReduceAttrs{3}); }},
    {"(argmax) has another type than its operand",
     [](Builder& b) { b.add(Op::ArgMax, {1}, {b.leaf({4})}, ReduceAttrs{1}); }},
    {"(matmul) has factors that do not fit its shape",
     [](Builder& b) {
       b.add(Op::Matmul, {4, 5}, {b.leaf({4, 3}), b.leaf({2, 5})});
     }},
    {"(matmul) has factors that do not fit its shape",
     [](Builder& b) {
       b.add(Op::Matmul, {2, 4, 5}, {b.leaf({2, 4, 3}), b.leaf({1, 3, 5})});
     }},
    {"(matmul) has factors of another type",
     [](Builder& b) {
       b.add(Op::Matmul, {4, 5}, {b.leaf({4, 3}), b.leaf({3, 5}, DType::Float64)});
     }},
    {"(matmul) has a bias of another size",
     [](Builder& b) {
       b[b.add(Op::Matmul, {4, 5}, {b.leaf({4, 3}), b.leaf({3, 5}), b.leaf({4})})].epilogues.set(
           Epilogue::Bias);
     }},
    {"(matmul) has an epilogue's operand of another size",
     [](Builder& b) {
       b[b.add(Op::Matmul, {4, 5}, {b.leaf({4, 3}), b.leaf({3, 5}), b.leaf({4})})].epilogues.set(
           Epilogue::ReluGrad);
     }},
    {"(matmul) has an epilogue's operand of another type",
     [](Builder& b) {
       b[b.add(Op::Matmul, {4, 5}, {b.leaf({4, 3}), b.leaf({3, 5}), b.leaf({5}, DType::Float64)})]
           .epilogues.set(Epilogue::Bias);
     }},
    {"(assign) changes the shape",
     [](Builder& b) {
       b.add(Op::Assign, {4}, {b.leaf({3}), b.leaf({4})});
     }},
    {"(gather) has another shape than its index",
     [](Builder& b) {
       b.add(Op::Gather, {3}, {b.leaf({8}), b.leaf({4}, DType::Int64)}, IndexAttrs{});
     }},
    {"(result) is a result that its call does not have",
     [](Builder& b) {
       const int m = b.add(Op::Matmul, {4, 4}, {b.leaf({4, 4}), b.leaf({4, 4})});
       b.add(Op::Result, {4, 4}, {m}, ResultAttrs{1});
     }},
    {"(exp) is dead and has operands",
     [](Builder& b) {
       const int x = b.leaf({4});
       b.add(Op::Exp, {4}, {x});
       b.add(Op::Neg, {4}, {x});
     }},
};

struct Environment {
  explicit Environment(const char* value) { setenv("INGOT_VERIFY", value, 1); }
  ~Environment() { unsetenv("INGOT_VERIFY"); }
};

}  // namespace

TEST_CASE("each invariant has a graph that breaks it, and an error that names it") {
  for (const Broken& broken : kBroken) {
    CAPTURE(std::string(broken.says));
    Builder b;
    broken.plant(b);
    const std::string error = b.error();
    CAPTURE(error);
    CHECK(error.ends_with(broken.says));
  }
}

TEST_CASE("right graphs pass") {
  Builder b;
  const int x = b.leaf({4, 3}), w = b.leaf({5, 3}), bias = b.leaf({5});
  const int t = b.add(Op::Permute, {3, 5}, {w}, PermuteAttrs{{1, 0}});
  const int y = b.add(Op::Matmul, {4, 5}, {x, t, bias});
  b[y].epilogues.set(Epilogue::Bias);
  const int half = b.add(Op::Const, {}, {}, ConstAttrs{0.5});
  const int scaled = b.add(Op::Mul, {4, 5}, {y, half});
  b.add(Op::Sum, {1, 5}, {scaled}, ReduceAttrs{1});
  CHECK(b.error() == "");
}

TEST_CASE("readers are counted") {
  Builder b;
  const int x = b.leaf({4});
  b.add(Op::Neg, {4}, {x});
  CHECK(b.error() == "");
  b.g.users[0] = 0;
  CHECK_THROWS_WITH_AS(verify(b.g), doctest::Contains("has more readers than were counted"), Error);
  b.g.users.pop_back();
  CHECK_THROWS_WITH_AS(verify(b.g), doctest::Contains("readers of some values"), Error);
  b.g.users.clear();
  CHECK_THROWS_AS(verify(b.g), Error);
  verify(b.g, Dead::Allowed);  // before they are
}

TEST_CASE("what is dead is allowed before simplify alone") {
  Builder b;
  const int x = b.leaf({4});
  b.add(Op::Exp, {4}, {x});
  b.add(Op::Neg, {4}, {x});
  CHECK(b.error() != "");
  verify(b.g, Dead::Allowed);
}

TEST_CASE("INGOT_VERIFY=1 verifies every plan's graph, and the error names the pass") {
  Builder b;
  b.add(Op::Neg, {4}, {b.leaf({4})}, {}, DType::Float64);
  b.g.vals.back().output = true;
  b.g.vals.back().node = 0;
  {
    const Environment on("1");
    CHECK(checks_graphs());
    CHECK_THROWS_WITH_AS(
        compile_plan(b.g, {}),
        doctest::Contains("after the trace: value 1 (neg) has another type than its operands"),
        Error);
    CHECK_THROWS_WITH_AS(check_graph(b.g, "some pass", Dead::Allowed),
                         doctest::Contains("after some pass"), Error);
  }
#ifdef NDEBUG
  const Environment off("0");
  CHECK(!checks_graphs());
#endif
}
