#include "report/verdict_section.h"

#include <algorithm>

#include "report/html.h"

namespace hearth {
namespace {

constexpr size_t kMostLines = 100, kLongestLine = 2'000;

/// The texts of a list of an event.
std::vector<std::string> texts_of(const Json& event, const char* key) {
  std::vector<std::string> texts;
  const Json* list = event.find(key);
  if (!list || !list->is_array()) return texts;
  for (const Json& text : list->as_array()) {
    if (text.is_string() && texts.size() < kMostLines)
      texts.push_back(text.as_string().substr(0, kLongestLine));
  }
  return texts;
}

std::string facts_table(const std::string& rows) {
  return rows.empty() ? "" : "<table class=\"facts\"><tbody>" + rows + "</tbody></table>";
}

}  // namespace

std::string verdict_section(const RunHistory& run) {
  const Json& event = run.journal.verdict;
  const Json* word = event.find("verdict");
  if (!word || !word->is_string()) return "";
  const bool ok = word->as_string() == "ok";
  std::string alarms, rows;
  for (const std::string& reason : texts_of(event, "reasons")) {
    alarms +=
        "<tr class=\"alarm\"><th scope=\"row\"><span class=\"sign\" aria-hidden=\"true\">!"
        "</span> alarm</th><td>" +
        escaped(reason) + "</td></tr>";
  }
  for (const std::string& finding : texts_of(event, "findings")) {
    const size_t colon = std::min(finding.find(": "), finding.size());
    rows += "<tr><th scope=\"row\">" + escaped(finding.substr(0, colon)) + "</th><td>" +
            escaped(finding.substr(std::min(colon + 2, finding.size()))) + "</td></tr>";
  }
  // A good run's reader wants the curves next; what was checked can be opened.
  return "<section class=\"card wide\"><h2>Verdict</h2><p><span class=\"badge " +
         std::string(ok ? "good" : "bad") + "\">" + escaped(word->as_string()) + "</span></p>" +
         facts_table(alarms) +
         (rows.empty()
              ? ""
              : "<details" + std::string(ok ? "" : " open") +
                    "><summary>What was checked</summary>" + facts_table(rows) + "</details>") +
         "</section>\n";
}

}  // namespace hearth
