// Trains a small network to separate two spirals, and draws what it learned: the predicted spiral
// for every pixel of an image.
//
//   spirals [image.png]
#include <png.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <ingot/ingot.h>

using ingot::Tensor;

struct Points {
  std::vector<float> xy;        // x, y of each point, within [-1, 1]
  std::vector<int64_t> spiral;  // 0 or 1
};

Points make_spirals(int per_spiral) {
  std::mt19937 generator(7);
  std::normal_distribution<float> noise(0, 0.02f);
  Points points;
  for (int i = 0; i < per_spiral; ++i) {
    for (int spiral : {0, 1}) {
      const float t = std::sqrt(static_cast<float>(i) / static_cast<float>(per_spiral));
      const float angle = 9.5f * t + 3.14159265f * static_cast<float>(spiral);
      points.xy.push_back(0.95f * t * std::cos(angle) + noise(generator));
      points.xy.push_back(0.95f * t * std::sin(angle) + noise(generator));
      points.spiral.push_back(spiral);
    }
  }
  return points;
}

struct Network : ingot::nn::Module {
  ingot::nn::Linear in = add("in", ingot::nn::Linear(2, 64));
  ingot::nn::Linear middle = add("middle", ingot::nn::Linear(64, 64));
  ingot::nn::Linear out = add("out", ingot::nn::Linear(64, 2));
  Tensor forward(Tensor x) override { return out(tanh(middle(tanh(in(x))))); }
};

// Probability of spiral 1 for every pixel of a size x size image of the square [-1, 1] x [-1, 1].
std::vector<float> ask_everywhere(Network& network, int size) {
  ingot::NoGrad no_grad;
  std::vector<float> xy;
  for (int row = 0; row < size; ++row) {
    for (int column = 0; column < size; ++column) {
      xy.push_back(2.0f * (static_cast<float>(column) + 0.5f) / static_cast<float>(size) - 1);
      xy.push_back(1 - 2.0f * (static_cast<float>(row) + 0.5f) / static_cast<float>(size));
    }
  }
  Tensor pixels = ingot::tensor(xy, {size * size, 2});
  return ingot::softmax(network(pixels), -1)[{ingot::Slice{}, 1}].to_vector<float>();
}

class Image {
 public:
  explicit Image(int size)
      : size_(size), rgb_(3 * static_cast<size_t>(size) * static_cast<size_t>(size)) {}

  void set(int row, int column, int red, int green, int blue) {
    if (row < 0 || column < 0 || row >= size_ || column >= size_) return;
    uint8_t* pixel = &rgb_[3 * (static_cast<size_t>(row) * static_cast<size_t>(size_) +
                                static_cast<size_t>(column))];
    pixel[0] = static_cast<uint8_t>(red), pixel[1] = static_cast<uint8_t>(green),
    pixel[2] = static_cast<uint8_t>(blue);
  }
  bool write(const std::string& path) const {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = image.height = static_cast<png_uint_32>(size_);
    image.format = PNG_FORMAT_RGB;
    return png_image_write_to_file(&image, path.c_str(), 0, rgb_.data(), 0, nullptr) != 0;
  }

 private:
  int size_;
  std::vector<uint8_t> rgb_;
};

bool draw(Network& network, const Points& points, const std::string& path) {
  constexpr int size = 480;
  Image image(size);
  const std::vector<float> probability = ask_everywhere(network, size);
  for (int row = 0; row < size; ++row) {
    for (int column = 0; column < size; ++column) {
      const float p = probability[static_cast<size_t>(row * size + column)];
      // From orange (spiral 0) over white (undecided) to blue (spiral 1).
      const float blue = std::max(0.0f, 2 * p - 1), orange = std::max(0.0f, 1 - 2 * p);
      image.set(row, column, static_cast<int>(255 - 140 * blue),
                static_cast<int>(255 - 70 * blue - 75 * orange),
                static_cast<int>(255 - 165 * orange));
    }
  }
  for (size_t i = 0; i < points.spiral.size(); ++i) {
    const int column = static_cast<int>((points.xy[2 * i] + 1) / 2 * size);
    const int row = static_cast<int>((1 - points.xy[2 * i + 1]) / 2 * size);
    const bool one = points.spiral[i] == 1;
    for (int dr = -1; dr <= 1; ++dr) {
      for (int dc = -1; dc <= 1; ++dc)
        image.set(row + dr, column + dc, one ? 20 : 190, one ? 60 : 80, one ? 150 : 0);
    }
  }
  return image.write(path);
}

int main(int argc, char** argv) {
  // spirals [FILE] [--device cuda]: the same program on a GPU.
  std::string path = "spirals.png";
  for (int i = 1; i < argc; ++i) {
    if (argv[i] == std::string("--device") && i + 1 < argc)
      ingot::set_default_device(ingot::Device(argv[++i]));
    else
      path = argv[i];
  }
  constexpr int steps = 800;
  ingot::manual_seed(1);

  const Points points = make_spirals(400);
  const int64_t count = static_cast<int64_t>(points.spiral.size());
  Tensor x = ingot::tensor(points.xy, {count, 2});
  Tensor target = ingot::tensor(points.spiral, {count});

  Network network;
  ingot::optim::AdamW optimiser(network.parameters(), {.lr = 1e-2, .weight_decay = 1e-4});
  const auto start = std::chrono::steady_clock::now();
  for (int step = 1; step <= steps; ++step) {
    Tensor logits = network(x);
    Tensor loss = ingot::cross_entropy(logits, target);
    loss.backward();
    optimiser.step();
    if (step % 50 == 0) {
      const double right = logits.argmax(-1).eq(target).to(ingot::float32).mean().item();
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      std::printf("\rstep %4d of %d   loss %.4f   right %5.1f %%   %5.0f steps/s", step, steps,
                  loss.item(), 100 * right, step / seconds);
      std::fflush(stdout);
    }
  }
  std::printf("\n");

  if (!draw(network, points, path)) {
    std::fprintf(stderr, "spirals: could not write %s\n", path.c_str());
    return 1;
  }
  std::printf("the image of what the network learned is in %s\n", path.c_str());
  return 0;
}
