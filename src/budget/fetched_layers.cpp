#include "budget/fetched_layers.h"

namespace hearth {

void fetch_what_does_not_fit(PlacedModel& model, PlanRequest& request) {
  const RankShards& shards = request.shards;
  const bool can_fetch =
      !shards.levels.empty() && shards.domains().size() > 1 && !shards.wire.compresses();
  if (!can_fetch || model.plan.fits() || !model.plan.train) return;
  PlanRequest fits = request;
  fits.shards.fetched_from = 0;
  PlacedModel found = replanned(model, fits);
  if (!found.plan.fits()) return;
  // The first layers are kept, as many as fit: `fits` has fewer, `kept` layers do not fit.
  auto kept = static_cast<int32_t>(model.opened->spec.layers);
  while (kept - fits.shards.fetched_from > 1) {
    PlanRequest again = fits;
    again.shards.fetched_from = (fits.shards.fetched_from + kept) / 2;
    PlacedModel planned = replanned(model, again);
    if (planned.plan.fits()) {
      fits = again;
      found = std::move(planned);
    } else {
      kept = again.shards.fetched_from;
    }
  }
  model = std::move(found);
  request = fits;
}

}  // namespace hearth
