cmake_minimum_required(VERSION 3.25)

# Finds what reaches files past FileCalls (src/base/file_ops.h): tests could not make it fail, nor
# see what a crash leaves of it.
include("${CMAKE_CURRENT_LIST_DIR}/source_scan.cmake")

# The calls themselves; memory without a file, and that of the program; files of /proc and /sys;
# /dev/null for closed streams.
set(allowed src/base/file_calls.cpp src/base/arena.cpp src/base/program_pages.cpp src/base/system.cpp
    src/topology/system_file.cpp tools/main.cpp)

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

expect_found("${forbidden}" "const int fd = ::open(path, 0)\\;"
    "if (::rename(a, b) != 0) return\\;" "std::FILE* file = std::fopen(path, \"r\")\\;"
    "std::ofstream(path) << text\\;" "std::filesystem::remove(path)\\;"
    "namespace fs = std::filesystem\\;" "  ::unlink(path)\\;" "DIR* d = opendir(path)\\;"
    "#include <fstream>" "#include <sys/mman.h>" "std::rename(from, to)\\;"
    "void* p = ::mmap(nullptr, n, 1, 2, fd, 0)\\;")
expect_not_found("${forbidden}" "is no use of a file" "Opened TokenStore::open(path)\\;"
    "file.read(to, 3)\\;" "remove(address, hole)\\;" "rename_no_replace(from, to)\\;"
    "file_calls().unlink(path)\\;")

list_sources(src tools cpu_kernels predictor)
expect_no_use("${sources}" "${forbidden}" "${allowed}" "past FileCalls")
message(STATUS "${count} sources reach files through FileCalls only")
