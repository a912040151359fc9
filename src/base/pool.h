// The only place that makes compute threads: a team of workers that runs the tiles of an op.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace hearth {

/// Lets the calling thread run on every CPU that the process might use at its start: for threads
/// beside the workers, which inherit the binding of the worker that made them.
void unbind_thread();

/// A reference to a callable that lives at least as long as the call it is passed to.
class TileFunction {
 public:
  template <class F>
  TileFunction(const F& f)  // NOLINT: implicit on purpose, so that lambdas can be passed
      : object_(&f), call_([](const void* o, int64_t tile, int worker) {
          (*static_cast<const F*>(o))(tile, worker);
        }) {}
  void operator()(int64_t tile, int worker) const { call_(object_, tile, worker); }

 private:
  const void* object_;
  void (*call_)(const void*, int64_t, int);
};

/// An OpenMP team of a fixed size. An op is a set of tiles that shape alone cuts; which worker runs
/// which tile is left open, so a tile must write what no other tile touches, and sums over tiles
/// are formed afterwards in tile order. Then results do not depend on the number of workers.
///
/// Every worker has denormals flushed (FTZ and DAZ) and, where cores are given, is bound to its
/// own. Libraries called inside a tile (oneDNN) run on that worker alone.
class Pool {
 public:
  /// `cores`: logical CPU numbers to bind to, one a worker; empty = unbound.
  explicit Pool(int workers, std::vector<int> cores = {});

  int workers() const { return workers_; }
  /// Seconds that workers have spent on tiles since the pool was made, summed over them.
  double busy_seconds() const { return 1e-9 * static_cast<double>(busy_.load()); }

  /// Runs tile(i, worker) for every i in [0, tiles), worker in [0, workers()); returns when all are
  /// done. The first exception of a tile is rethrown here, after all tiles have ended.
  void run(int64_t tiles, TileFunction tile) const;

 private:
  int workers_;
  std::vector<int> cores_;
  mutable std::atomic<int64_t> busy_{0};  // nanoseconds
};

}  // namespace hearth
