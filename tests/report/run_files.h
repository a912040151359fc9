// Run directories as files, without a run.
#pragma once

#include <fstream>
#include <string>

#include "support/temporary_directory.h"

namespace hearth::test {

/// A line of metrics.jsonl as hearth writes it.
inline std::string metrics_line(int64_t step, const std::string& loss, double rate = 0.5) {
  return R"({"step": )" + std::to_string(step) + R"(, "loss": )" + loss +
         R"(, "aux_loss": 1.25, "grad_norm": 0.75, "lr": )" + std::to_string(rate) +
         R"(, "tokens": 100, "trained_tokens": 60, "time_s": 0.5, "tokens_per_s": 200.0, )"
         R"("bound_pct": 40.0, "peak_rss_bytes": 1048576, "peak_device_bytes": 0, "bytes": {}, )"
         R"("busy": {"cpu": 0.25, "io": 0.125}, "limit": "cpu", "stall_s": {"cpu": 0.0625}, )"
         R"("cpu_s": {"products": 0.25, "sweeps": 0.125, "waiting": 0.5}, "expert_load": [1.5, 2.5], )"
         R"("expert_hit_rate": null, "state_digest": "00ff"})"
         "\n";
}

struct RunFiles {
  TemporaryDirectory d;

  std::string path() const { return d.path(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(d / name, std::ios::binary) << text;
  }
  /// Steps 1 to 4, evaluations before and after, a resume, a plan and a configuration.
  void write_run() const {
    write("metrics.jsonl", metrics_line(1, "4.5") + metrics_line(2, "3.25") +
                               metrics_line(3, "null") + metrics_line(4, "2.125"));
    write("journal.jsonl",
          R"({"event": "start", "time": "2026-01-02T03:04:05.678Z", "steps": 4, "version": "0"}
{"event": "plan", "time": "2026-01-02T03:04:05.678Z", "family": "qwen3_moe", "compute_dtype": "f32", "parameters": 1000, "trained_parameters": 250}
{"event": "eval", "time": "2026-01-02T03:04:06.000Z", "step": 0, "when": "start", "loss": 4.75, "trained_tokens": 30}
{"event": "resume", "time": "2026-01-02T03:05:00.000Z", "step": 2, "state": "state/step-00000002", "changes": []}
{"event": "skipped_step", "time": "2026-01-02T03:05:01.000Z", "step": 3, "loss": null, "grad_norm": 0.75}
{"event": "warning", "time": "2026-01-02T03:05:02.000Z", "step": 3, "message": "a warning of the run"}
{"event": "eval", "time": "2026-01-02T03:05:03.000Z", "step": 4, "when": "end", "loss": 2.375, "trained_tokens": 30}
{"event": "finished", "time": "2026-01-02T03:05:04.000Z", "step": 4}
)");
    write("plan.json", R"({"fits": true, "time_s": 0.25, "bound_s": 0.2, "tokens_per_s": 400.0,
      "memory": [{"place": "host", "peak_bytes": 2097152, "budget_bytes": 4194304, "lines": [
        {"name": "master weights", "bytes": 1048576, "basis": "derived: 250 of 4 bytes",
         "measured": 524288}]}]})");
    write("config.yaml", "# a comment\nmodel: \"some/model\"\nlr: 0.5\nseed: 42\n");
  }
};

}  // namespace hearth::test
