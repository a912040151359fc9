#include "runtime/pinned_homes.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "base/arena.h"
#include "base/log.h"
#include "base/pool.h"

namespace hearth {
namespace {

/// What the system says of locked memory, for a warning.
std::string lock_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return fmt::format(" (locked memory is limited to {} bytes, see 'ulimit -l')", limit.rlim_cur);
}

/// The pages of the ranges, merged where they touch, by address.
std::vector<HostRange> pages_of(const std::vector<HostRange>& ranges) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<HostRange> pages;
  for (const HostRange& range : ranges) {
    if (range.bytes == 0) continue;
    const size_t before = reinterpret_cast<uintptr_t>(range.begin) % page;
    pages.push_back({range.begin - before, align_up(before + range.bytes, page)});
  }
  std::ranges::sort(pages, {}, &HostRange::begin);
  size_t last = 0;
  for (size_t i = 1; i < pages.size(); ++i) {
    HostRange& into = pages[last];
    if (pages[i].begin <= into.begin + into.bytes) {
      const auto end = std::max(into.begin + into.bytes, pages[i].begin + pages[i].bytes);
      into.bytes = static_cast<size_t>(end - into.begin);
    } else {
      pages[++last] = pages[i];
    }
  }
  if (!pages.empty()) pages.resize(last + 1);
  return pages;
}

}  // namespace

PinnedHomes::PinnedHomes(Device& device, const std::vector<HostRange>& ranges,
                         const Options& options) {
  for (const HostRange& range : pages_of(ranges)) {
    for (size_t at = 0; at < range.bytes; at += options.piece_bytes) {
      pieces_.push_back(
          {range.begin + at, std::min(options.piece_bytes, range.bytes - at), nullptr});
    }
    bytes_ += range.bytes;
  }
  pin(device, options.threads);
  for (const Piece& piece : pieces_) pinned_bytes_ += piece.pin ? piece.bytes : 0;
  if (pinned_bytes_ < bytes_) {
    log_warning(fmt::format(
        "{}: the system pins {} of {} bytes of the weights that travel{}; the rest is copied "
        "through a pinned buffer, which is slower",
        device.name(), pinned_bytes_, bytes_, lock_limit()));
  }
}

void PinnedHomes::pin(Device& device, int threads) {
  std::atomic<size_t> next{0};
  std::atomic<bool> ends{false};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    unbind_thread();
    for (size_t i = next++; i < pieces_.size() && !ends; i = next++) {
      try {
        pieces_[i].pin = device.pin(pieces_[i].begin, pieces_[i].bytes);
        if (!pieces_[i].pin) ends = true;  // more would be refused as well
      } catch (...) {
        const std::lock_guard lock(mutex);
        error = std::current_exception();
        ends = true;
      }
    }
  };
  std::vector<std::thread> helpers;
  const auto most = std::min(static_cast<size_t>(std::max(threads, 1)), pieces_.size());
  for (size_t i = 0; i < most; ++i) helpers.emplace_back(work);
  for (std::thread& helper : helpers) helper.join();
  if (error) std::rethrow_exception(error);
}

PinnedHomes::Run PinnedHomes::run_at(const std::byte* address, size_t bytes) const {
  const auto after = std::ranges::upper_bound(pieces_, address, {}, [](const Piece& piece) {
    return static_cast<const std::byte*>(piece.begin);
  });
  const auto until = [&](const std::byte* end) {
    return std::min(bytes, static_cast<size_t>(end - address));
  };
  if (after != pieces_.begin()) {
    const Piece& piece = *(after - 1);
    if (address < piece.begin + piece.bytes) {
      return {until(piece.begin + piece.bytes), piece.pin != nullptr};
    }
  }
  return {after == pieces_.end() ? bytes : until(after->begin), false};
}

}  // namespace hearth
