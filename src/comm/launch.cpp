#include "comm/launch.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace hearth {

namespace {

std::optional<int32_t> number_in(const char* variable) {
  const char* const value = std::getenv(variable);
  if (value == nullptr) return std::nullopt;
  const std::string_view text(value);
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number >= 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

Launch launch_of_process() {
  // A batch script of Slurm has SLURM_NTASKS without being one of the tasks, so of it only the step's.
  static constexpr const char* kVariables[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                                  {"PMI_RANK", "PMI_SIZE"},
                                                  {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
  for (const auto& [rank, ranks] : kVariables) {
    const auto number = number_in(rank), all = number_in(ranks);
    if (number && all && *number < *all) return {*number, *all};
  }
  return {};
}

}  // namespace hearth
