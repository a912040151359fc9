#include "device/host_memory_device.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "device/host_event.h"
#include "device/host_stream.h"

namespace hearth {
namespace {

HostEvent& host_event(Event& event) {
  auto* host = dynamic_cast<HostEvent*>(&event);
  HEARTH_CHECK(host != nullptr, "a host stream with an event of another device");
  return *host;
}

// Runs piece(begin, bytes) over a range by the workers of the stream: enough of them fill the
// memory's bandwidth.
template <class Piece>
void in_pieces(Stream& stream, size_t bytes, const Piece& piece) {
  constexpr size_t size = size_t{1} << 20;
  const auto pieces = static_cast<int64_t>((bytes + size - 1) / size);
  host_stream(stream).pool().run(pieces, [&](int64_t i, int) {
    const size_t begin = static_cast<size_t>(i) * size;
    piece(begin, std::min(size, bytes - begin));
  });
}

}  // namespace

std::unique_ptr<Event> HostMemoryDevice::create_event(bool) {
  return std::make_unique<HostEvent>();
}

void HostMemoryDevice::record(Event& event, Stream& stream) {
  stream.synchronize();
  host_event(event).reach();
}

void HostMemoryDevice::wait(Stream&, Event& event) { event.synchronize(); }

double HostMemoryDevice::seconds_between(Event& begin, Event& end) {
  const auto from = host_event(begin).reached_at();
  return std::chrono::duration<double>(host_event(end).reached_at() - from).count();
}

void HostMemoryDevice::copy(Stream& stream, void* target, const void* source, size_t bytes) {
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  in_pieces(stream, bytes,
            [&](size_t begin, size_t n) { std::memcpy(to + begin, from + begin, n); });
}

void HostMemoryDevice::fill(Stream& stream, void* target, std::byte value, size_t bytes) {
  auto* to = static_cast<std::byte*>(target);
  in_pieces(stream, bytes, [&](size_t begin, size_t n) {
    std::memset(to + begin, std::to_integer<int>(value), n);
  });
}

void HostMemoryDevice::fail(Event& event, std::exception_ptr error) {
  host_event(event).fail(std::move(error));
}

}  // namespace hearth
