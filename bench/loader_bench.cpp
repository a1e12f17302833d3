// Images per second from a folder of JPEGs, as a training loop would read them: decoded, cropped to
// 224, flipped, normalised, batched.
//   ingot-bench-loader FOLDER [WORKERS] [EPOCHS]
// Prints one line of JSON per epoch. bench/compare_loader alternates it with PyTorch's DataLoader.
#include <ingot/ingot.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

using namespace ingot;

int main(int argc, char** argv) {
  if (argc < 2)
    return std::fprintf(stderr, "usage: ingot-bench-loader FOLDER [WORKERS] [EPOCHS]\n"), 2;
  int workers = argc > 2 ? std::atoi(argv[2]) : 2, epochs = argc > 3 ? std::atoi(argv[3]) : 3;
  data::Transforms t = {data::RandomResizedCrop(224), data::RandomHorizontalFlip(),
                        data::ToTensor(),
                        data::Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})};
  data::DataLoader loader(data::ImageFolder(argv[1], {.transform = t}),
                          {.batch_size = 64, .shuffle = true, .num_workers = workers});
  for (int e = 0; e < epochs; ++e) {
    auto start = std::chrono::steady_clock::now();
    int64_t images = 0;
    for (auto [x, y] : loader) images += x.size(0);
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("{\"images\": %lld, \"seconds\": %.4f, \"images_per_second\": %.1f}\n",
                static_cast<long long>(images), seconds, static_cast<double>(images) / seconds);
    std::fflush(stdout);
  }
}
