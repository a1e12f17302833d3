// What kernel text and emulator share; the text has its own copy of these declarations in
// cuda_builtins.h.
#pragma once

struct IgEmuDim {
  unsigned x, y, z;
};
struct IgEmuState {
  IgEmuDim thread, block, block_dim, grid_dim;
  unsigned char* dynamic_shared;
  void (*barrier)();
  unsigned long long (*shuffle)(unsigned long long value, unsigned from);
};
