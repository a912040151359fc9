#include "cuda_emulator/engine.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "cuda_emulator/fiber.h"

// All static shared memory, as far as the compiler puts it there (gcc leaves out that of templates).
extern "C" char __start_emulated_shared[] __attribute__((weak));
extern "C" char __stop_emulated_shared[] __attribute__((weak));

namespace hearth::cuda_emulator {

Thread* current = nullptr;
Index block_index;
GridShape grid_shape;
std::byte* dynamic_shared = nullptr;

namespace {

constexpr unsigned kLanes = 32, kLargestBlock = 1024;
constexpr size_t kSharedAlignment = 128;
constexpr int kCanary = 0xff;  // reads as NaN or -1

/// A fiber with the thread that it runs.
struct Worker {
  Fiber fiber;
  Thread* thread = nullptr;
  explicit Worker(void (*main)()) : fiber(main) {}
  Worker() = default;
};

struct Warp {
  unsigned waiting = 0;  // lanes
  std::array<unsigned, kLanes> mask{};
  std::array<const char*, kLanes> what{};
  std::array<void*, kLanes> argument{};
  std::array<Worker*, kLanes> worker{};
};

class Block {
 public:
  void run(unsigned threads, const std::function<void()>& kernel) {
    kernel_ = &kernel;
    count_ = threads;
    started_ = ended_ = 0;
    barrier_.clear();
    for (unsigned w = 0; w * kLanes < threads; ++w) warps_[w].waiting = 0;
    for (unsigned i = 0; i < threads; ++i) {
      Thread& t = threads_[i];
      t.index = {i, 0, 0};
      t.number = i;
      t.ended = false;
      t.what = nullptr;
      t.copies.clear();
      t.group = 0;
    }
    go_home_ = false;
    switch_to(take_idle());
    current = nullptr;
    if (error_ || ended_ < count_) abandon();
  }

  void wait_block(const char* file, int line) {
    Worker* self = running_;
    set_place("__syncthreads", file, line);
    barrier_.push_back(self);
    if (barrier_.size() == count_) {
      check_barrier();
      release(barrier_);
      barrier_.clear();
    }
    leave();
    current->what = nullptr;
  }

