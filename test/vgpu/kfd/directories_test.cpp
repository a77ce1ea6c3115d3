// Lists virtual directories in every way. Each must find the entries of opendir(), and stat() must
// agree.
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <string>

#include "test/support/catch.hpp"

namespace {

using Names = std::set<std::string>;

const std::string kNode = "/sys/class/kfd/kfd/topology/nodes/1";
const Names kInNode{"gpu_id", "name", "properties", "mem_banks", "caches", "io_links"};

// Returns all paths below the node, found with opendir() and stat() only.
Names paths_below(const std::string& directory) {
  Names result;
  DIR* stream = opendir(directory.c_str());
  REQUIRE(stream != nullptr);
  while (const dirent* entry = readdir(stream)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string path = directory + '/' + name;
    result.insert(path);
    struct stat status {};
    REQUIRE(stat(path.c_str(), &status) == 0);
    CHECK(status.st_ino == entry->d_ino);
    CHECK(IFTODT(status.st_mode) == entry->d_type);
    if (S_ISDIR(status.st_mode)) result.merge(paths_below(path));
  }
  closedir(stream);
  return result;
}

Names without_dots(Names names) {
  CHECK(names.erase(".") == 1);
  CHECK(names.erase("..") == 1);
  return names;
}

Names walked;
int depth_first = 0;
int remember(const char* path, const struct stat* status, int type, struct FTW* place) {
  CHECK((type == FTW_D || type == FTW_DP) == S_ISDIR(status->st_mode));
  CHECK(std::string(path + place->base).find('/') == std::string::npos);
  if (type == FTW_DP) ++depth_first;
  if (place->level > 0) walked.insert(path);
  return 0;
}

}  // namespace

TEST_CASE("std::filesystem lists virtual directories, also recursively", "[directories]") {
  Names names;
  for (const auto& entry : std::filesystem::directory_iterator(kNode))
    names.insert(entry.path().filename());
  CHECK(names == kInNode);
  Names paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kNode))
    paths.insert(entry.path());
  CHECK(paths == paths_below(kNode));
}

TEST_CASE("nftw and ftw walk virtual directories from the top or from the bottom",
          "[directories]") {
  walked.clear();
  CHECK(nftw(kNode.c_str(), remember, 8, FTW_PHYS) == 0);
  CHECK(walked == paths_below(kNode));
  walked.clear();
  depth_first = 0;
  CHECK(nftw((kNode + '/').c_str(), remember, 8, FTW_PHYS | FTW_DEPTH) == 0);
  CHECK(walked == paths_below(kNode));
  const auto is_folder = [](const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  };
  CHECK(depth_first == 1 + std::ranges::count_if(walked, is_folder));  // and the node itself
  CHECK(nftw(
            kNode.c_str(), [](const char*, const struct stat*, int, struct FTW*) { return 7; }, 8,
            0) == 7);
  static int files = 0;
  CHECK(ftw(
            "/dev/dri",
            [](const char*, const struct stat*, int type) {
              files += type == FTW_F ? 1 : 0;
              return 0;
            },
            8) == 0);
  CHECK(files == 1);
  CHECK(nftw("/dev/dri/card0", remember, 8, 0) == -1);
  CHECK(errno == ENOENT);
}

TEST_CASE("scandir filters and sorts virtual directories", "[directories]") {
  dirent** entries = nullptr;
  const int count = scandir(
      kNode.c_str(), &entries, [](const dirent* entry) { return entry->d_name[0] == '.' ? 0 : 1; },
      alphasort);
  REQUIRE(count == static_cast<int>(kInNode.size()));
  auto expected = kInNode.begin();
  for (int i = 0; i < count; ++i) {
    CHECK(entries[i]->d_name == *expected++);
    std::free(entries[i]);
  }
  std::free(entries);
}

TEST_CASE("glob finds virtual paths and still accepts the caller's functions", "[directories]") {
  glob_t found{};
  REQUIRE(glob((kNode + "/*").c_str(), 0, nullptr, &found) == 0);
  CHECK(found.gl_pathc == kInNode.size());
  CHECK((found.gl_flags & GLOB_ALTDIRFUNC) == 0);
  REQUIRE(glob("/dev/dri/render*", GLOB_APPEND, nullptr, &found) == 0);
  CHECK(found.gl_pathc == kInNode.size() + 1);
  CHECK(glob("/dev/dri/card*", GLOB_APPEND, nullptr, &found) == GLOB_NOMATCH);
  globfree(&found);
  glob_t real{};
  CHECK(glob("/dev/nul?", 0, nullptr, &real) == 0);
  CHECK(real.gl_pathc == 1);
  globfree(&real);
}

