#include "options/command_table.h"

#include "base/error.h"

namespace hearth {

using enum Command;

const std::vector<CommandEntry>& command_table() {
  static const std::vector<CommandEntry> table{
      {train,
       "train",
       "[CONFIG.yaml]",
       "fine-tune a model; resumes by itself if --out holds saved state of the same run",
       {"model", "data", "out"}},
      {eval,
       "eval",
       "",
       "print mean cross-entropy per trained token, perplexity and expert load",
       {"model", "data"}},
      {generate,
       "generate",
       "",
       "continue a prompt, answer a chat, or each row of --data",
       {"model"}},
      {chat,
       "chat",
       "[RUN]",
       "talk with a model in the terminal. RUN is a run directory or a checkpoint, instead of "
       "--model. If stdin is no terminal, each line is a turn; /exit or the end of the input ends "
       "it",
       {}},
      {plan,
       "plan",
       "[CONFIG.yaml]",
       "print what train would do: schedule, memory, time; takes the options of train, needs "
       "neither "
       "weights nor data",
       {"model"}},
      {inspect, "inspect", "DIR", "show a checkpoint, adapter, saved state or run directory", {}},
      {tokenize,
       "tokenize",
       "[FILE]",
       "print the token ids of each line of a text (default: stdin), or of the rows of --data",
       {"model"}},
      {export_,
       "export",
       "",
       "merge an adapter, or the adapter of a run, into its base; or convert saved state to a "
       "checkpoint or an adapter; keeps the base's tensor names, types and files",
       {"out"}},
      {verify,
       "verify",
       "DIR",
       "check the content of saved state, a run directory, a checkpoint or an adapter",
       {}},
      {init, "init", "", "make a random checkpoint from a config.json", {"config", "out"}},
      {report,
       "report",
       "RUN_DIR",
       "write one HTML page of a run: curves, throughput, expert load, memory, events, options",
       {}},
      {simulate,
       "simulate",
       "STUDY",
       "study without a checkpoint. STUDY is routing: tokens per expert, with a given skew; step: "
       "the "
       "time of a training step on a machine with GPUs that need not exist; figure 11, 12, 13 or "
       "14: the points of that figure of APTMoE; zebra: the tables of HeterMoE; or domains: those "
       "of "
       "HybridEP",
       {}},
      {doctor,
       "doctor",
       "",
       "show what this machine is and what its links reach, and warn of what is slower than it "
       "should be",
       {}},
      {profile,
       "profile",
       "",
       "measure cost tables: times of tasks by size, place, cores and type, and rates of links",
       {}},
      {migrate,
       "migrate",
       "FILE",
       "print the configuration of another trainer with the names and values of hearth",
       {}},
  };
  return table;
}

const CommandEntry& entry_of(Command command) {
  for (const CommandEntry& entry : command_table()) {
    if (entry.command == command) return entry;
  }
  HEARTH_CHECK(false, "a command without an entry");
}

}  // namespace hearth
