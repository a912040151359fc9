// What an exception comes to as an error.
#pragma once

#include <exception>
#include <new>

#include "base/error.h"

namespace hearth {

/// f(error), of an Error as it is, whatever its class; out of memory is a storage error, anything else an
/// internal one. Returns what f returns.
template <class F>
auto as_error(const std::exception_ptr& raised, const F& f) {
  try {
    std::rethrow_exception(raised);
  } catch (const Error& error) {
    return f(error);
  } catch (const std::bad_alloc&) {
    return f(storage_error("out of memory"));
  } catch (const std::exception& error) {
    return f(Error(ExitCode::internal, error.what()));
  }
}

}  // namespace hearth
