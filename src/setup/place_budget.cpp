#include "setup/place_budget.h"

#include <algorithm>
#include <string_view>

namespace hearth {

namespace {

/// An item of --devices, "virtual:cores=2", with another size of the device. All else stays as it was
/// written. A path (costs=, always the last key) may read like anything else.
std::string with_memory(std::string item, const std::string& size) {
  const size_t mem = item.find("mem="), path = item.find("costs=");
  if (mem < path) {
    const size_t past = std::min(item.find('/', mem), item.size());
    return item.replace(mem, past - mem, "mem=" + size);
  }
  if (item == "virtual") return "virtual:mem=" + size;
  return "virtual:mem=" + size + "/" + item.substr(std::string_view("virtual:").size());
}

/// The list of --devices with another size of one virtual device, counted from 0. A count of several
/// devices ("3xvirtual") is split around it.
std::string list_with_memory(const std::string& list, size_t device, const std::string& size) {
  std::string result;
  size_t before = 0;  // virtual devices
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    std::string item = list.substr(begin, end - begin);
    begin = end + 1;
    size_t count = 1;
    const size_t digits = item.find_first_not_of("0123456789");
    if (digits != std::string::npos && digits > 0 && item[digits] == 'x') {
      count = std::stoul(item.substr(0, digits));
      item = item.substr(digits + 1);
    }
    const auto add = [&](size_t times, const std::string& text) {
      if (times == 0) return;
      result += (result.empty() ? "" : ",") + (times > 1 ? std::to_string(times) + "x" : "") + text;
    };
    const bool here = item.starts_with("virtual") && before <= device && device < before + count;
    if (here) {
      add(device - before, item);
      add(1, with_memory(item, size));
      add(before + count - device - 1, item);
    } else {
      add(count, item);
    }
    if (item.starts_with("virtual")) before += count;
  }
  return result;
}

/// Where the list begins: behind the option's name, of --rank-devices behind the rank.
size_t list_in(const std::string& option) {
  const size_t value = option.find(' ') + 1;
  const size_t digits = option.find_first_not_of("0123456789", value);
  const bool rank = digits != std::string::npos && digits > value && option[digits] == '=';
  return rank ? digits + 1 : value;
}

}  // namespace

std::string PlaceBudget::raised_to(const std::string& size) const {
  return options_that_raise({{*this, size}});
}

std::string options_that_raise(const std::vector<RaisedBudget>& budgets) {
  std::string options, devices;
  for (const RaisedBudget& raised : budgets) {
    const std::string& size = raised.size;
    std::string text = raised.budget.remedy;
    if (raised.budget.in_list) {
      const size_t list = list_in(text);
      const std::string before = devices.empty() ? text.substr(list) : devices.substr(list);
      devices = text.substr(0, list) + list_with_memory(before, *raised.budget.in_list, size);
      continue;
    }
    if (const size_t at = text.find("{}"); at != std::string::npos) text.replace(at, 2, size);
    options += (options.empty() ? "" : " ") + text;
  }
  if (!devices.empty()) options += (options.empty() ? "" : " ") + devices;
  return options;
}

}  // namespace hearth
