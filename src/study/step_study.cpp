#include "study/step_study.h"

#include <memory>
#include <utility>

#include "base/error_format.h"
#include "budget/policy_choice.h"
#include "budget/recompute_choice.h"
#include "budget/routed_steps.h"
#include "predictor/synthetic_routing.h"
#include "setup/machine.h"
#include "setup/trained_model.h"

namespace hearth {

namespace {

constexpr int64_t kSteps = 3;  // that are counted, after one that is not
constexpr double kPersistence = 0.73;
constexpr uint64_t kHostMemory = uint64_t{1} << 44;  // no limit: the host has all weights

/// `auto`, and what it alone may become.
bool is_of_auto(const std::string& policy) {
  return policy == "auto" || policy == kMakespan || policy == kStatic;
}

PlanRequest request_of(const StepStudy& study) {
  PlanRequest request;
  request.training = true;
  request.micro_batches = study.micro_batches;
  request.tokens = study.batch / study.micro_batches * kStudySequence;
  request.longest = kStudySequence;
  request.bounds_basis = "the study";
  return request;
}

/// Micro-batches of a step have the popularity of the step.
class StudyRouting {
 public:
  StudyRouting(const StepStudy& study, double skew)
      : routing_({.experts = study.shape.experts,
                  .top_k = kStudyTopK,
                  .skew = skew,
                  .tokens = study.batch / study.micro_batches * kStudySequence,
                  .layers = study.shape.layers,
                  .steps = 1 + kSteps,
                  .persistence = kPersistence,
                  .seed = study.seed}) {}
  std::span<const int64_t> choices(int64_t step, int32_t layer) const {
    return routing_.all(step, layer);
  }
  /// What a sample counts: the popularity before the steps that are counted.
  ExpertCounts sample(int64_t layers) const {
    ExpertCounts counts;
    for (int32_t layer = 0; layer < layers; ++layer) {
      const std::span<const int64_t> of = choices(0, layer);
      counts.emplace_back(of.begin(), of.end());
    }
    return counts;
  }

 private:
  SyntheticRouting routing_;
};

/// Full micro-batches with this routing.
StepWork work_of(const StepStudy& study, const std::shared_ptr<const StudyRouting>& routing) {
  StepWork work = full_step(request_of(study));
  ExpectedRouting expected;
  expected.choices = [routing](int64_t step, int32_t layer, int32_t) {
    return routing->choices(step, layer);
  };
  expected.steps = 1 + kSteps;
  expected.basis = "the routing of the study";
  work.routing = std::make_shared<const ExpectedRouting>(std::move(expected));
  return work;
}

TrainedModel model_of(const StepStudy& study, const std::string& policy,
                      const StudyRouting& routing) {
  TrainConfig config;
  config.devices = device_list(study.machine);
  config.cpu_memory = kHostMemory;
  config.policy = is_of_auto(policy) ? "" : policy;
  config.max_grad_norm = 0;
  config.divide_experts = study.divide_experts && is_of_auto(policy);
  config.compute = ComputeChoice::f32;
  StudyModel shapes = study_model(study.shape);
  const auto opened = open_shapes(config, std::move(shapes.spec), std::move(shapes.table),
                                  described(study.machine, study.shape));
  TrainedModel model = trained_model(opened, config);
  model.popularity = routing.sample(study.shape.layers);
  return model;
}

struct PlannedStudy {
  PlacedModel model;
  StepWork work;
};

PlannedStudy planned(const StepStudy& study, const std::string& policy, double skew) {
  const auto routing = std::make_shared<const StudyRouting>(study, skew);
  const TrainedModel model = model_of(study, policy, *routing);
  const PlanRequest request = request_of(study);
  const StepWork work = work_of(study, routing);
  RunTables tables;
  const std::optional<ChosenPolicy> choice =
      policy == "auto" ? choose_policy(model, request, work, tables)
                       : policy_named(policy, *model.opened, request, "the study names it");
  PlacedModel placed = place_fastest(model, request, work, std::move(tables), choice);
  if (!placed.plan.fits()) {
    throw usage_error("{}: policy {} does not fit {} GPUs of {:.3g} GB with a batch of {}",
                      study.shape.name, policy, study.machine.gpus,
                      static_cast<double>(study.machine.gpu_memory) / 1e9, study.batch);
  }
  return {std::move(placed), work};
}

StudyRow simulated_row(const StepStudy& study, const std::string& policy, double skew,
                       const PlannedStudy& plan, StudyResult& result) {
  const ExpectedRouting& routing = *plan.work.routing;
  const std::vector<SimulatedStep> steps =
      simulate_steps(plan.model, plan.work, routing.steps, routing.choices);
  StudyRow row{
      study.shape.name, study.machine.gpus, study.machine.cores_per_gpu, study.batch, skew, policy};
  if (plan.model.policy) row.became = plan.model.policy->name;
  const Schedule& schedule = plan.model.plan.train->schedule;
  for (size_t s = 1; s < steps.size(); ++s) {
    row.step_s += steps[s].time_s / kSteps;
    const StepUse use =
        use_of(schedule, steps[s].trace, plan.model.opened->devices.names(), steps[s].copies);
    for (const auto& [link, bytes] : use.bytes)
      row.bytes[link] += static_cast<double>(bytes) / kSteps;
  }
  result.tasks += std::ssize(steps) * std::ssize(schedule.tasks);
  if (study.keeps_trace) {
    result.trace = chrome_trace(schedule, steps.back().trace, plan.model.opened->devices.names(),
                                steps.back().copies);
  }
  row.bound_s = bound_of(plan.model, plan.work.batches).total_s();
  row.tokens_per_s = static_cast<double>(study.batch * kStudySequence) / row.step_s;
  return row;
}

}  // namespace

StudyResult study_steps(const StepStudy& study) {
  StudyResult result;
  const size_t policies = study.policies.size();
  result.rows.resize(study.skews.size() * policies);
  for (size_t g = 0; g < study.skews.size(); ++g) {
    for (size_t p = 0; p < policies; ++p) {
      const PlannedStudy plan = planned(study, study.policies[p], study.skews[g]);
      result.rows[g * policies + p] =
          simulated_row(study, study.policies[p], study.skews[g], plan, result);
    }
  }
  return result;
}

}  // namespace hearth
