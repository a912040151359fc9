// NCCL, loaded at run time, so that the program also starts without it.
#include "comm/nccl_calls.h"

#include <dlfcn.h>
#include <nccl.h>

#include <cstring>
#include <memory>
#include <string>

#include "device/cuda_stream.h"

namespace hearth {
namespace {

static_assert(kNcclOk == ncclSuccess && kNcclInProgress == ncclInProgress);
static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));

/// The functions that we use.
struct NcclLibrary {
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclCommFinalize) comm_finalize = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) receive = nullptr;
};

template <class F>
bool look_up(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

bool look_up_all(void* library, NcclLibrary& to) {
  return look_up(library, "ncclGetErrorString", to.get_error_string) &&
         look_up(library, "ncclGetLastError", to.get_last_error) &&
         look_up(library, "ncclGetUniqueId", to.get_unique_id) &&
         look_up(library, "ncclCommInitRankConfig", to.comm_init_rank_config) &&
         look_up(library, "ncclCommGetAsyncError", to.comm_get_async_error) &&
         look_up(library, "ncclCommFinalize", to.comm_finalize) &&
         look_up(library, "ncclCommDestroy", to.comm_destroy) &&
         look_up(library, "ncclCommAbort", to.comm_abort) &&
         look_up(library, "ncclGroupStart", to.group_start) &&
         look_up(library, "ncclGroupEnd", to.group_end) && look_up(library, "ncclSend", to.send) &&
         look_up(library, "ncclRecv", to.receive);
}

cudaStream_t handle_of(Stream& stream) {
  return static_cast<cudaStream_t>(cuda_stream(stream).handle());
}

class Nccl final : public NcclCalls {
 public:
  explicit Nccl(const NcclLibrary& library) : nccl_(library) {}

  std::string error_text(NcclCode code, void* comm) override {
    std::string text = nccl_.get_error_string(static_cast<ncclResult_t>(code));
    const char* const last = nccl_.get_last_error(static_cast<ncclComm_t>(comm));
    if (last != nullptr && *last != '\0') text += std::string(": ") + last;
    return text;
  }
  NcclCode get_unique_id(NcclId* id) override {
    ncclUniqueId made;
    const ncclResult_t code = nccl_.get_unique_id(&made);
    std::memcpy(id->data(), &made, sizeof made);
    return code;
  }
  NcclCode comm_init_rank(void** comm, int ranks, const NcclId& id, int rank,
                          Stream& stream) override {
    cuda_stream(stream).handle();  // makes its device current
    ncclUniqueId name;
    std::memcpy(&name, id.data(), sizeof name);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    return nccl_.comm_init_rank_config(reinterpret_cast<ncclComm_t*>(comm), ranks, name, rank,
                                       &config);
  }
  NcclCode comm_get_async_error(void* comm, NcclCode* state) override {
    ncclResult_t found = ncclSuccess;
    const ncclResult_t code = nccl_.comm_get_async_error(static_cast<ncclComm_t>(comm), &found);
    *state = found;
    return code;
  }
  NcclCode comm_finalize(void* comm) override {
    return nccl_.comm_finalize(static_cast<ncclComm_t>(comm));
  }
  NcclCode comm_destroy(void* comm) override {
    return nccl_.comm_destroy(static_cast<ncclComm_t>(comm));
  }
  NcclCode comm_abort(void* comm) override {
    return nccl_.comm_abort(static_cast<ncclComm_t>(comm));
  }
  NcclCode group_start() override { return nccl_.group_start(); }
  NcclCode group_end() override { return nccl_.group_end(); }
  NcclCode send(const void* data, size_t bytes, int peer, void* comm, Stream& stream) override {
    return nccl_.send(data, bytes, ncclInt8, peer, static_cast<ncclComm_t>(comm),
                      handle_of(stream));
  }
  NcclCode receive(void* data, size_t bytes, int peer, void* comm, Stream& stream) override {
    return nccl_.receive(data, bytes, ncclInt8, peer, static_cast<ncclComm_t>(comm),
                         handle_of(stream));
  }

 private:
  const NcclLibrary nccl_;
};

struct Opened {
  std::unique_ptr<Nccl> calls;
  std::string why_not;
};

Opened open_nccl() {
  // The system's loader (LD_LIBRARY_PATH), then the toolkit's usual folder.
  for (const char* file : {"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2"}) {
    void* const handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);  // never closed
    if (handle == nullptr) continue;
    NcclLibrary library;
    if (look_up_all(handle, library)) return {std::make_unique<Nccl>(library), {}};
    return {nullptr, std::string(file) + " lacks functions that are needed"};
  }
  return {nullptr, "libnccl.so.2 was not found"};
}

}  // namespace

NcclCalls* nccl_calls(std::string& why_not) {
  static const Opened opened = open_nccl();
  why_not = opened.why_not;
  return opened.calls.get();
}

}  // namespace hearth
