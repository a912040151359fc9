// Values with their own grammar.
#pragma once

#include <cstdint>
#include <string>

#include "options/option_values.h"

namespace hearth {

/// The value, which also remembers that it was given.
OptionValue given_value(OptionValue value, bool Options::*given);
/// Warm-up steps. For a number below 1, the error proposes --warmup-ratio.
OptionValue warmup_value(int64_t most);
/// If it is not given, the number of ranks.
OptionValue logical_shards_value();
/// auto, or a number of layers.
OptionValue kept_layers_value();
/// auto, off, or experts that move by layer, with commas.
OptionValue expert_shift_value();
OptionValue levels_value();
OptionValue domains_value();
OptionValue wire_value();
/// Links of thread ranks: BYTES/S[:LATENCY].
OptionValue rank_links_value();
OptionValue rank_devices_value();
/// How the run is spread; if it is not given, it follows from the number of devices.
OptionValue parallel_value();
/// auto, or which experts are at devices.
OptionValue policy_value();
OptionValue equation_value();
/// What foretells routing.
OptionValue predictor_value();
/// Phases of loads ahead, with commas; at least one.
OptionValue phases_value();
OptionValue journal_decisions_value();
/// A list of devices, parsed by device/device_list.h.
OptionValue devices_value();
/// `all` (stored as 0), or a share of experts: top:25%.
OptionValue experts_value(double Options::*percent);
/// Variables of chat templates, NAME=VALUE each.
OptionValue template_args_value();
/// A file or a name. The text of a template is a problem that says so.
OptionValue chat_template_value();
/// Columns of rows, FIELD=COLUMN each.
OptionValue columns_value();
/// A day, YYYY-MM-DD.
OptionValue date_value(std::string Options::*member);
/// auto, never or a directory.
OptionValue resume_value();

}  // namespace hearth
