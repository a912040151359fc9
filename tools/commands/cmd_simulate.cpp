// hearth simulate: studies without a checkpoint.
#include <algorithm>

#include "base/error_format.h"
#include "base/file_ops.h"
#include "base/stopwatch.h"
#include "commands/commands.h"
#include "commands/domain_report.h"
#include "commands/output.h"
#include "commands/routing_report.h"
#include "commands/step_report.h"
#include "commands/zebra_report.h"
#include "predictor/popularity.h"
#include "setup/cost_table_file.h"
#include "study/figures.h"

namespace hearth {

namespace {

/// Few tokens allow few values of G.
void require_skew(int64_t experts, int64_t tokens, double skew, const std::string& what,
                  int64_t tokens_each) {
  const Popularity nearest = zipf_popularity(experts, 1, tokens, skew);
  if (has_skew(nearest.first, skew)) return;
  const int64_t enough = tokens_for_skew(experts, skew, tokens + 1);
  throw usage_error(
      "{}: too few for --skew {}: the nearest that they can have is {:.6f}; {} would do", what,
      skew, skew_of(nearest.first), (enough + tokens_each - 1) / tokens_each);
}

ExitCode simulate_routing(const Options& options) {
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
  require_skew(request.experts, request.tokens, request.skew,
               "--tokens " + std::to_string(request.tokens), 1);
  const SyntheticRouting routing(request);
  if (!options.trace.empty()) write_file_atomically(options.trace, routing_trace(routing));
  if (options.json) {
    print_json(routing_json(routing));
  } else {
    print(routing_text(routing, options.verbose));
  }
  return ExitCode::done;
}

std::shared_ptr<const CostTable> table_from(const std::string& path) {
  if (path.empty()) return nullptr;
  return std::make_shared<const CostTable>(read_cost_table(path));
}

StepStudy study_of(const Options& options) {
  StepStudy study;
  study.shape = *find_study_shape(options.shape);
  StudyMachine& machine = study.machine;
  machine.gpus = options.gpus;
  machine.roots = options.roots.value_or((options.gpus + 1) / 2);
  machine.link_bytes_per_s = static_cast<double>(options.gpu_link);
  machine.root_bytes_per_s = static_cast<double>(options.root_link);
  machine.cores_per_gpu = options.cores_per_gpu;
  machine.gpu_memory = options.study_gpu_memory;
  machine.gpu = table_from(options.gpu_costs);
  machine.host = table_from(options.host_costs);
  study.batch = options.study_batch;
  study.micro_batches = options.study_micro_batches.value_or(options.gpus);
  study.skews = {*options.skew};
  study.policies = options.study_policies;
  study.divide_experts = options.divide_experts;
  study.seed = options.seed;
  study.keeps_trace = !options.trace.empty();
  const int64_t tokens = study.batch / study.micro_batches * kStudySequence;
  require_skew(study.shape.experts, tokens, *options.skew, "--batch " + std::to_string(study.batch),
               kStudySequence / study.micro_batches);
  return study;
}

ExitCode simulate_steps(const Options& options) {
  std::vector<StepStudy> studies = options.operand == "figure"
                                       ? figure_studies(std::stoi(options.figure))
                                       : std::vector{study_of(options)};
  const Stopwatch watch;
  StudyResult all;
  for (StepStudy& study : studies) {
    study.machine.updates = options.study_updates;
    StudyResult result = study_steps(study);
    all.tasks += result.tasks;
    all.trace = std::move(result.trace);
    std::ranges::move(result.rows, std::back_inserter(all.rows));
  }
  if (!options.trace.empty()) write_file_atomically(options.trace, all.trace);
  if (options.json) {
    print_json(study_json(all, watch.seconds()));
  } else {
    print(study_text(all, watch.seconds()));
  }
  return ExitCode::done;
}

}  // namespace

ExitCode run_simulate(const Options& options) {
  if (options.operand == "domains") {
    options.json ? print_json(domain_study_json()) : print(domain_study_text());
    return ExitCode::done;
  }
  if (options.operand == "zebra") {
    options.json ? print_json(zebra_study_json()) : print(zebra_study_text());
    return ExitCode::done;
  }
  return options.operand == "routing" ? simulate_routing(options) : simulate_steps(options);
}

}  // namespace hearth