TEST_CASE("every function that takes a directory descriptor accepts that of a virtual directory",
          "[directories]") {
  const int node = open(kNode.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(node >= 0);
  CHECK((fcntl(node, F_GETFD) & FD_CLOEXEC) != 0);
  struct stat by_path {};
  struct stat by_descriptor {};
  REQUIRE(stat(kNode.c_str(), &by_path) == 0);
  REQUIRE(fstat(node, &by_descriptor) == 0);
  CHECK(S_ISDIR(by_descriptor.st_mode));
  CHECK(by_descriptor.st_ino == by_path.st_ino);
  CHECK(by_descriptor.st_dev == by_path.st_dev);

  const int banks = openat(node, "mem_banks", O_RDONLY | O_DIRECTORY);
  REQUIRE(banks >= 0);
  struct stat properties {};
  CHECK(fstatat(banks, "0/properties", &properties, 0) == 0);
  CHECK(S_ISREG(properties.st_mode));
  CHECK(faccessat(node, "caches", R_OK, 0) == 0);
  CHECK(faccessat(node, "no such thing", R_OK, 0) == -1);
  CHECK(errno == ENOENT);
  const int up_and_out =
      openat(node, "../../../../../../../null", O_RDONLY);  // up to /sys, which has no such entry
  CHECK(up_and_out == -1);
  CHECK(errno == ENOENT);
  close(banks);

  DIR* stream = fdopendir(dup(node));
  REQUIRE(stream != nullptr);
  Names names;
  while (const dirent* entry = readdir(stream)) names.insert(entry->d_name);
  CHECK(without_dots(names) == kInNode);
  const int of_stream = dirfd(stream);
  CHECK(of_stream != node);
  CHECK(closedir(stream) == 0);
  CHECK(fcntl(of_stream, F_GETFD) == -1);
  close(node);

  stream = opendir(kNode.c_str());
  REQUIRE(stream != nullptr);
  CHECK(fstatat(dirfd(stream), "gpu_id", &properties, 0) == 0);
  closedir(stream);
}

TEST_CASE("the listing of a real directory contains its virtual entries", "[directories]") {
  const std::string directory = "/sys/class";
  // The kernel's own listing.
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(descriptor >= 0);
  Names expected{"kfd"};
  alignas(8) char buffer[65536];
  for (long bytes; (bytes = syscall(SYS_getdents64, descriptor, buffer, sizeof buffer)) > 0;)
    for (long at = 0; at < bytes;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(buffer + at);
      expected.insert(entry->d_name);
      at += entry->d_reclen;
    }
  const auto names_of = [](DIR* stream) {
    REQUIRE(stream != nullptr);
    Names names;
    while (const dirent* entry = readdir(stream)) names.insert(entry->d_name);
    closedir(stream);
    return names;
  };
  CHECK(names_of(opendir(directory.c_str())) == expected);
  REQUIRE(lseek(descriptor, 0, SEEK_SET) == 0);
  CHECK(names_of(fdopendir(descriptor)) == expected);
  Names found;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    found.insert(entry.path().filename());
  found.merge(Names{".", ".."});
  CHECK(found == expected);
  DIR* const stream = opendir(directory.c_str());
  struct stat status {};
  CHECK(fstatat(dirfd(stream), "mem", &status, 0) == 0);
  CHECK(closedir(stream) == 0);
}

TEST_CASE("opening a virtual entry as another kind fails as for real entries", "[directories]") {
  CHECK(open(kNode.c_str(), O_RDWR) == -1);
  CHECK(errno == EISDIR);
  CHECK(open((kNode + "/name").c_str(), O_RDONLY | O_DIRECTORY) == -1);
  CHECK(errno == ENOTDIR);
  CHECK(open("/dev/kfd", O_RDONLY | O_DIRECTORY) == -1);
  CHECK(errno == ENOTDIR);
}

TEST_CASE("a position in a virtual directory can be stored and restored", "[directories]") {
  DIR* stream = opendir(kNode.c_str());
  REQUIRE(stream != nullptr);
  readdir(stream);
  readdir(stream);
  const long position = telldir(stream);
  const std::string third = readdir(stream)->d_name;
  while (readdir(stream) != nullptr) {
  }
  seekdir(stream, position);
  CHECK(readdir(stream)->d_name == third);
  seekdir(stream, position);
  dirent entry{};
  dirent* result = nullptr;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  CHECK(readdir_r(stream, &entry, &result) == 0);
#pragma GCC diagnostic pop
  CHECK(result == &entry);
  CHECK(entry.d_name == third);
  closedir(stream);
}

TEST_CASE("statx and fstat of a descriptor agree", "[directories]") {
  for (const char* path : {"/dev/kfd", "/dev/dri/renderD128", "/dev/dri", "/dev/null", "/"}) {
    CAPTURE(path);
    const int descriptor = open(path, O_RDONLY);
    REQUIRE(descriptor >= 0);
    struct stat plain {};
    struct statx extended {};
    REQUIRE(fstat(descriptor, &plain) == 0);
    REQUIRE(statx(descriptor, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &extended) == 0);
    CHECK(extended.stx_mode == plain.st_mode);
    CHECK(extended.stx_ino == plain.st_ino);
    CHECK(extended.stx_size == static_cast<uint64_t>(plain.st_size));
    CHECK(makedev(extended.stx_rdev_major, extended.stx_rdev_minor) == plain.st_rdev);
    close(descriptor);
  }
}
