#include "setup/opened_model.h"

#include <algorithm>

#include "base/log.h"
#include "base/system.h"
#include "checkpoint/description.h"
#include "setup/machine.h"

namespace hearth {

bool has_bf16(const std::vector<ComputePlace>& places, const ModelPlaces& of_model) {
  const std::vector<Place> all = of_model.all();
  return std::all_of(all.begin(), all.end(), [&](Place at) {
    return places[static_cast<size_t>(at)].ops->has_in_hardware(Compute::bf16);
  });
}

ModelName model_name(const RunConfig& config) {
  return name_of_model(config.model_name.empty() ? config.model : config.model_name, config.model);
}

std::shared_ptr<const OpenedModel> open_model(const RunConfig& config, Weights weights) {
  HeldLog held;
  auto model = std::make_shared<OpenedModel>();
  const uint64_t before = resident_bytes(), files = resident_file_bytes();
  if (weights == Weights::may_be_absent && weights_are_absent(config.model)) {
    ModelDescription found = describe_model(config.model, config.follow_links);
    model->spec = std::move(found.spec);
    model->base = std::move(found.table);
    model->layout = std::move(found.layout);
    model->types_basis = std::move(found.types_basis);
  } else {
    model->checkpoint = std::make_shared<const Checkpoint>(config.model, config.follow_links);
    // Code that came stays.
    const uint64_t peak = peak_resident_bytes(), kept = before + resident_file_bytes() - files;
    model->opening_bytes = peak - std::min(peak, kept);
    model->spec = model->checkpoint->spec();
    model->base = model->checkpoint->make_table();
    model->layout = model->checkpoint->layout();
    model->types_basis = "the headers of the weight files";
  }
  if (!config.adapter.empty()) {
    if (!model->checkpoint) {
      throw input_error("--adapter " + quoted(config.adapter) +
                        ": the weights of its base are missing");
    }
    model->adapter = std::make_shared<const AdapterFile>(
        config.adapter, *model->checkpoint,
        AdapterReadOptions{config.accept_other_base, config.adapter_layout == AdapterLayout::fused,
                           config.follow_links});
  }
  start_machine(config, *model);
  if (model->described || !model->checkpoint) {  // nothing of this process
    constexpr uint64_t kTensor = 1800;
    model->opening_bytes = kTensor * model->base.tensors().size();
  }
  if (config.compute == ComputeChoice::bf16 &&
      !has_bf16(model->devices.places, model->devices.of_model)) {
    log_warning(
        "--compute-dtype bf16: no bf16 products are used on this CPU; operands are rounded and "
        "multiplied in f32, which is slower than f32");
  }
  model->said = held.take();
  return model;
}

std::shared_ptr<const OpenedModel> opened_for_rank(const OpenedModel& model,
                                                   const RunConfig& config) {
  const HeldLog held;
  auto own = std::make_shared<OpenedModel>(model);
  own->said.clear();
  start_machine(config, *own);
  return own;
}

}  // namespace hearth
