// Optimisers, averages of parameters, clipping, schedules.
#pragma once
#include "ingot/optim/guard.h"
#include "ingot/optim/optimizer.h"
#include "ingot/optim/schedule.h"
