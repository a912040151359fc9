#include "commands/rank_links.h"

#include "runtime/rank_link_profile.h"

namespace hearth {

LinksOfRanks measure_links_of_ranks(const Options& options, LaunchedRanks* launched,
                                    double seconds) {
  if (launched == nullptr) {
    if (options.thread_ranks == 1) return {};
    const auto ranks = static_cast<int32_t>(options.thread_ranks);
    return {measure_thread_links(ranks, options.rank_links, seconds), {}};
  }
  if (const auto ending = launched->compare_start(options)) return {{}, say(*ending)};
  if (!launched->leads() && seconds <= 0) return {{}, ExitCode::done};
  if (seconds <= 0) return {};
  launched->team().watch(options.rank_limit);
  try {
    std::vector<CostLink> links = measure_rank_links(launched->team().world(), seconds);
    if (!launched->leads()) return {{}, ExitCode::done};
    return {std::move(links), {}};
  } catch (const Error& error) {
    return {{}, say(launched->fail(error))};
  }
}

}  // namespace hearth
