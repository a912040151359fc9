#include "data/samples/row_cache.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/file_times.h"
#include "base/log.h"
#include "base/user_cache.h"

namespace hearth {
namespace {

constexpr const char* kEnding = ".rows";
constexpr const char* kTemporary = ".tmp-";
constexpr const char* kNameless = ".tmp-nameless-";
constexpr auto kPoll = std::chrono::milliseconds(200);

bool is_entry(const std::string& name) {
  return name.ends_with(kEnding) && Digest::from_hex(name.substr(0, name.size() - 5));
}

void give_new_file(TokenStore& store, const std::string& path) {
  auto out = std::make_unique<OutputFile>(path);
  InputFile in(path);
  store.move_to_file(std::move(out), std::move(in));
}

}  // namespace

std::string row_cache_directory() {
  const std::string cache = user_cache_directory();
  return cache.empty() ? "" : cache + "/rows";
}

RowCache::RowCache(std::string directory, uint64_t most_bytes)
    : directory_(std::move(directory)), most_bytes_(most_bytes) {
  make_private_directory(directory_);
  clean();
}

std::string RowCache::path_of(const Digest& key) const {
  return directory_ + "/" + key.hex() + kEnding;
}
std::string RowCache::temporary_of(const Digest& key) const {
  return directory_ + "/" + kTemporary + key.hex();
}
// Few names, so that locks need never be removed: a lock on a file that is gone locks nothing.
std::string RowCache::lock_of(const std::string& hex) const {
  return directory_ + "/.lock-" + hex.substr(0, 2);
}

void RowCache::clean() const {
  for (const std::string& name : list_directory(directory_)) {
    if (!name.starts_with(kTemporary)) continue;
    const std::string path = directory_ + "/" + name;
    const std::string hex = name.substr(std::string(kTemporary).size());
    if (Digest::from_hex(hex)) {
      try {
        const FileLock lock(lock_of(hex), "the cache of tokenized rows");
        remove_file(path);
      } catch (const Error&) {  // its maker is alive
      }
    } else if (name.starts_with(kNameless)) {
      remove_file(path);  // its maker has it open, or is gone
    }
  }
}

std::optional<TokenStore::Opened> RowCache::find(const Digest& key, int64_t limit,
                                                 int64_t vocabulary) const {
  const std::string path = path_of(key);
  if (file_info(path).kind != FileKind::regular) return std::nullopt;
  try {
    auto opened = TokenStore::open(path, key, limit, vocabulary);
    touch_file(path);
    return opened;
  } catch (const Error& error) {
    log_warning("tokenizing again, the cached rows cannot be read: " + std::string(error.what()));
    try {
      remove_file(path);
    } catch (const Error&) {
    }
    return std::nullopt;
  }
}

std::unique_ptr<FileLock> RowCache::lock(const Digest& key,
                                         const std::function<void()>& wait) const {
  while (true) {
    try {
      return std::make_unique<FileLock>(lock_of(key.hex()), "the cache of tokenized rows");
    } catch (const Error& error) {
      if (error.code() != ExitCode::usage) throw;
    }
    wait();
    std::this_thread::sleep_for(kPoll);
  }
}

void RowCache::begin(const Digest& key, TokenStore& store) const {
  abandon(key);
  give_new_file(store, temporary_of(key));
}

bool RowCache::publish(const Digest& key, TokenStore& store, const std::string& notes) const {
  store.write_footer(key, notes);
  const std::string temporary = temporary_of(key);
  if (file_info(temporary).size > most_bytes_) {
    abandon(key);
    return false;
  }
  rename_replace(temporary, path_of(key));
  evict(path_of(key));
  return true;
}

void RowCache::abandon(const Digest& key) const { remove_file(temporary_of(key)); }

void RowCache::evict(const std::string& kept) const {
  struct Entry {
    int64_t used;
    std::string path;
    uint64_t bytes;
  };
  std::vector<Entry> entries;
  uint64_t sum = 0;
  for (const std::string& name : list_directory(directory_)) {
    if (!is_entry(name)) continue;
    const std::string path = directory_ + "/" + name;
    const FileInfo info = file_info(path);
    entries.push_back({modified_time(path), path, info.size});
    sum += info.size;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.used, a.path) < std::tie(b.used, b.path);
  });
  for (const Entry& entry : entries) {
    if (sum <= most_bytes_) break;
    if (entry.path == kept) continue;
    remove_file(entry.path);
    sum -= entry.bytes;
  }
}

void move_to_nameless_file(TokenStore& store, const std::vector<std::string>& directories) {
  static std::atomic<int> made{0};
  std::string reasons;
  for (const std::string& directory : directories) {
    const std::string path = directory + "/" + kNameless + std::to_string(::getpid()) + "-" +
                             std::to_string(made.fetch_add(1));
    try {
      auto out = std::make_unique<OutputFile>(path);
      InputFile in(path);
      remove_file(path);
      store.move_to_file(std::move(out), std::move(in));
      return;
    } catch (const Error& error) {
      remove_file(path);
      reasons += (reasons.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  throw storage_error("no directory can hold the tokenized rows: " + reasons);
}

}  // namespace hearth
