#pragma once

namespace hearth {

/// The style sheet: light and dark, for screens of any width and for paper.
const char* page_style();

}  // namespace hearth
