// Data: datasets, the loader that makes batches of them, transforms of images, readers of files,
// tokenizers.
//
//   data::DataLoader train(data::FashionMNIST("data"), {.batch_size = 128, .shuffle = true});
//   for (auto [images, labels] : train) ...
#pragma once
#include "ingot/data/datasets.h"
#include "ingot/data/loader.h"
#include "ingot/data/readers.h"
#include "ingot/data/tokenizers.h"
#include "ingot/data/transforms.h"
