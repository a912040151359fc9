// Host memory with a budget. Ops have finished when they return, so a stream holds no queue, and an
// event is reached as soon as it is recorded.
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "base/error.h"
#include "device/device.h"
#include "device/host_stream.h"

namespace hearth {
namespace {

class HostEvent final : public Event {
 public:
  void reset() override {
    const std::lock_guard lock(mutex_);
    reached_ = false;
    error_ = nullptr;
  }
  void synchronize() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return reached_ || error_; });
    if (error_) std::rethrow_exception(error_);
  }
  void reach() {
    const std::lock_guard lock(mutex_);
    reached_ = true;
    changed_.notify_all();
  }
  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;
  std::exception_ptr error_;
};

HostEvent& host_event(Event& event) {
  auto* host = dynamic_cast<HostEvent*>(&event);
  HEARTH_CHECK(host != nullptr, "a host stream with an event of another device");
  return *host;
}

// Bytes reserved of a budget; a claim gives its bytes back when its last owner is gone.
class Budget : public std::enable_shared_from_this<Budget> {
 public:
  explicit Budget(uint64_t bytes) : bytes_(bytes) {}

  std::shared_ptr<void> claim(const std::string& name, uint64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      if (bytes > bytes_ - used_) {
        throw usage_error("memory of host: " + name + " needs " + std::to_string(bytes) +
                          " bytes, " + std::to_string(bytes_ - used_) + " of the budget of " +
                          std::to_string(bytes_) + " are left; raise --cpu-memory");
      }
      used_ += bytes;
    }
    // Unlocked: where there is no memory for the pointer, it gives the claim back at once.
    return {this, [self = shared_from_this(), bytes](void*) {
              const std::lock_guard guard(self->mutex_);
              self->used_ -= bytes;
            }};
  }
  uint64_t bytes() const { return bytes_; }

 private:
  const uint64_t bytes_;
  std::mutex mutex_;
  uint64_t used_ = 0;
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(uint64_t budget) : budget_(std::make_shared<Budget>(budget)) {}

  const std::string& name() const override { return name_; }
  std::vector<MemorySpace> spaces() const override {
    return {{SpaceKind::host, 0, budget_->bytes()}};
  }

  std::unique_ptr<Arena> reserve(const std::string& arena, SpaceKind space, size_t bytes) override {
    HEARTH_CHECK(space == SpaceKind::host, "host device: it has host memory only");
    return std::make_unique<Arena>(arena, bytes, budget_->claim(arena, bytes));
  }

  std::unique_ptr<Stream> create_stream(const StreamOptions& options) override {
    auto claim =
        budget_->claim("scratch of stream " + options.name, HostStream::memory_bytes(options));
    return std::make_unique<HostStream>(options, std::move(claim));
  }
  std::unique_ptr<Event> create_event() override { return std::make_unique<HostEvent>(); }

  void record(Event& event, Stream& stream) override {
    stream.synchronize();
    host_event(event).reach();
  }
  void wait(Stream&, Event& event) override { event.synchronize(); }

  void copy(Stream& stream, void* target, const void* source, size_t bytes) override {
    constexpr size_t piece = size_t{1} << 20;  // enough workers fill the memory's bandwidth
    auto* to = static_cast<std::byte*>(target);
    const auto* from = static_cast<const std::byte*>(source);
    const auto pieces = static_cast<int64_t>((bytes + piece - 1) / piece);
    host_stream(stream).pool().run(pieces, [&](int64_t i, int) {
      const size_t begin = static_cast<size_t>(i) * piece;
      std::memcpy(to + begin, from + begin, std::min(piece, bytes - begin));
    });
  }

  void fail(Event& event, std::exception_ptr error) override {
    host_event(event).fail(std::move(error));
  }

 private:
  std::string name_ = "host";
  std::shared_ptr<Budget> budget_;
};

}  // namespace

std::unique_ptr<Device> make_host_device(uint64_t budget) {
  return std::make_unique<HostDevice>(budget);
}

}  // namespace hearth
