// hearth simulate: studies without a checkpoint.
#include "base/error_format.h"
#include "base/file_ops.h"
#include "commands/commands.h"
#include "commands/output.h"
#include "commands/routing_report.h"
#include "predictor/popularity.h"

namespace hearth {

ExitCode run_simulate(const Options& options) {
  RoutingRequest request;
  request.experts = *options.simulated_experts;
  request.top_k = options.top_k;
  request.skew = *options.skew;
  request.tokens = options.simulated_tokens;
  request.layers = options.layers;
  request.steps = options.steps.value_or(1);
  request.persistence = options.persistence;
  request.seed = options.seed;
  request.token_hit = options.token_hit;
  const Popularity nearest = zipf_popularity(request.experts, 1, request.tokens, request.skew);
  if (!has_skew(nearest.first, request.skew)) {
    throw usage_error(
        "--tokens {}: too few for --skew {}: the nearest that they can have is {:.6f}; {} would do",
        request.tokens, request.skew, skew_of(nearest.first),
        tokens_for_skew(request.experts, request.skew, request.tokens + 1));
  }
  const SyntheticRouting routing(request);
  if (!options.trace.empty()) write_file_atomically(options.trace, routing_trace(routing));
  if (options.json) {
    print_json(routing_json(routing));
  } else {
    print(routing_text(routing, options.verbose));
  }
  return ExitCode::done;
}

}  // namespace hearth
