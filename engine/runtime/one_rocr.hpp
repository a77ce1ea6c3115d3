// Refuses a process that has loaded ROCr twice, for example the distribution's and that of
// /opt/rocm. Each copy has agents, queues and signals of its own, and takes handles of the other
// for pointers to its objects.
//
// Thread safety: any thread.
#pragma once

namespace uptempo::detail {

// Throws Error, which names the files, if more than one loaded library has ROCr's soname
// (libhsa-runtime64.so.1). The dynamic linker loads one file once, whatever its links and names. A
// copy in another namespace (dlmopen) is not seen. `call`: of the Error.
void require_one_rocr(const char* call);

}  // namespace uptempo::detail
