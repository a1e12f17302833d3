// Neural networks: Module, the layers by family, losses as modules, initialisers.
#pragma once
#include "ingot/nn/activation.h"
#include "ingot/nn/containers.h"
#include "ingot/nn/conv.h"
#include "ingot/nn/image.h"
#include "ingot/nn/init.h"
#include "ingot/nn/layers.h"
#include "ingot/nn/loss.h"
#include "ingot/nn/module.h"
#include "ingot/nn/rnn.h"
#include "ingot/nn/transformer.h"
