// What is trained: a recipe's data, network and loss.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ingot/ingot.h>

#include "models.h"
#include "recipe.h"

namespace ingot::cli {

struct Evaluation {
  double loss = 0, accuracy = 0;                ///< accuracy in [0, 1]; of the next token for text
  std::vector<std::vector<int64_t>> confusion;  ///< [truth][answer]; empty for text
};

/// An image of the test data and the network's prediction.
struct SampleImage {
  Tensor image;  ///< uint8 [C, H, W]
  int64_t truth = 0, answer = 0;
  double certainty = 0;
};

class Task {
 public:
  /// Without data: the network alone, with the shape the recipe's data would give it. Throws
  /// Failure, saying how to get the data, when it is missing.
  Task(const Recipe& recipe, const Device& device, bool with_data = true);
  /// The network alone, with the shape stored in a trained network's file.
  Task(const Recipe& recipe, const Device& device, const ModelShape& shape,
       std::vector<std::string> classes);

  const Recipe& recipe() const { return recipe_; }
  const Device& device() const { return device_; }
  nn::Module& model() { return *model_; }
  data::DataLoader& train() { return *train_; }
  data::DataLoader& test() { return *test_; }
  const std::vector<std::string>& classes() const { return classes_; }
  const ModelShape& model_shape() const { return model_shape_; }
  bool is_text() const { return recipe_.text("task") == "text"; }
  const char* unit() const {
    return is_text() ? "tokens" : recipe_.text("task") == "points" ? "points" : "images";
  }
  /// Are products computed in bfloat16?
  bool uses_amp() const { return recipe_.text("amp") != "off"; }
  /// Units in one sample.
  int64_t units() const { return is_text() ? recipe_.integer("context") : 1; }

  Tensor loss(const Tensor& logits, const Tensor& target) const;
  /// Forward and loss of a part of a batch, in the recipe's precision.
  Tensor forward_loss(const Tensor& x, const Tensor& y);
  /// Zeros of a batch's shapes, on the device.
  std::vector<Tensor> example(int64_t batch) const;
  /// Runs evaluate()'s computation on a batch of zeros: for planning.
  void evaluate_example(const std::vector<Tensor>& batch);
  Evaluation evaluate();
  std::vector<SampleImage> samples(int64_t count);
  /// Continues a text token by token; each piece is passed to `stream` as it is generated.
  std::string generate(const std::string& prompt, int64_t length, double temperature, uint64_t seed,
                       const std::function<void(const std::string&)>& stream = {});

 private:
  /// Loss and answers, computed.
  std::pair<Tensor, Tensor> test_batch(const Tensor& x, const Tensor& y);
  void open_data();
  void open_named(const std::string& name);
  void open_folder(const std::string& root);
  void open_text(const std::string& path);
  void open_spirals();
  void guess_model_shape();
  void make_network();
  Recipe recipe_;
  Device device_;
  ModelShape model_shape_;
  std::vector<std::string> classes_;
  std::shared_ptr<nn::Module> model_;
  std::unique_ptr<data::DataLoader> train_, test_;
};

}  // namespace ingot::cli
