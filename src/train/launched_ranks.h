// This process as one of several that a launcher started for one run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "comm/launch.h"
#include "comm/rank_team.h"
#include "setup/config.h"

namespace hearth {

/// How a process ends: its exit code, and what it says on stderr.
struct RankEnding {
  ExitCode code = ExitCode::done;
  std::vector<std::string> lines;
};

/// Raises what the process says, one line, as an Error, or returns its code if it says nothing.
ExitCode say(const RankEnding& ending);

/// Rank 0 leads (train/rank_crew.h). Of what ends all ranks one of them speaks; but if a rank died, fell
/// silent or left the order, each that is left says so.
class LaunchedRanks {
 public:
  /// Meets the others. Usage error if this program has no MPI, device error if MPI knows of another
  /// number of ranks than the launcher: then each process would run alone.
  explicit LaunchedRanks(const Launch& launch);

  RankTeam& team() { return *team_; }
  bool leads() const { return team_->rank() == 0; }
  /// After compare_start: how many ranks there are, where, how many use the CPUs of this one, and whether
  /// their GPUs send to each other.
  void describe(TrainConfig& config) const;

  /// All ranks call this once, before they read models or write: with the resolved options, or, in the
  /// second form, with the error that came before. Nothing comes back if all have equal options but for
  /// those of one rank, and run the same program. Else all ranks end, and this is how this one does.
  std::optional<RankEnding> compare_start(const TrainConfig& config);
  RankEnding end_before_start(const RankEnding& own);
  bool has_started() const { return has_started_; }

  /// Ends all ranks with an error of this one, or of the others. Returns how this one ends.
  RankEnding fail(const Error& error);
  /// CPUs of this rank and others, for a warning: a launcher that gives a rank few of many cores is
  /// rarely meant to. Empty: nothing to say.
  const std::string& binding_warning() const { return binding_warning_; }

 private:
  std::optional<RankEnding> compare(const std::string& own);
  void count_cpus(const std::vector<Json>& records);
  void look_at_gpus(const std::vector<Json>& records);
  std::string shared_gpu_text(const std::vector<Json>& records) const;

  std::unique_ptr<World> world_;
  std::unique_ptr<RankTeam> team_;
  bool has_started_ = false;
  CpuShare cpu_share_;
  bool direct_ = false;         // TrainConfig
  std::string why_not_direct_;  // if each rank has a GPU
  std::string binding_warning_;
};

/// Of what ranks have read. All ranks call it, with the same names of fields. If one differs from rank
/// 0's, all raise the same PeerError, a usage error of rank 0, which names rank and field.
void require_same_fields(RankTeam& team, const JsonObject& fields);

}  // namespace hearth