  void wait_warp(const char* what, unsigned mask, void* argument,
                 void (*act)(void* const*, unsigned)) {
    const unsigned lane = current->lane();
    Warp& warp = warps_[current->warp()];
    if ((mask >> lane & 1) == 0) fail(std::string(what) + " by a lane that its mask leaves out");
    set_place(what, "", 0);
    warp.waiting |= 1u << lane;
    warp.mask[lane] = mask;
    warp.what[lane] = what;
    warp.argument[lane] = argument;
    warp.worker[lane] = running_;
    if (complete(warp, mask, what)) {
      act(warp.argument.data(), mask);
      warp.waiting &= ~mask;
      current->what = nullptr;
      if (std::has_single_bit(mask)) return;
      // The others first, then this one: nobody gets far ahead.
      released_.clear();
      for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1) != 0) released_.push_back(warp.worker[l]);
      }
      release(released_);
    }
    leave();
    current->what = nullptr;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw std::logic_error(place() + ": " + what);
  }

  bool backwards = false;

 private:
  static std::string place() {
    const auto text = [](const Index& i) {
      return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) +
             ")";
    };
    return std::string("kernel of ") + grid_shape.name + ", block " + text(block_index) +
           (current != nullptr ? ", thread " + std::to_string(current->number) : "");
  }

  static void set_place(const char* what, const char* file, int line) {
    current->what = what;
    current->file = file;
    current->line = line;
  }

  static std::string described(const Thread& t) {
    const std::string who = "thread " + std::to_string(t.number);
    if (t.ended) return who + " has ended";
    if (t.what == nullptr) return who + " has not come";
    std::string text = who + " waits at " + t.what;
    if (t.line > 0) text += " (" + std::string(t.file) + ":" + std::to_string(t.line) + ")";
    return text;
  }

  void check_barrier() const {
    for (const Worker* w : barrier_) {
      if (w->thread->line != current->line || std::strcmp(w->thread->file, current->file) != 0) {
        fail("diverged: " + described(*w->thread) + ", " + described(*current));
      }
    }
  }

  static bool complete(const Warp& warp, unsigned mask, const char* what) {
    if ((warp.waiting & mask) != mask) return false;
    for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
      const auto l = static_cast<size_t>(std::countr_zero(rest));
      if (warp.mask[l] != mask || std::strcmp(warp.what[l], what) != 0) return false;
    }
    return true;
  }

  void release(const std::vector<Worker*>& workers) {
    if (backwards) {
      ready_.insert(ready_.end(), workers.rbegin(), workers.rend());
    } else {
      ready_.insert(ready_.end(), workers.begin(), workers.end());
    }
  }

  Worker* take_idle() {
    if (idle_.empty()) {
      workers_.push_back(std::make_unique<Worker>(&Block::fiber_main));
      return workers_.back().get();
    }
    Worker* worker = idle_.back();
    idle_.pop_back();
    return worker;
  }

  /// Who runs while this one waits: released threads first, so that warps get ahead of each other.
  Worker* next() {
    if (go_home_) return &home_;
    if (!ready_.empty()) {
      Worker* worker = ready_.front();
      ready_.pop_front();
      return worker;
    }
    return started_ < count_ ? take_idle() : &home_;
  }

  void switch_to(Worker* to) {
    Worker* from = running_;
    if (to == from) return;
    running_ = to;
    current = to->thread;
    to->fiber.run(from->fiber);
  }
  void leave() { switch_to(next()); }

  static void fiber_main();

  void work() {
    Worker* self = running_;
    for (;;) {
      while (started_ < count_ && !go_home_) {
        const unsigned n = started_++;
        Thread& thread = threads_[backwards ? count_ - 1 - n : n];
        self->thread = current = &thread;
        try {
          (*kernel_)();
        } catch (...) {
          if (!error_) error_ = std::current_exception();
          go_home_ = true;
        }
        thread.ended = true;
        ++ended_;
      }
      idle_.push_back(self);
      leave();
    }
  }

  /// After an error, or with threads that nobody will wake: their fibers begin anew.
  [[noreturn]] void abandon() {
    std::string waiting;
    if (!error_) {
      const Thread* who = nullptr;
      const Thread* other = nullptr;
      for (unsigned i = 0; i < count_; ++i) {
        if (!threads_[i].ended && who == nullptr) who = &threads_[i];
      }
      for (unsigned i = 0; i < count_; ++i) {
        if (threads_[i].what != who->what || threads_[i].ended) other = &threads_[i];
      }
      waiting = place() + ": diverged: " + described(*who) +
                (other != nullptr ? ", " + described(*other) : "");
    }
    idle_.clear();
    ready_.clear();
    for (const auto& worker : workers_) {
      worker->fiber.reset();
      idle_.push_back(worker.get());
    }
    const std::exception_ptr error = std::exchange(error_, nullptr);
    if (error) std::rethrow_exception(error);
    throw std::logic_error(waiting);
  }

  const std::function<void()>* kernel_ = nullptr;
  unsigned count_ = 0, started_ = 0, ended_ = 0;
  std::array<Thread, kLargestBlock> threads_;
  std::array<Warp, kLargestBlock / kLanes> warps_;
  std::vector<Worker*> barrier_, released_, idle_;
  std::deque<Worker*> ready_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Worker home_;
  Worker* running_ = &home_;
  std::exception_ptr error_;
  bool go_home_ = false;
};

std::mutex one_grid;

// Never destroyed: fibers may not be left while the program ends.
Block& the_block() {
  static auto* const block = new Block;
  return *block;
}

void Block::fiber_main() { the_block().work(); }

}  // namespace

void run_backwards(bool backwards) {
  const std::lock_guard lock(one_grid);
  the_block().backwards = backwards;
}

void sync_block(const char* file, int line) { the_block().wait_block(file, line); }

void sync_warp(const char* what, unsigned mask, void* argument,
               void (*act)(void* const*, unsigned)) {
  the_block().wait_warp(what, mask, argument, act);
}

void run_grid(const GridShape& shape, const std::function<void()>& kernel) {
  const std::lock_guard lock(one_grid);
  grid_shape = shape;
  Block& block = the_block();
  if (shape.threads == 0 || shape.threads > kLargestBlock) block.fail("threads of a block");
  void* shared = nullptr;
  // Of the exact size, so that the address sanitizer sees what is beyond it.
  if (posix_memalign(&shared, kSharedAlignment, std::max<size_t>(1, shape.shared_bytes)) != 0) {
    throw std::bad_alloc();
  }
  const std::unique_ptr<void, void (*)(void*)> owner(shared, &std::free);
  dynamic_shared = static_cast<std::byte*>(shared);
  const auto static_bytes = static_cast<size_t>(__stop_emulated_shared - __start_emulated_shared);
  const uint64_t blocks = uint64_t{shape.blocks.x} * shape.blocks.y * shape.blocks.z;
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t n = block.backwards ? blocks - 1 - i : i;
    block_index = {static_cast<unsigned>(n % shape.blocks.x),
                   static_cast<unsigned>(n / shape.blocks.x % shape.blocks.y),
                   static_cast<unsigned>(n / shape.blocks.x / shape.blocks.y)};
    std::memset(shared, kCanary, shape.shared_bytes);
    if (static_bytes > 0) std::memset(__start_emulated_shared, kCanary, static_bytes);
    block.run(shape.threads, kernel);
  }
}

}  // namespace hearth::cuda_emulator
