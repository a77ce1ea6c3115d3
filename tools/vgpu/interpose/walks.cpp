// scandir(), glob(), ftw() and nftw(). They list directories inside libc without calling the
// opendir() of this library.
#include <dirent.h>
#include <ftw.h>
#include <glob.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "interpose/real.hpp"
#include "interpose/tree.hpp"

namespace uptempo::vgpu::interpose {
namespace {

bool is_virtual(const char* path) {
  const Tree* tree = tree_for(path);
  return tree != nullptr && tree->find(path).has_value();
}

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { closedir(directory); }
};
struct Free {
  void operator()(void* memory) const noexcept { std::free(memory); }
};

// The program releases each entry and the array with free(). Returns -1 with ENOMEM if an
// allocation fails.
template <typename Record>
int scan(const char* path, Record*** names, int (*filter)(const Record*),
         int (*compare)(const Record**, const Record**)) {
  using Copy = std::unique_ptr<Record, Free>;
  const std::unique_ptr<DIR, CloseDirectory> directory(opendir(path));
  if (directory == nullptr) return -1;
  std::vector<Copy> found;
  while (const dirent* entry = readdir(directory.get())) {
    const auto* record = reinterpret_cast<const Record*>(entry);
    if (filter != nullptr && filter(record) == 0) continue;
    Copy& copy = found.emplace_back(static_cast<Record*>(std::malloc(sizeof(Record))));
    if (copy == nullptr) return -1;  // malloc() has set errno
    std::memcpy(copy.get(), record, sizeof(Record));
  }
  if (compare != nullptr)
    std::sort(found.begin(), found.end(), [compare](const Copy& left, const Copy& right) {
      const Record *first = left.get(), *second = right.get();
      return compare(&first, &second) < 0;
    });
  *names = static_cast<Record**>(std::malloc(std::max<size_t>(1, found.size()) * sizeof(Record*)));
  if (*names == nullptr) return -1;
  std::transform(found.begin(), found.end(), *names, [](Copy& copy) { return copy.release(); });
  return static_cast<int>(found.size());
}

// Calls libc's glob() with directory functions of this library.
template <typename Record, typename Status, typename Result, typename Next>
int glob_with(Next& next, const char* pattern, int flags, int (*error)(const char*, int),
              Result* result) {
  result->gl_opendir = [](const char* path) -> void* { return opendir(path); };
  result->gl_readdir = [](void* stream) {
    return reinterpret_cast<Record*>(readdir(static_cast<DIR*>(stream)));
  };
  result->gl_closedir = [](void* stream) { closedir(static_cast<DIR*>(stream)); };
  result->gl_stat = [](const char* path, Status* status) {
    return stat(path, reinterpret_cast<struct stat*>(status));
  };
  result->gl_lstat = [](const char* path, Status* status) {
    return lstat(path, reinterpret_cast<struct stat*>(status));
  };
  const int status = next(pattern, flags | GLOB_ALTDIRFUNC, error, result);
  result->gl_flags &= ~GLOB_ALTDIRFUNC;  // the program did not ask for it
  return status;
}

bool needs_ours(const char* pattern, int flags) {
  return (flags & GLOB_ALTDIRFUNC) == 0 && tree_for(pattern) != nullptr;
}

using Visit = std::function<int(const char*, const struct stat*, int, struct FTW*)>;

// Visits one entry and everything below it. The virtual tree has no symbolic links, mount points or
// unreadable directories.
int walk(const std::string& path, int level, int flags, const Visit& visit) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return -1;
  struct FTW place {
    static_cast<int>(path.rfind('/') + 1), level
  };
  const bool chooses = (flags & FTW_ACTIONRETVAL) != 0;
  if (!S_ISDIR(status.st_mode)) return visit(path.c_str(), &status, FTW_F, &place);
  if ((flags & FTW_DEPTH) == 0) {
    const int answer = visit(path.c_str(), &status, FTW_D, &place);
    if (chooses && answer == FTW_SKIP_SUBTREE) return 0;
    if (answer != 0) return answer;
  }
  const Tree* const tree = tree_for(path.c_str());
  for (const std::string& name : tree->find(path.c_str())->entry->children) {
    const int answer = walk(path + '/' + name, level + 1, flags, visit);
    if (chooses && answer == FTW_SKIP_SIBLINGS) break;
    if (answer != 0) return answer;
  }
  return (flags & FTW_DEPTH) == 0 ? 0 : visit(path.c_str(), &status, FTW_DP, &place);
}

