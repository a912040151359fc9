#include "device/host_stream.h"

namespace hearth {
namespace {

size_t worker_bytes(const StreamOptions& o) { return align_up(o.worker_scratch_bytes); }

}  // namespace

size_t HostStream::memory_bytes(const StreamOptions& options) {
  HEARTH_CHECK(options.workers >= 1, "a stream without workers");
  return align_up(options.scratch_bytes) +
         worker_bytes(options) * static_cast<size_t>(options.workers);
}

HostStream::HostStream(const StreamOptions& options, std::shared_ptr<void> reservation)
    : memory_("scratch of stream " + options.name, memory_bytes(options), std::move(reservation)),
      pool_(options.workers, options.cores),
      scratch_(memory_.data(), align_up(options.scratch_bytes)) {
  memory_.touch(pool_);
  std::byte* at = memory_.data() + scratch_.size();
  for (int i = 0; i < options.workers; ++i, at += worker_bytes(options)) {
    worker_scratch_.emplace_back(at, worker_bytes(options));
  }
}

HostStream& host_stream(Stream& stream) {
  auto* host = dynamic_cast<HostStream*>(&stream);
  HEARTH_CHECK(host != nullptr, "a host op on a stream of another device");
  return *host;
}

}  // namespace hearth
