"""Faults of saving, resuming and logging. scripts/planted_faults runs each test with
HEARTH_PLANTED=NAME in its environment (tests/support/planted.h); the test must fail."""
from collections import namedtuple

Fault = namedtuple("Fault", "name breaks test cases section", defaults=("",))

SAVES = "crash states of saves open as the old state or the new one"
FILES = "crash states of a replaced file*"
LOGS = "crash states of a log*"
RUN = "crash states of a run: *"
NEEDED = "everything saved: a resume*"
LORA = "Recorded adapters of PEFT*"
VERDICT = "verdict: sound runs are ok*"
COUNTERS = "everything saved: no counter*"

FAULTS = [
    # Durability: what a power loss would show.
    Fault("skip-sync-component", "a component's file is not synced", "test_train", SAVES),
    Fault("skip-sync-manifest", "the manifest is not synced", "test_train", SAVES),
    Fault("skip-sync-temporary", "a state's directory is not synced", "test_train", SAVES),
    Fault("skip-sync-parent", "a state's name is not synced", "test_train", SAVES),
    Fault("skip-sync-log", "metrics are not synced before a state", "test_train", RUN),
    Fault("skip-sync-config", "a replaced file is not synced", "test_base", FILES),
    Fault("skip-sync-temporary-result", "a result's directory is not synced", "test_model",
          "crash states of a published checkpoint*"),
    Fault("rename-before-sync", "a state is synced after its rename", "test_train", SAVES),
    Fault("publish-before-manifest", "a state has its name before its manifest", "test_train", SAVES),
    Fault("retention-before-commit", "the oldest state goes before the commit", "test_train", SAVES),
    Fault("trash-without-name", "a state's files are removed under its name", "test_train", SAVES),
    Fault("one-too-few-kept", "--keep keeps one less", "test_train", "exactly the newest are kept"),
    Fault("replace-existing-state", "a state replaces one that is there", "test_train",
          "failing calls: a state is never replaced"),
    # Results of calls that are not believed.
    Fault("ignore-short-write", "a short write counts as whole", "test_train",
          "failing calls: short transfers*"),
    Fault("ignore-failed-write", "a write that fails counts as done", "test_train",
          "failing calls: a save that fails*"),
    Fault("ignore-failed-close", "a close that fails counts as done", "test_base",
          "every failed call of an output file is reported"),
    Fault("ignore-failed-sync", "a sync that fails counts as done", "test_base",
          "every failed call of an output file is reported"),
    Fault("retry-failed-sync", "a sync that failed is repeated", "test_base",
          "every failed call of an output file is reported"),
    # Logs and locks.
    Fault("forget-lock", "a lock is always given", "test_base", "a lock is held by one"),
    Fault("truncate-log", "a log is cut to nothing when it is opened", "test_base", LOGS),
    Fault("no-torn-line-cut", "a torn last line stays", "test_base", LOGS),
    Fault("cut-too-far", "a byte of a whole line is cut off", "test_base", LOGS),
    Fault("leave-leftovers", "nothing below .tmp-* is removed", "test_train", SAVES),
    # What the verdict on a run must see.
    Fault("changed-frozen-tensor", "training changes a frozen tensor", "test_train", VERDICT),
    Fault("lost-gradients-of-an-expert", "an expert gets no gradient", "test_train", VERDICT),
    Fault("lost-gradients-of-attention", "attention gets no gradient", "test_train", VERDICT),
    # What a state holds.
    Fault("drop-weights", "weights are not loaded", "test_train", NEEDED),
    Fault("drop-moment1", "AdamW's first moment is not loaded", "test_train", NEEDED),
    Fault("drop-moment2", "AdamW's second moment is not loaded", "test_train", NEEDED),
    Fault("drop-progress", "counters and cursor are not loaded", "test_train", NEEDED),
    Fault("drop-routing", "tokens by expert are not loaded", "test_train", NEEDED),
    Fault("forget-step", "the step is not loaded", "test_train", NEEDED),
    Fault("forget-updates", "AdamW's step count is not loaded", "test_train", NEEDED),
    Fault("forget-tokens", "the count of tokens is not loaded", "test_train", COUNTERS),
    Fault("forget-trained_tokens", "that of trained tokens is not loaded", "test_train", COUNTERS),
    Fault("forget-skipped", "the count of skipped steps is not loaded", "test_train", COUNTERS),
    Fault("forget-skipped_in_a_row", "that of those in a row is not loaded", "test_train", COUNTERS),
    Fault("forget-epoch", "the epoch of the cursor is not loaded", "test_train", NEEDED),
    Fault("forget-sequence", "the place in the epoch is not loaded", "test_train", COUNTERS),
    Fault("off-by-one-cursor", "data go on one sequence later", "test_train", NEEDED),
    # What is checked.
    Fault("unchecked-chunks", "chunks of a state's files are not compared", "test_train",
          "damage to a large file is placed"),
    Fault("unchecked-manifest", "a manifest's own digest is not compared", "test_train",
          "every flipped byte*"),
    Fault("trust-newest", "the newest state is taken, although damaged", "test_train",
          "every flipped byte*"),
    Fault("digest-leaves-out-a-tensor", "a digest leaves out a tensor", "test_train",
          "the digest is of content*"),
    Fault("content-not-compared", "changed data and models are resumed", "test_train",
          "resume: what is refused*"),
    Fault("option-change-ignored", "changed options are resumed", "test_train",
          "resume: what is refused*"),
    # Adapters.
    Fault("gate-up-swapped", "pairs of gate and up change places in the file", "test_parity", LORA),
    Fault("alpha-not-divided", "a pair is scaled by alpha, not by alpha / rank", "test_parity", LORA),
    Fault("pair-gradient-dropped", "the pairs of up get no gradient", "test_parity", LORA),
    Fault("b-scaled-twice", "B is doubled when it is read", "test_parity", LORA),
    Fault("expert-forgotten", "the pairs of an expert are not written", "test_model",
          "adapter files: what is read is what was written"),
    Fault("dropout-at-evaluation", "inputs of pairs are dropped at evaluation", "test_train",
          "adapters in a run: it is evaluated*"),
    # Numbers, and saves under the steps that follow.
    Fault("apply-non-finite-step", "a step that is not finite changes weights", "test_runtime",
          "executor: a gradient that is not finite*"),
    Fault("update-does-not-wait", "an update overtakes the save of what it changes", "test_train",
          "background save: every state is the one of its step*"),
    Fault("save-takes-changed-memory", "memory that changed under a save is saved", "test_train",
          "memory that changes during a save*"),
]
