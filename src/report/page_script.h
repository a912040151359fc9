#pragma once

namespace hearth {

/// The script for pointer read-outs. The page is complete without it.
const char* page_script();

}  // namespace hearth
