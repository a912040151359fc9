#include "comm/mpi_thread.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <thread>
#include <utility>

#include "base/pool.h"
#include "base/stopwatch.h"

namespace hearth {
namespace {

using std::chrono::microseconds;

constexpr double kFarewellSeconds = 1;            // after a failure, for the others' goodbyes
constexpr std::chrono::seconds kMostFarewell(2);  // then the thread is left alone
// When all have left, for goodbyes by MPI: its network may be gone.
constexpr double kLastGoodbyes = 10;
constexpr double kMostSettle = 3;                // after a failure: then MPI hangs
constexpr std::chrono::milliseconds kLook(100);  // for that
// Between two polls: short while messages come, longer while none do. New work ends a pause.
constexpr microseconds kLeastPause(20), kMostPause(500), kIdlePause(2000);

std::atomic<bool> mpi_thread_was_made{false};

}  // namespace

MpiThread::MpiThread(const MpiWorldOptions& options) : shared_(std::make_shared<Shared>()) {
  HEARTH_CHECK(!mpi_thread_was_made.exchange(true), "mpi: one world in a process");
  std::thread([shared = shared_, options] { run(shared, options); }).detach();
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait(lock, [&] { return shared_->has_begun || shared_->has_ended; });
  if (shared_->failure) throw PeerError(*shared_->failure);
  rank_ = shared_->rank;
  hosts_ = shared_->hosts;
}

MpiThread::~MpiThread() {
  std::unique_lock lock(shared_->mutex);
  shared_->is_leaving = true;
  shared_->work.notify_one();
  shared_->changed.wait(lock, [&] { return shared_->has_ended || shared_->failure; });
  shared_->changed.wait_for(lock, kMostFarewell,
                            [&] { return shared_->has_ended || shared_->mpi_hangs; });
}

bool MpiThread::Shared::has_given_up() const {
  return failure && (is_settled || mpi_hangs || steady_seconds() - failed_at > kMostSettle);
}

bool MpiThread::set_failure(Shared& shared, PeerFailure failure) {
  const std::lock_guard lock(shared.mutex);
  const bool is_first = !shared.failure;
  if (is_first) {
    shared.failure = std::move(failure);
    shared.failed_at = steady_seconds();
    if (shared.watchdog) shared.watchdog->tell(*shared.failure);
  }
  shared.work.notify_one();
  shared.changed.notify_all();
  return is_first;
}

std::unique_ptr<Watchdog> MpiThread::make_watchdog(Shared& shared, MpiCalls& calls) {
  auto peers = calls.connect_peers();
  if (!peers) return nullptr;
  WatchdogCalls reports;
  reports.failed = [&shared, rank = calls.rank()](PeerFailure failure) {
    // What a watchdog is the first to notice of its own rank.
    const bool hangs = failure.rank == rank && failure.fault == PeerFault::own_error;
    if (!set_failure(shared, std::move(failure)) || !hangs) return;
    const std::lock_guard lock(shared.mutex);
    shared.mpi_hangs = true;
    shared.changed.notify_all();
  };
  reports.point = [&] {
    const std::lock_guard lock(shared.mutex);
    return shared.last_point;
  };
  reports.in_call_since = [&] { return shared.in_call_since.load(); };
  reports.pieces = &shared.pieces;
  reports.least_stall_s = calls.slowest_piece_s();
  return std::make_unique<Watchdog>(calls.rank(), calls.hosts(), std::move(*peers),
                                    std::move(reports));
}

void MpiThread::run(const std::shared_ptr<Shared>& shared, const MpiWorldOptions& options) {
  unbind_thread();
  try {
    MpiCalls::Reports reports;
    reports.ended = [&](MpiOperation& operation) {
      const std::lock_guard lock(shared->mutex);
      operation.has_ended = true;
      shared->changed.notify_all();
    };
    reports.failed = [&](PeerFailure failure) { set_failure(*shared, std::move(failure)); };
    reports.failure = [&] {
      const std::lock_guard lock(shared->mutex);
      return shared->failure;
    };
    MpiCalls calls(options, std::move(reports), shared->pieces);
    shared->in_call_since = steady_seconds();
    std::unique_ptr<Watchdog> watchdog = make_watchdog(*shared, calls);
    {
      const std::lock_guard lock(shared->mutex);
      shared->watchdog = std::move(watchdog);
      shared->rank = calls.rank();
      shared->hosts = calls.hosts();
      shared->has_begun = true;
      shared->changed.notify_all();
    }
    serve(*shared, calls);
    calls.finish();
  } catch (const std::exception& error) {
    PeerFailure failure;
    failure.rank = shared->rank;
    if (!shared->hosts.empty()) failure.host = shared->hosts[static_cast<size_t>(failure.rank)];
    failure.detail = error.what();
    set_failure(*shared, std::move(failure));
  }
  std::unique_ptr<Watchdog> watchdog;  // ends outside of the lock, which it may wait for
  {
    const std::lock_guard lock(shared->mutex);
    watchdog = std::move(shared->watchdog);
  }
  watchdog.reset();
  const std::lock_guard lock(shared->mutex);
  shared->is_settled = shared->has_ended = true;
  shared->changed.notify_all();
}

void MpiThread::serve(Shared& shared, MpiCalls& calls) {
  bool is_told = false, is_leaving = false;
  Stopwatch since_failure, since_all_leave;
  microseconds pause = kLeastPause;
  for (;;) {
    shared.in_call_since = steady_seconds();
    std::deque<std::function<void(MpiCalls&)>> commands;
    std::optional<PeerFailure> failure;
    {
      const std::lock_guard lock(shared.mutex);
      commands.swap(shared.commands);
      failure = shared.failure;
      if (shared.is_leaving && !is_leaving && shared.watchdog) shared.watchdog->say_goodbye();
      is_leaving = shared.is_leaving;
      const bool all_leave =
          is_leaving && shared.watchdog != nullptr && shared.watchdog->all_have_left();
      if (!all_leave) since_all_leave.restart();
    }
    const bool had_work = !commands.empty();
    for (auto& work : commands) work(calls);
    if (failure && !is_told) {
      is_told = true;
      calls.tell(*failure);
      calls.settle();
      since_failure.restart();
      const std::lock_guard lock(shared.mutex);
      shared.is_settled = true;
      shared.changed.notify_all();
    }
    const bool moved = calls.progress();
    if (is_leaving) {
      calls.say_goodbye();
      if (calls.all_have_left()) return;
      if (is_told && since_failure.seconds() > kFarewellSeconds) return;
      if (since_all_leave.seconds() > kLastGoodbyes) return;
    }
    if (moved || had_work) {
      pause = kLeastPause;
      continue;
    }
    std::unique_lock lock(shared.mutex);
    const auto is_news = [&] {
      return !shared.commands.empty() || (shared.failure && !is_told) ||
             shared.is_leaving != is_leaving;
    };
    shared.work.wait_for(lock, calls.has_operations() ? pause : kIdlePause, is_news);
    pause = std::min(2 * pause, kMostPause);
  }
}

void MpiThread::command(std::function<void(MpiCalls&)> work) {
  shared_->commands.push_back(std::move(work));
  shared_->work.notify_one();
}

int64_t MpiThread::make_group(std::span<const int32_t> ranks) {
  auto made = std::make_shared<std::promise<int64_t>>();
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->failure) throw PeerError(*shared_->failure);
    command([made, list = std::vector<int32_t>(ranks.begin(), ranks.end())](MpiCalls& calls) {
      try {
        made->set_value(calls.make_group(list));
      } catch (...) {
        made->set_exception(std::current_exception());
      }
    });
  }
  std::future<int64_t> number = made->get_future();
  while (number.wait_for(kLook) != std::future_status::ready) {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->has_given_up()) throw PeerError(*shared_->failure);
  }
  return number.get();
}

