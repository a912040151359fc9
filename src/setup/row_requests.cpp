#include "setup/row_requests.h"

#include "base/log.h"
#include "base/stop.h"
#include "data/samples/row_cache.h"

namespace hearth {

TemplateOptions template_options(const RunConfig& config) {
  return {config.model,        config.chat_template, config.template_date,
          config.follow_links, config.adapter,       config.template_args};
}

void warn_of_positions(const RunConfig& config, const ModelSpec& spec, int64_t longest) {
  const std::string made_for = "the model was made for " + std::to_string(spec.max_positions) +
                               " positions (max_position_embeddings), and what lies beyond them is "
                               "computed without training";
  if (longest > spec.max_positions) {
    log_warning("the longest sequence has " + std::to_string(longest) + " tokens: " + made_for +
                "; --seq-len " + std::to_string(spec.max_positions) + " cuts longer rows");
  } else if (config.seq_len > spec.max_positions && config.seq_len != RunConfig().seq_len) {
    log_warning("--seq-len " + std::to_string(config.seq_len) + ": " + made_for);
  }
}

RowOptions row_options(const RunConfig& config) {
  RowOptions options;
  options.model = config.model;
  options.format = config.format;
  options.train_on = config.train_on;
  options.follow_links = config.follow_links;
  options.chat_template = config.chat_template;
  options.template_date = config.template_date;
  options.adapter = config.adapter;
  options.template_args = config.template_args;
  options.no_special_in_content = config.no_special_in_content;
  options.columns = config.columns;
  options.max_samples = config.max_samples;
  options.skip_bad_rows = config.skip_bad_rows;
  options.seq_len = config.seq_len;
  options.overflow = config.overflow;
  return options;
}

RunRowsRequest rows_request(const RunConfig& config, const ModelSpec& spec, Reporter& reporter) {
  if (!config.chat_template.empty()) {  // known before a chat is read, or where none is
    const ChatTemplate known(template_options(config));
  }
  RunRowsRequest request;
  request.rows = row_options(config);
  request.rows.vocabulary = spec.vocabulary;
  request.seed = config.seed;
  request.cache = {row_cache_directory(), config.data_cache};
  request.hooks.progress = [&reporter](const std::string& what, uint64_t done, uint64_t total) {
    reporter.progress(what, done, total);
  };
  request.hooks.stop = [] { return stop_signal() != 0; };
  return request;
}

SamplerOptions sampler_options(const RunConfig& config) {
  SamplerOptions options;
  options.seq_len = config.seq_len;
  options.micro_batch = config.micro_batch;
  options.packing = config.packing;
  options.seed = config.seed;
  return options;
}

SamplerOptions sampler_options(const TrainConfig& config) {
  SamplerOptions options = sampler_options(static_cast<const RunConfig&>(config));
  options.grad_accum = config.grad_accum;
  options.shuffle = config.shuffle;
  return options;
}

}  // namespace hearth
