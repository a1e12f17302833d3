// A small GPT memorises a rhyme and recites it.
//
//   gpt [--device cpu]
#include <ingot/ingot.h>
#include <ingot/models.h>
using namespace ingot;

static const std::string rhyme =
    "Twinkle, twinkle, little star,\nHow I wonder what you are!\nUp above the world so high,\nLike "
    "a diamond "
    "in the sky.\n";

int main(int argc, char** argv) {
  const Device device = argc > 1 ? Device(argv[argc - 1]) : Device::best();
  set_default_device(device);
  manual_seed(1);
  const data::ByteTokenizer bytes;
  std::string text;
  for (int i = 0; i < 4; ++i) text += rhyme;
  const Tensor tokens = tensor(bytes.encode(text));
  models::GPT model({.layers = 2, .heads = 4, .width = 64, .context = 96, .vocabulary = 256});
  optim::AdamW opt(model.parameters(), {.lr = 2e-3});
  const int64_t length = 96;
  double last = 0;
  for (int step = 0; step < 240; ++step) {
    std::vector<Tensor> xs, ys;
    for (int64_t i = 0; i < 6; ++i) {
      const int64_t at = (step * 37 + i * 17) % (tokens.size(0) - length - 1);
      xs.push_back(tokens.narrow(0, at, length));
      ys.push_back(tokens.narrow(0, at + 1, length));
    }
    const Tensor loss = cross_entropy(model(stack(xs)).flatten(0, 1), stack(ys).flatten());
    opt.zero_grad();
    loss.backward();
    opt.step();
    last = loss.item();
    if (step % 50 == 0) std::cout << "step " << step << " loss " << last << "\n";
  }
  const std::vector<int64_t> prompt = bytes.encode("Twinkle");
  const Tensor said =
      model.generate(tensor(prompt).unsqueeze(0), {.max_new_tokens = 80, .temperature = 0});
  std::cout << "loss " << last << "\n" << bytes.decode(said[0].to_vector<int64_t>()) << "\n";
  return last < 0.5 ? 0 : 1;
}
