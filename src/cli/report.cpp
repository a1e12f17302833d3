#include "report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "cli.h"
#include "files.h"

namespace ingot::cli {
namespace fs = std::filesystem;

static std::string base64(const std::string& bytes) {
  static const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t v = 0;
    for (size_t k = 0; k < 3; ++k)
      v = v << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k)
      out += i + k > bytes.size() ? '=' : digits[v >> (18 - 6 * k) & 63];
  }
  return out;
}

static std::string image_source(const std::string& file) {
  return "data:image/png;base64," + base64(read_file(file, size_t{64} << 20).value_or(""));
}

static std::string facts(Task& task, const History& h) {
  std::string s = "<div class=\"facts\">";
  auto fact = [&](const std::string& value, const std::string& name) {
    s += "<div><b>" + escaped(value) + "</b><span>" + escaped(name) + "</span></div>";
  };
  fact(format("%.2f %%", 100 * h.last.accuracy),
       task.is_text() ? "next-token accuracy" : "test accuracy");
  fact(format("%.4f", h.last.loss), "test loss");
  fact(time_text(h.seconds), "training");
  double rate = 0;
  for (const Point& p : h.train) rate = std::max(rate, p.rate);
  fact(rate_text(rate), std::string("peak throughput (") + task.unit() + "/s)");
  fact(count_text(h.steps), "steps");
  fact(count_text(task.model().parameter_count()), "parameters");
  fact(bytes_text(h.peak), "peak memory");
  fact(task.device().name(), "device");
  return s + "</div>\n";
}

static std::string charts(Task& task, const History& h) {
  std::vector<std::pair<double, double>> loss, smooth, lr, rate, memory, test_loss, accuracy;
  double mean = h.train.empty() ? 0 : h.train[0].loss;
  // Smoothed over about a fiftieth of the run; a short run is drawn unsmoothed.
  const double weight = std::clamp(50.0 / static_cast<double>(h.train.size() + 1), 0.02, 1.0);
  for (const Point& p : h.train) {
    mean += weight * (p.loss - mean);
    loss.emplace_back(p.epoch, mean), lr.emplace_back(p.epoch, p.lr),
        rate.emplace_back(p.epoch, p.rate), memory.emplace_back(p.epoch, p.memory / (1 << 20));
  }
  for (const Point& p : h.test)
    test_loss.emplace_back(p.epoch, p.test_loss),
        accuracy.emplace_back(p.epoch, 100 * p.test_accuracy);
  std::string s = "<div class=\"charts\">\n";
  s += chart("Loss", "epoch", {{"training", "a", loss}, {"test", "b", test_loss}});
  s += chart(task.is_text() ? "Next-token accuracy" : "Test accuracy", "epoch",
             {{"test", "b", accuracy}}, true);
  s += chart("Learning rate", "epoch", {{"", "a", lr}});
  s +=
      chart(std::string("Throughput (") + task.unit() + " per second)", "epoch", {{"", "a", rate}});
  s += chart("Memory in use (MiB)", "epoch", {{"", "a", memory}});
  return s + "</div>\n";
}

static std::string confusion(Task& task, const Evaluation& e) {
  if (e.confusion.empty() || e.confusion.size() > 30) return {};
  auto name = [&](size_t i) {
    return escaped(i < task.classes().size() ? task.classes()[i] : std::to_string(i));
  };
  std::string s =
      "<h2>Confusion matrix</h2><p class=\"sub\">Rows: true class. Columns: predicted "
      "class.</p><div "
      "class=\"scroll\"><table><tr><th></th>";
  for (size_t i = 0; i < e.confusion.size(); ++i) s += "<th>" + name(i) + "</th>";
  for (size_t i = 0; i < e.confusion.size(); ++i) {
    s += "</tr>\n<tr><th>" + name(i) + "</th>";
    const double all =
        std::max<double>(1, static_cast<double>(std::accumulate(e.confusion[i].begin(),
                                                                e.confusion[i].end(), int64_t{0})));
    for (size_t j = 0; j < e.confusion.size(); ++j) {
      const double share = static_cast<double>(e.confusion[i][j]) / all;
      s += format(
          "<td class=\"%s\" style=\"background:color-mix(in srgb,var(%s) "
          "%.0f%%,transparent)\">%s</td>",
          i == j ? "hit" : "", i == j ? "--good" : "--bad",
          share > 0 ? std::min(70.0, 8 + 70 * std::sqrt(share)) : 0,
          e.confusion[i][j] ? count_text(e.confusion[i][j]).c_str() : "");
    }
  }
  return s + "</tr></table></div>\n";
}

