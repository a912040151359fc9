// The calls of NCCL that a communicator uses, one function each. Tests put a fake in their place, and
// nothing above needs NCCL's headers.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "base/stream.h"

namespace hearth {

/// A ncclResult_t. The numbers are fixed by NCCL.
using NcclCode = int;
inline constexpr NcclCode kNcclOk = 0;
inline constexpr NcclCode kNcclInProgress = 7;

/// Names a group of ranks before they meet; one rank makes it, and brings it to the others.
using NcclId = std::array<char, 128>;

/// Like NCCL's functions of the same names, of communicators that do not block: kNcclInProgress means
/// that the call goes on, and `comm_get_async_error` says when it has ended. `comm` is NCCL's handle,
/// and streams are of CUDA devices.
class NcclCalls {
 public:
  virtual ~NcclCalls() = default;

  /// `comm` may be null.
  virtual std::string error_text(NcclCode code, void* comm) = 0;
  virtual NcclCode get_unique_id(NcclId* id) = 0;
  /// The communicator is of the stream's device.
  virtual NcclCode comm_init_rank(void** comm, int ranks, const NcclId& id, int rank,
                                  Stream& stream) = 0;
  virtual NcclCode comm_get_async_error(void* comm, NcclCode* state) = 0;
  /// Waits, on the device, for all that was issued. Every rank of the group calls it.
  virtual NcclCode comm_finalize(void* comm) = 0;
  virtual NcclCode comm_destroy(void* comm) = 0;
  /// Ends what is under way on the device, and destroys.
  virtual NcclCode comm_abort(void* comm) = 0;
  /// Messages between the two move together, so ranks may send to each other.
  virtual NcclCode group_start() = 0;
  virtual NcclCode group_end() = 0;
  virtual NcclCode send(const void* data, size_t bytes, int peer, void* comm, Stream& stream) = 0;
  virtual NcclCode receive(void* data, size_t bytes, int peer, void* comm, Stream& stream) = 0;
};

/// The library, opened at the first call, for as long as the program runs. Null, with the reason in
/// `why_not`, if the build is without NCCL, or the library is not there.
NcclCalls* nccl_calls(std::string& why_not);

}  // namespace hearth
