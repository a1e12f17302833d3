// All of Ingot but the ready-made networks, which are in ingot/models.h.
#pragma once
#include <iostream>

#include "ingot/amp.h"
#include "ingot/autograd.h"
#include "ingot/capture.h"
#include "ingot/checkpoint.h"
#include "ingot/data.h"
#include "ingot/devices.h"
#include "ingot/distributed.h"
#include "ingot/fit.h"
#include "ingot/interop.h"
#include "ingot/io.h"
#include "ingot/nn.h"
#include "ingot/ops.h"
#include "ingot/optim.h"
#include "ingot/runtime.h"
#include "ingot/state.h"
#include "ingot/tensor.h"
#include "ingot/version.h"
