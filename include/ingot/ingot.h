// All of Ingot.
#pragma once
#include "ingot/amp.h"
#include "ingot/autograd.h"
#include "ingot/capture.h"
#include "ingot/distributed.h"
#include "ingot/models.h"
#include "ingot/nn.h"
#include "ingot/ops.h"
#include "ingot/optim.h"
#include "ingot/random.h"
#include "ingot/runtime.h"
#include "ingot/tensor.h"
#include "ingot/version.h"