std::shared_ptr<MpiOperation> MpiThread::post(int64_t group, std::vector<int32_t> members,
                                              Operation operation) {
  auto issued = std::make_shared<MpiOperation>();
  issued->operation = std::move(operation);
  issued->members = std::move(members);
  const std::lock_guard lock(shared_->mutex);
  if (shared_->failure) throw PeerError(*shared_->failure);
  shared_->last_point = issued->operation.point;
  command([group, issued](MpiCalls& calls) { calls.begin(group, issued); });
  return issued;
}

bool MpiThread::reached(const MpiOperation& operation) {
  const std::lock_guard lock(shared_->mutex);
  if (!operation.has_ended && shared_->has_given_up()) throw PeerError(*shared_->failure);
  return operation.has_ended;
}

void MpiThread::wait(const MpiOperation& operation) {
  std::unique_lock lock(shared_->mutex);
  while (!shared_->changed.wait_for(
      lock, kLook, [&] { return operation.has_ended || shared_->has_given_up(); })) {
  }
  if (!operation.has_ended) throw PeerError(*shared_->failure);
}

void MpiThread::abandon(const MpiOperation& operation) {
  {
    const std::lock_guard lock(shared_->mutex);
    if (operation.has_ended) return;
  }
  PeerFailure failure;
  failure.rank = rank_;
  failure.host = host(rank_);
  failure.fault = PeerFault::died;
  failure.at = operation.operation.point;
  set_failure(*shared_, std::move(failure));
  std::unique_lock lock(shared_->mutex);
  while (!shared_->changed.wait_for(
      lock, kLook, [&] { return operation.has_ended || shared_->has_given_up(); })) {
  }
}

PeerError MpiThread::fail(PeerFailure failure) {
  set_failure(*shared_, std::move(failure));
  const std::lock_guard lock(shared_->mutex);
  return PeerError(*shared_->failure);
}

void MpiThread::watch(double silence_s) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->watchdog) return shared_->watchdog->watch(silence_s);
  command([silence_s](MpiCalls& calls) { calls.watch(silence_s); });
}

void MpiThread::beat() {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->failure) throw PeerError(*shared_->failure);
}

}  // namespace hearth
