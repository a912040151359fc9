#include "runtime/remembered_checks.h"

#include <utility>

#include "base/error.h"
#include "base/file_ops.h"
#include "base/file_times.h"
#include "base/hash.h"
#include "base/version.h"

namespace hearth {
namespace {

constexpr const char* kEnding = ".passed";
constexpr uint64_t kMostRecord = 1 << 14;

// The file says which check it is of. It is compared as a whole, never parsed.
std::string content_of(const std::string& subject) { return "hearth check 1\n" + subject + "\n"; }

}  // namespace

RememberedChecks::RememberedChecks(std::string directory) : directory_(std::move(directory)) {}

std::string RememberedChecks::path_of(const std::string& subject) const {
  return directory_ + "/" + digest_of(subject).hex() + kEnding;
}

bool RememberedChecks::has_passed(const std::string& subject) const {
  if (directory_.empty()) return false;
  try {
    const std::string path = path_of(subject);
    return is_own_file(path) && read_file(path, kMostRecord) == content_of(subject);
  } catch (const Error&) {
    return false;
  }
}

void RememberedChecks::remember(const std::string& subject) const {
  const std::string content = content_of(subject);
  if (directory_.empty() || content.size() > kMostRecord) return;
  try {
    make_private_directory(directory_);
    const std::vector<std::string> names = list_directory(directory_);
    if (std::ssize(names) >= kMost) {
      for (const std::string& name : names) {
        if (name.ends_with(kEnding)) remove_file(directory_ + "/" + name);
      }
    }
    write_file_atomically(path_of(subject), content);
  } catch (const Error&) {  // read-only, full, or another process was faster
  }
}

std::string identity_of_program() {
  constexpr const char* kProgram = "/proc/self/exe";
  const BuildInfo& build = build_info();
  return "hearth " + build.version + ' ' + build.revision + ", " +
         std::to_string(file_info(kProgram).size) + " bytes of " +
         std::to_string(modified_time(kProgram));
}

}  // namespace hearth
