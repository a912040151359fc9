#include "state/background_save.h"

#include <new>
#include <system_error>
#include <utility>

#include "base/pool.h"

namespace hearth {

BackgroundSave::~BackgroundSave() {
  if (thread_.joinable()) thread_.join();
}

void BackgroundSave::begin(std::unique_ptr<StateSave> save) {
  HEARTH_CHECK(!in_flight(), "a save is in flight");
  save_ = std::move(save);
  outcome_ = {save_->step(), "", 0, 0};
  bug_ = nullptr;
  ended_ = false;
  since_begin_.restart();
  try {
    thread_ = std::thread([this] {
      unbind_thread();
      write();
    });
  } catch (const std::system_error&) {
    write();
  }
}

void BackgroundSave::write() {
  try {
    save_->write();
  } catch (const Error& error) {
    outcome_.failure = error.what();
  } catch (const std::bad_alloc&) {
    outcome_.failure = "out of memory";
  } catch (...) {
    bug_ = std::current_exception();
  }
  outcome_.seconds = since_begin_.seconds();
  ended_ = true;
}

void BackgroundSave::wait_until_safe(size_t views) {
  if (save_) save_->wait_until_safe(views);
}

std::optional<SaveOutcome> BackgroundSave::end(bool wait) {
  if (!in_flight() || (!wait && !ended_)) return std::nullopt;
  if (thread_.joinable()) thread_.join();
  outcome_.waited_s = save_->waited_s();
  save_.reset();
  if (bug_) std::rethrow_exception(bug_);
  return outcome_;
}

}  // namespace hearth
