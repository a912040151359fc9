// What the pages share. Private to the room.
#pragma once

#include <string>
#include <vector>

#include "report/line_chart.h"

namespace hearth {

const char* page_style();   // a style sheet, light and dark, for screens of any width and for paper
const char* page_script();  // read-outs under the pointer; the page is whole without it

/// The document around `body`. `charts` and `heat_maps` (a JSON object by id) are what the script
/// reads out.
std::string document(const std::string& title, const std::string& body,
                     const std::vector<LineChart>& charts, const std::string& heat_maps);

}  // namespace hearth
