cmake_minimum_required(VERSION 3.25)

# Finds what reaches files past FileCalls (src/base/file_ops.h): tests could not make it fail, nor
# see what a crash leaves of it. Each kind of use is planted first, so that a pattern that finds
# nothing any more shows.

# The calls themselves; memory without a file; files of /proc and /sys; /dev/null for closed streams.
set(allowed src/base/file_calls.cpp src/base/arena.cpp src/base/system.cpp
    src/topology/control_group.cpp tools/main.cpp)

string(JOIN "|" calls open openat creat read write pread pwrite readv writev stat lstat fstat statx
  statvfs access rename renameat renameat2 unlink unlinkat remove mkdir rmdir truncate ftruncate
  fallocate fsync fdatasync sync mmap opendir readdir realpath readlink symlink link flock lockf
  utimensat futimens chmod mkstemp mkdtemp tmpfile)
set(forbidden
  "(^|[^A-Za-z0-9_>])::(${calls})\\("
  "(^|[^A-Za-z0-9_])(fopen|fdopen|freopen|opendir|readdir|realpath|mkstemp|mkdtemp|tmpfile)\\("
  "std::(rename|filesystem|experimental::filesystem)([^A-Za-z0-9_]|$)"
  "(^|[^A-Za-z0-9_])[iof]?fstream([^A-Za-z0-9_]|$)"
  "#[ \t]*include[ \t]*<(fstream|filesystem|dirent\\.h|sys/mman\\.h|sys/statvfs\\.h|sys/file\\.h)>")

# Sets `uses` to the lines of a file that match.
function(find_uses path)
  set(found "")
  foreach(pattern IN LISTS forbidden)
    file(STRINGS "${path}" lines REGEX "${pattern}")
    foreach(line IN LISTS lines)
      string(STRIP "${line}" line)
      if(NOT line MATCHES "^//")
        list(APPEND found "${line}")
      endif()
    endforeach()
  endforeach()
  set(uses "${found}" PARENT_SCOPE)
endfunction()

foreach(line "const int fd = ::open(path, 0)\\;" "if (::rename(a, b) != 0) return\\;"
    "std::FILE* file = std::fopen(path, \"r\")\\;" "std::ofstream(path) << text\\;"
    "std::filesystem::remove(path)\\;" "namespace fs = std::filesystem\\;" "  ::unlink(path)\\;"
    "DIR* d = opendir(path)\\;" "#include <fstream>" "#include <sys/mman.h>"
    "std::rename(from, to)\\;" "void* p = ::mmap(nullptr, n, 1, 2, fd, 0)\\;")
  file(WRITE "${SCRATCH}/planted_use.cpp" "int before\;\n${line}\n")
  find_uses("${SCRATCH}/planted_use.cpp")
  if(NOT uses)
    message(SEND_ERROR "not found where it was planted: ${line}")
  endif()
endforeach()
foreach(line "Opened TokenStore::open(path)\\;" "file.read(to, 3)\\;" "remove(address, hole)\\;"
    "rename_no_replace(from, to)\\;" "file_calls().unlink(path)\\;")
  file(WRITE "${SCRATCH}/planted_use.cpp" "${line}\n")
  find_uses("${SCRATCH}/planted_use.cpp")
  if(uses)
    message(SEND_ERROR "is no use of a file: ${line}")
  endif()
endforeach()

set(sources "")
foreach(folder src tools cpu_kernels)
  file(GLOB_RECURSE more "${ROOT}/${folder}/*.h" "${ROOT}/${folder}/*.cpp" "${ROOT}/${folder}/*.cu")
  list(APPEND sources ${more})
endforeach()
list(LENGTH sources count)
if(count LESS 100)
  message(SEND_ERROR "only ${count} sources were found")
endif()
foreach(source IN LISTS sources)
  file(RELATIVE_PATH name "${ROOT}" "${source}")
  find_uses("${source}")
  if(name IN_LIST allowed)
    if(NOT uses)
      message(SEND_ERROR "${name} is allowed what it does not do")
    endif()
    continue()
  endif()
  foreach(use IN LISTS uses)
    message(SEND_ERROR "${name}: past FileCalls: ${use}")
  endforeach()
endforeach()
message(STATUS "${count} sources reach files through FileCalls only")
