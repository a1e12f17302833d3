// Recurrent layers with PyTorch's names, layouts, initial values and order of gates. Sequences come
// as [time, batch, features] unless batch_first, or as [time, features] without a batch. Each time
// step is recorded: plans grow with the length of the sequence.
#pragma once
#include "ingot/nn/module.h"

namespace ingot {
enum class RnnKind;
}
namespace ingot::nn {

struct RNNOptions {
  int64_t num_layers = 1;
  std::string nonlinearity = "tanh";  ///< or "relu"
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;  ///< between layers, while training
  bool bidirectional = false;
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};
struct LSTMOptions {
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;
  bool bidirectional = false;
  int64_t proj_size = 0;  ///< above 0: what an output is projected to
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};
struct GRUOptions {
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;
  bool bidirectional = false;
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};
struct RNNResult {
  Tensor output;  ///< of the last layer at every time: [time, batch, directions * hidden]
  Tensor h_n;     ///< of every layer and direction at the end: [layers * directions, batch, hidden]
};
struct LSTMResult {
  Tensor output, h_n, c_n;
};

/// Shared by the three. Throws Error(Value) for sizes below 1, a dropout outside [0, 1] or a
/// proj_size that is not smaller than hidden_size; Error(Shape) for inputs and states that do not
/// fit.
class RecurrentBase : public Module {
 public:
  Tensor forward(Tensor x) override;  ///< the output alone
  std::string description() const override;

 protected:
  struct Settings {
    int64_t input, hidden, layers, proj;
    bool bias, batch_first, both;
    double dropout;
  };
  template <class O>
  static Settings settings(int64_t input, int64_t hidden, const O& o) {
    int64_t proj = 0;
    if constexpr (requires { o.proj_size; }) proj = o.proj_size;
    return {input, hidden, o.num_layers, proj, o.bias, o.batch_first, o.bidirectional, o.dropout};
  }
  RecurrentBase(RnnKind kind, const Settings& settings, const Options& where, SourceLoc loc);
  LSTMResult run(const Tensor& x, const Tensor& h0, const Tensor& c0);

 private:
  RnnKind kind_;
  Settings s_;
};

class RNN : public RecurrentBase {
 public:
  RNN(int64_t input_size, int64_t hidden_size, const RNNOptions& options = {},
      SourceLoc loc = SourceLoc::current());
  RNNResult operator()(Tensor input, Tensor h_0 = {}, SourceLoc loc = SourceLoc::current());
};
class LSTM : public RecurrentBase {
 public:
  LSTM(int64_t input_size, int64_t hidden_size, const LSTMOptions& options = {},
       SourceLoc loc = SourceLoc::current());
  LSTMResult operator()(Tensor input, Tensor h_0 = {}, Tensor c_0 = {},
                        SourceLoc loc = SourceLoc::current());
};
class GRU : public RecurrentBase {
 public:
  GRU(int64_t input_size, int64_t hidden_size, const GRUOptions& options = {},
      SourceLoc loc = SourceLoc::current());
  RNNResult operator()(Tensor input, Tensor h_0 = {}, SourceLoc loc = SourceLoc::current());
};

struct RNNCellOptions {
  bool bias = true;
  std::string nonlinearity = "tanh";  ///< or "relu"
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};
struct CellOptions {
  bool bias = true;
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};
/// One step: [batch, input] and [batch, hidden] (zeros when not given) in, the new state out.
/// Throws Error(Value) for sizes below 1, Error(Shape) for inputs and states that do not fit.
class CellBase : public Module {
 protected:
  CellBase(RnnKind kind, int64_t input_size, int64_t hidden_size, bool bias, const Options& where,
           SourceLoc loc);
  std::pair<Tensor, Tensor> step(Tensor x, const Tensor& h, const Tensor& c, const SourceLoc& loc);

 private:
  RnnKind kind_;
  bool bias_;
};
/// One step of an RNN.
class RNNCell : public CellBase {
 public:
  RNNCell(int64_t input_size, int64_t hidden_size, const RNNCellOptions& options = {},
          SourceLoc loc = SourceLoc::current());
  Tensor operator()(Tensor input, Tensor h = {}, SourceLoc loc = SourceLoc::current());
};
/// One step of a GRU.
class GRUCell : public CellBase {
 public:
  GRUCell(int64_t input_size, int64_t hidden_size, const CellOptions& options = {},
          SourceLoc loc = SourceLoc::current());
  Tensor operator()(Tensor input, Tensor h = {}, SourceLoc loc = SourceLoc::current());
};
/// One step of an LSTM: the new hidden and cell state.
class LSTMCell : public CellBase {
 public:
  LSTMCell(int64_t input_size, int64_t hidden_size, const CellOptions& options = {},
           SourceLoc loc = SourceLoc::current());
  std::pair<Tensor, Tensor> operator()(Tensor input, Tensor h = {}, Tensor c = {},
                                       SourceLoc loc = SourceLoc::current());
};

}  // namespace ingot::nn