static std::string images(Task& task, const std::string& folder) {
  std::error_code e;
  fs::remove_all(folder + "/samples", e);
  fs::create_directories(folder + "/samples", e);
  if (e)
    throw Failure(kNotWritten, folder + "/samples cannot be made: " + e.message(),
                  "Make room on the disk, or name another folder with --out.");
  std::string s = "<h2>Predictions on test images</h2><div class=\"samples\">\n";
  int n = 0;
  auto name = [&](int64_t i) {
    return i >= 0 && i < static_cast<int64_t>(task.classes().size())
               ? task.classes()[static_cast<size_t>(i)]
               : std::to_string(i);
  };
  for (const SampleImage& p : task.samples(24)) {
    const std::string file = folder + format("/samples/%02d.png", n++);
    data::save_image(file, p.image);
    const bool right = p.truth == p.answer;
    s += "<div><img alt=\"" + escaped(name(p.truth)) + "\" src=\"" + image_source(file) +
         "\"><br><span class=\"" + (right ? "good" : "bad") + "\">" + escaped(name(p.answer)) +
         format("<br>%.0f %%</span>", 100 * p.certainty) +
         (right ? "" : "<br>is " + escaped(name(p.truth))) + "</div>\n";
  }
  return s + "</div>\n";
}

// For every pixel of the square, the spiral that the network assigns it to.
static std::string plane(Task& task, const std::string& folder) {
  constexpr int64_t side = 200;
  NoGrad no_grad;
  task.model().eval();
  std::vector<float> xy;
  for (int64_t i = 0; i < side * side; ++i) {
    const int64_t column = i % side, row = i / side;
    xy.push_back(2 * (static_cast<float>(column) + 0.5f) / side - 1);
    xy.push_back(1 - 2 * (static_cast<float>(row) + 0.5f) / side);
  }
  const auto p =
      softmax(task.model()(tensor(xy, {side * side, 2}, task.device())), -1).to_vector<float>();
  task.model().train();
  std::vector<uint8_t> rgb(3 * side * side);
  for (size_t i = 0; i < side * side; ++i) {
    const float blue = std::max(0.0f, 2 * p[2 * i + 1] - 1),
                orange = std::max(0.0f, 1 - 2 * p[2 * i + 1]);
    rgb[i] = static_cast<uint8_t>(255 - 140 * blue);
    rgb[i + side * side] = static_cast<uint8_t>(255 - 70 * blue - 75 * orange);
    rgb[i + 2 * side * side] = static_cast<uint8_t>(255 - 165 * orange);
  }
  data::save_image(folder + "/plane.png", tensor(rgb, {3, side, side}, "cpu"));
  return "<h2>Prediction at every point of the plane</h2><p><img alt=\"two spirals\" "
         "width=\"400\" "
         "style=\"max-width:100%\" src=\"" +
         image_source(folder + "/plane.png") + "\"></p>\n";
}

void write_report(Task& task, const History& h, const std::string& folder) {
  const Recipe& r = task.recipe();
  std::string body = "<h1>" + escaped(r.name()) + "</h1><p class=\"sub\">" +
                     escaped(r.text("model")) + " on " + escaped(r.text("data")) +
                     ", trained with Ingot " + INGOT_VERSION_STRING + "</p>\n";
  body += facts(task, h) + "<h2>Training curves</h2>\n" + charts(task, h);
  if (task.is_text() && r.integer("vocabulary") == 256) {
    const std::string prompt = r.text("prompt");
    body += "<h2>Generated text</h2><pre>" + escaped(prompt + task.generate(prompt, 400, 0.8, 1)) +
            "</pre>\n";
  } else if (r.text("task") == "points") {
    body += plane(task, folder) + confusion(task, h.last);
  } else if (!task.is_text()) {
    body += confusion(task, h.last) + images(task, folder);
  }
  body += "<h2>The recipe</h2><pre>" + escaped(json_text(r.values(), 2)) + "</pre>\n";
  body += "<h2>The network</h2><pre>" + escaped(task.model().to_string()) + "</pre>\n";
  write_file(folder + "/report.html", page(r.name() + " - Ingot", body));
}

}  // namespace ingot::cli
