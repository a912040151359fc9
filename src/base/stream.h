// The stream handle that ops take.
#pragma once

#include "base/arena.h"

namespace hearth {

/// An ordered queue of work on a device. Ops on one stream take effect in the order of the calls.
/// Host ops have finished when they return; device ops may only be enqueued. Made by
/// `Device::create_stream`, used by one thread at a time.
class Stream {
 public:
  virtual ~Stream() = default;
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Waits until everything issued so far has finished. Raises the error of a failed operation.
  virtual void synchronize() = 0;
  /// Memory that an op may use until it returns (host) or until its last kernel ends (device).
  virtual Scratch& scratch() = 0;
  /// Compute seconds so far, summed over the stream's workers.
  virtual double busy_seconds() const { return 0; }
  /// Bytes of the scratch that are resident now.
  virtual size_t resident_bytes() const { return 0; }
};

}  // namespace hearth
