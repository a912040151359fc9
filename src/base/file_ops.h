// Every operation that touches the disk goes through the four headers below.
//
// Their functions raise storage errors that name the path and the system's reason, unless they say
// otherwise. They handle EINTR and short transfers. A failed sync is final: it is never retried.
#pragma once

#include "base/directories.h"
#include "base/file_calls.h"
#include "base/input_file.h"
#include "base/output_file.h"
