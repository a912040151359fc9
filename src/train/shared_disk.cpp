#include "train/shared_disk.h"

#include <unistd.h>

#include <chrono>

#include "base/error.h"
#include "base/file_ops.h"
#include "train/rank_texts.h"

namespace hearth {

namespace {

/// A name that no other start chooses: of this moment and process.
std::string token_name() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return ".tmp-shared-" + std::to_string(now) + "-" + std::to_string(::getpid());
}

bool can_make(const std::string& path) {
  try {
    OutputFile file(path);
    file.close();
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// What cannot be removed has a name that the next start removes.
void remove(const std::string& path) {
  try {
    remove_file(path);
  } catch (const Error&) {
  }
}

}  // namespace

std::vector<bool> ranks_on_disk(RankTeam& team, const std::string& run_dir) {
  std::string name;
  bool reaches = true;
  if (team.rank() == 0) {
    name = token_name();
    if (!can_make(run_dir + "/" + name)) name.clear();
    tell(team, name);
  } else {
    name = hear(team);
    const std::string token = run_dir + "/" + name, own = token + "." + std::to_string(team.rank());
    try {
      reaches = !name.empty() && file_info(token).kind == FileKind::regular && can_make(own);
    } catch (const Error&) {
      reaches = false;
    }
    if (reaches) remove(own);
  }
  std::vector<bool> all;
  for (const std::string& answer : gather_texts(team, reaches ? "yes" : "no")) {
    all.push_back(answer == "yes");
  }
  if (team.rank() == 0 && !name.empty()) remove(run_dir + "/" + name);
  return all;
}

}  // namespace hearth
