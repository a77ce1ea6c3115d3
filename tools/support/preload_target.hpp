// A program that a launcher executes with LD_PRELOAD: whether the dynamic linker heeds that, and
// which libraries the program loads. Includes nothing of the tree, because tools/vgpu, a project of
// its own, uses it too.
//
// Thread safety: any thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace uptempo::support {

struct PreloadTarget {
  // Why LD_PRELOAD has no effect, after the program's name: "is statically linked, ..."; "" if it
  // has an effect, or if the kernel will refuse to execute the file.
  std::string obstacle;
  std::vector<std::string> needed;  // DT_NEEDED, in order; none of a script
};

// The process that will execute the program. A file's rights differ from those of its caller.
struct Caller {
  uid_t user, effective_user;
  gid_t group, effective_group;
  bool gains_rights;  // false after PR_SET_NO_NEW_PRIVS (prctl(2))

  static Caller this_process();
};

// Inspects the program, or for a script ("#!") its interpreter, as execve(2) finds it. Knows what
// ld.so(8) names as secure-execution mode, except transitions of security modules (AppArmor,
// SELinux), which no file shows.
PreloadTarget inspect_preload_target(const std::string& path,
                                     const Caller& caller = Caller::this_process());

}  // namespace uptempo::support
