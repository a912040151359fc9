// The table of foreign keys.
#include <catch2/catch_test_macros.hpp>
#include <set>

#include "foreign/keys.h"
#include "options/option_lookup.h"
#include "options/option_table.h"
#include "tools/foreign_fixture.h"

using namespace hearth;
using test::one_says;
using test::parsed_yaml;
using test::problems_of;

TEST_CASE("foreign keys: the table is sound") {
  std::set<std::string> names;
  for (const ForeignKey& key : foreign_keys()) {
    INFO(key.name);
    CHECK(names.insert(key.name).second);
    CHECK(key.name.find('_') == std::string::npos);
    // No pattern fits the names of another one.
    for (const ForeignKey& other : foreign_keys()) {
      if (&other == &key || !key.name.ends_with('*') || !other.name.ends_with('*')) continue;
      CHECK_FALSE(other.name.starts_with(key.name.substr(0, key.name.size() - 1)));
    }
    // A refusal says what to do, and what passes has somewhere to go.
    if (key.other == OtherValue::refuse) CHECK_FALSE(key.advice.empty());
    if (key.other == OtherValue::pass) CHECK_FALSE(key.option.empty());
    // Where a name is an alias as well, both lead to one option.
    const Option* alias = find_option(key.name, Command::train);
    if (alias != nullptr && alias->taken_by(Command::train)) CHECK(alias->name == key.option);
    const Option* option = key.option.empty() ? nullptr : find_option(key.option);
    if (!key.option.empty()) REQUIRE(option);
    for (const auto& [there, here] : key.values) {
      INFO(there);
      if (here.empty() || here[0] == '!') continue;
      REQUIRE(option);
      Options options;
      const auto problem = option->value.set(options, {here});
      if (problem) CHECK(problem->find("not in this version") != std::string::npos);
    }
  }
}

TEST_CASE("foreign keys of newer versions, and of models with experts") {
  const CommandLine line = parsed_yaml(R"(
base_model: models/mixtral
datasets: [{path: rows.jsonl, type: chat_template}]
output_dir: out
model_config: {output_router_logits: true}
activation_checkpointing: true
train_sampling_strategy: sequential
loss_type: chunked_nll
truncation_mode: keep_start
experts_implementation: grouped_mm
use_kernels: true
quantize_moe_experts: false
)");
  CHECK(line.options.recompute == Recompute::blocks);
  CHECK_FALSE(line.options.shuffle);

  const auto told = problems_of(R"(
model: m
data: [a.jsonl, b.jsonl]
out: out
interleave_probs: 0.7,0.3
train_sampling_strategy: group_by_length
quantize_moe_experts: true
)");
  CHECK(told.size() == 3);
  CHECK(one_says(told, "interleave_probs: '0.7,0.3': a weight behind the file"));
  CHECK(one_says(told, "expected random or sequential"));
  CHECK(one_says(told, "quantize_moe_experts"));
}
