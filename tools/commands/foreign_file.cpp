#include "commands/foreign_file.h"

#include <algorithm>
#include <array>

#include "base/file_ops.h"
#include "base/numbers.h"
#include "options/option_lookup.h"

namespace hearth {
namespace {

/// Whether the first row of a file of JSON Lines has this member. Other files: false.
bool first_row_has(const std::string& path, const std::string& member) {
  if (file_info(path).kind != FileKind::regular) return false;
  const InputFile file(path);
  std::string head(std::min<uint64_t>(file.size(), uint64_t{64} << 10), ' ');
  file.read(head.data(), head.size(), 0);
  const std::string row = head.substr(0, head.find('\n', head.find('{')));
  return row.find("\"" + member + "\"") != std::string::npos;
}

class ForeignFile {
 public:
  ForeignFile(GivenPlace& file, const std::vector<Given>& flags) : file_(file), flags_(flags) {}

  void complete(const std::string& path) {
    settle_method();
    run_.evaluates = has("eval-data") || (has("val-size") && value("val-size") != 0);
    run_.new_adapter = run_.lora && !has("adapter");
    if (has("lora-r")) run_.rank = static_cast<int64_t>(value("lora-r"));
    settle_schedule();
    if (!run_.lora) {
      take_back("no adapters are trained", [](const Given& given) {
        const auto& needs = given.option->needs;
        return std::any_of(needs.begin(), needs.end(), [](const Relation& of) {
          return of.option == "method" && of.value == "lora";
        });
      });
    }
    if (!run_.evaluates) {
      take_back("there are no rows for evaluation", [](const Given& given) {
        constexpr std::array kNames{"eval-every", "eval-at-start", "keep-best", "load-best",
                                    "early-stopping"};
        return std::find(kNames.begin(), kNames.end(), given.option->name) != kNames.end();
      });
    }
    run_.completions = reads_completions();
    for (const auto& [name, text] : trainer_defaults(file_.trainer, run_)) assume(name, text);
    file_.notes.insert(file_.notes.begin(),
                       path + ": read as a configuration of " + name_of(file_.trainer) +
                           (assumed_.empty() ? "" : ", with its defaults where it is silent: ") +
                           assumed_);
  }

 private:
  const Given* find(const std::string& name) const {
    for (const auto* place : {&flags_, static_cast<const std::vector<Given>*>(&file_.given)}) {
      for (const Given& given : *place) {
        if (given.option->name == name) return &given;
      }
    }
    return nullptr;
  }
  bool has(const std::string& name) const { return find(name) != nullptr; }
  double value(const std::string& name) const {
    const Given* given = find(name);
    return given->texts.empty() ? 0 : parse_number(given->texts[0]).value_or(0);
  }

  void settle_method() {
    if (!has("method")) assume("method", default_method(file_.trainer));
    run_.lora = find("method")->texts == std::vector<std::string>{"lora"};
  }

  /// What the rest of the defaults depends on.
  void settle_schedule() {
    for (Given& given : file_.given) {
      run_.pretrains |= given.key == "stage" && given.option->name == "train-on";
    }
    // axolotl's cosine that ends above 0.
    const Given* ratio = find("min-lr-ratio");
    if (!ratio || ratio->key != "cosine-min-lr-ratio") return;
    const std::string where = ratio->where;
    std::erase_if(file_.given, [](const Given& g) {
      return g.option->name == "lr-schedule" && g.texts == std::vector<std::string>{"cosine"};
    });
    if (!has("lr-schedule")) {
      file_.given.push_back(
          {find_option("lr-schedule"), where, {"cosine_with_min_lr"}, true, "cosine-min-lr-ratio"});
    }
  }

  bool reads_completions() const {
    if (const Given* format = find("format")) {
      return format->texts == std::vector<std::string>{"completion"};
    }
    const Given* data = find("data");
    return data && !data->texts.empty() && first_row_has(data->texts[0], "completion");
  }

  template <class Predicate>
  void take_back(const std::string& why, Predicate predicate) {
    for (const Given& given : file_.given) {
      if (predicate(given)) file_.details.push_back(given.where + ": no effect; " + why);
    }
    std::erase_if(file_.given, predicate);
  }

  void assume(const std::string& name, const std::string& text) {
    const auto also = [&](const char* option, const char* other) {
      return name == option && has(other);
    };
    if (has(name) || also("warmup-ratio", "warmup") || also("warmup", "warmup-ratio") ||
        also("grad-accum", "batch-tokens") || also("epochs", "steps")) {
      return;
    }
    const std::string where = name_of(file_.trainer) + "'s default";
    file_.given.push_back({find_option(name), where, {text}, true});
    assumed_ += (assumed_.empty() ? "" : ", ") + name + " " + text;
  }

  GivenPlace& file_;
  const std::vector<Given>& flags_;
  ForeignRun run_;
  std::string assumed_;  // for people
};

}  // namespace

void complete_foreign_file(GivenPlace& file, const std::vector<Given>& flags,
                           const std::string& path) {
  ForeignFile(file, flags).complete(path);
}

}  // namespace hearth
