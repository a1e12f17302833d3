// The CUDA driver API, loaded at run time: nothing is linked, so the plug-in starts on a machine
// without a GPU and can say what is missing. Functions keep their names in snake case; cuda.h
// decides which version of each is meant.
#pragma once
#include <cuda.h>

#include <string>

namespace ingot::cuda {

#define INGOT_CUDA_FUNCTIONS(X)                     \
  X(init, cuInit)                                   \
  X(driver_get_version, cuDriverGetVersion)         \
  X(get_error_name, cuGetErrorName)                 \
  X(get_error_string, cuGetErrorString)             \
  X(device_get_count, cuDeviceGetCount)             \
  X(device_get, cuDeviceGet)                        \
  X(device_get_name, cuDeviceGetName)               \
  X(device_get_attribute, cuDeviceGetAttribute)     \
  X(device_total_mem, cuDeviceTotalMem)             \
  X(primary_ctx_retain, cuDevicePrimaryCtxRetain)   \
  X(ctx_set_current, cuCtxSetCurrent)               \
  X(ctx_get_current, cuCtxGetCurrent)               \
  X(mem_get_info, cuMemGetInfo)                     \
  X(mem_alloc, cuMemAlloc)                          \
  X(mem_free, cuMemFree)                            \
  X(mem_host_alloc, cuMemHostAlloc)                 \
  X(mem_free_host, cuMemFreeHost)                   \
  X(memcpy_htod_async, cuMemcpyHtoDAsync)           \
  X(memcpy_dtoh_async, cuMemcpyDtoHAsync)           \
  X(memcpy_dtod_async, cuMemcpyDtoDAsync)           \
  X(memset_d8_async, cuMemsetD8Async)               \
  X(stream_create, cuStreamCreate)                  \
  X(stream_synchronize, cuStreamSynchronize)        \
  X(stream_query, cuStreamQuery)                    \
  X(stream_wait_event, cuStreamWaitEvent)           \
  X(stream_begin_capture, cuStreamBeginCapture)     \
  X(stream_end_capture, cuStreamEndCapture)         \
  X(event_create, cuEventCreate)                    \
  X(event_destroy, cuEventDestroy)                  \
  X(event_record, cuEventRecord)                    \
  X(event_query, cuEventQuery)                      \
  X(event_synchronize, cuEventSynchronize)          \
  X(module_load_data, cuModuleLoadData)             \
  X(module_get_function, cuModuleGetFunction)       \
  X(func_set_attribute, cuFuncSetAttribute)         \
  X(func_get_attribute, cuFuncGetAttribute)         \
  X(launch_kernel, cuLaunchKernel)                  \
  X(launch_kernel_ex, cuLaunchKernelEx)             \
  X(graph_instantiate, cuGraphInstantiateWithFlags) \
  X(graph_launch, cuGraphLaunch)                    \
  X(graph_upload, cuGraphUpload)                    \
  X(graph_destroy, cuGraphDestroy)                  \
  X(graph_exec_destroy, cuGraphExecDestroy)

/// Left out by a driver that has no virtual memory: nullptr then.
#define INGOT_CUDA_VMM_FUNCTIONS(X)                                \
  X(mem_get_allocation_granularity, cuMemGetAllocationGranularity) \
  X(mem_address_reserve, cuMemAddressReserve)                      \
  X(mem_address_free, cuMemAddressFree)                            \
  X(mem_create, cuMemCreate)                                       \
  X(mem_release, cuMemRelease)                                     \
  X(mem_map, cuMemMap)                                             \
  X(mem_unmap, cuMemUnmap)                                         \
  X(mem_set_access, cuMemSetAccess)

struct Driver {
#define X(member, function) decltype(&function) member = nullptr;
  INGOT_CUDA_FUNCTIONS(X)
  INGOT_CUDA_VMM_FUNCTIONS(X)
#undef X
  CUresult (*event_elapsed_time)(float*, CUevent, CUevent) = nullptr;
  int version = 0;  // 13000 for CUDA 13.0

  /// Finds libcuda.so.1 ($INGOT_CUDA_DRIVER names another) and starts it. Empty, or what failed and
  /// how to fix it.
  std::string load();
};

/// The one driver of the process; valid after load() succeeded.
Driver& driver();

/// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)"
std::string describe(CUresult r);
/// Throws Error(Internal) naming the call.
void check(CUresult r, const char* what);

}  // namespace ingot::cuda
