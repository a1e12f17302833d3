// Whole models, built from nn.h.
#pragma once
#include "ingot/models/gpt.h"
#include "ingot/models/vision.h"
