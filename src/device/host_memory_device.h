// Base of devices that compute in host memory. Their ops finish before they return, so an event is
// reached as soon as it is recorded.
#pragma once

#include "device/device.h"

namespace hearth {

class HostMemoryDevice : public Device {
 public:
  bool host_reaches() const override { return true; }
  std::unique_ptr<Event> create_event(bool timed) override;
  void record(Event& event, Stream& stream) override;
  void wait(Stream& stream, Event& event) override;
  double seconds_between(Event& begin, Event& end) override;
  void copy(Stream& stream, void* target, const void* source, size_t bytes) override;
  void fill(Stream& stream, void* target, std::byte value, size_t bytes) override;
  void check() override {}
  void fail(Event& event, std::exception_ptr error) override;
};

}  // namespace hearth