int walk_from(std::string path, int flags, const Visit& visit) {
  if ((flags & FTW_CHDIR) != 0) {
    errno = ENOTSUP;  // a process cannot change to a virtual directory
    return -1;
  }
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const int answer = walk(path, 0, flags, visit);
  return (flags & FTW_ACTIONRETVAL) != 0 && answer == FTW_SKIP_SIBLINGS ? 0 : answer;
}

}  // namespace
}  // namespace uptempo::vgpu::interpose

namespace vgpu = uptempo::vgpu::interpose;

#define UPTEMPO_VGPU_SCANDIR(name, record)                                                      \
  UPTEMPO_VGPU_EXPORT int name(const char* path, record*** names, int (*filter)(const record*), \
                               int (*compare)(const record**, const record**)) {                \
    if (vgpu::is_virtual(path)) return vgpu::scan(path, names, filter, compare);                \
    static constinit vgpu::Next<int (*)(const char*, record***, int (*)(const record*),         \
                                        int (*)(const record**, const record**))>               \
        next{#name};                                                                            \
    return next(path, names, filter, compare);                                                  \
  }
UPTEMPO_VGPU_SCANDIR(scandir, dirent)
UPTEMPO_VGPU_SCANDIR(scandir64, dirent64)
#undef UPTEMPO_VGPU_SCANDIR

#define UPTEMPO_VGPU_GLOB(name, results, record, status)                                        \
  UPTEMPO_VGPU_EXPORT int name(const char* pattern, int flags, int (*error)(const char*, int),  \
                               results* result) {                                               \
    static constinit vgpu::Next<int (*)(const char*, int, int (*)(const char*, int), results*)> \
        next{#name};                                                                            \
    if (!vgpu::needs_ours(pattern, flags)) return next(pattern, flags, error, result);          \
    return vgpu::glob_with<record, status>(next, pattern, flags, error, result);                \
  }
UPTEMPO_VGPU_GLOB(glob, glob_t, dirent, struct stat)
UPTEMPO_VGPU_GLOB(glob64, glob64_t, dirent64, struct stat64)
#undef UPTEMPO_VGPU_GLOB

#define UPTEMPO_VGPU_NFTW(name, record)                                                     \
  UPTEMPO_VGPU_EXPORT int name(const char* path,                                            \
                               int (*visit)(const char*, const record*, int, struct FTW*),  \
                               int descriptors, int flags) {                                \
    if (vgpu::is_virtual(path))                                                             \
      return vgpu::walk_from(                                                               \
          path, flags,                                                                      \
          [visit](const char* at, const struct stat* status, int type, struct FTW* place) { \
            return visit(at, reinterpret_cast<const record*>(status), type, place);         \
          });                                                                               \
    static constinit vgpu::Next<int (*)(                                                    \
        const char*, int (*)(const char*, const record*, int, struct FTW*), int, int)>      \
        next{#name};                                                                        \
    return next(path, visit, descriptors, flags);                                           \
  }
UPTEMPO_VGPU_NFTW(nftw, struct stat)
UPTEMPO_VGPU_NFTW(nftw64, struct stat64)
#undef UPTEMPO_VGPU_NFTW

#define UPTEMPO_VGPU_FTW(name, record)                                                          \
  UPTEMPO_VGPU_EXPORT int name(const char* path, int (*visit)(const char*, const record*, int), \
                               int descriptors) {                                               \
    if (vgpu::is_virtual(path))                                                                 \
      return vgpu::walk_from(                                                                   \
          path, 0, [visit](const char* at, const struct stat* status, int type, struct FTW*) {  \
            return visit(at, reinterpret_cast<const record*>(status), type);                    \
          });                                                                                   \
    static constinit vgpu::Next<int (*)(const char*, int (*)(const char*, const record*, int),  \
                                        int)>                                                   \
        next{#name};                                                                            \
    return next(path, visit, descriptors);                                                      \
  }
UPTEMPO_VGPU_FTW(ftw, struct stat)
UPTEMPO_VGPU_FTW(ftw64, struct stat64)
#undef UPTEMPO_VGPU_FTW
