#include "gpu_kernels/attention_choices.h"

#include <algorithm>
#include <array>

#include "base/log.h"

namespace hearth::HEARTH_GPU {

std::span<const AttentionChoice* const> attention_choices() {
  static const std::array<const AttentionChoice*, 1> choices = {&cudnn_choice()};
  return choices;
}

size_t attention_choice_bytes(int64_t heads, int64_t kv_heads, int64_t head_dim, int64_t rows,
                              int64_t key_rows) {
  size_t bytes = 0;
  for (const AttentionChoice* choice : attention_choices()) {
    bytes = std::max(bytes, choice->scratch_bytes(heads, kv_heads, head_dim, rows, key_rows));
  }
  return bytes;
}

bool run_attention_by_choice(GpuStream& stream, const AttentionProblem& problem) {
  const AttentionChoice* const choice =
      choose(attention_choices(), stream, problem, [](const std::string& line) { log_info(line); });
  if (choice == nullptr) return false;
  choice->run(stream, problem);
  return true;
}

}  // namespace hearth::HEARTH_GPU
