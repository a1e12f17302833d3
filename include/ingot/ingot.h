// All of Ingot.
#pragma once
#include "ingot/ops.h"
#include "ingot/random.h"
#include "ingot/runtime.h"
#include "ingot/tensor.h"
#include "ingot/version.h"
