#pragma once

namespace hearth {

/// Read-outs under the pointer; the page is whole without it.
const char* page_script();

}  // namespace hearth
