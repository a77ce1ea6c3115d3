#include "interpose/directory_descriptor.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <string_view>

namespace uptempo::vgpu::interpose {
namespace {

constexpr std::string_view kName = "uptempo-vgpu-directory:";
constexpr std::string_view kLinkBegin = "/memfd:uptempo-vgpu-directory:";
constexpr std::string_view kLinkEnd = " (deleted)";

std::atomic<bool> any_opened{false};

}  // namespace

int open_directory(const std::string& path, bool close_on_exec) {
  // relaxed: a thread obtains the descriptor only after this store
  any_opened.store(true, std::memory_order_relaxed);
  return memfd_create((std::string(kName) + path).c_str(), close_on_exec ? MFD_CLOEXEC : 0);
}

std::optional<std::string> directory_of(int descriptor) {
  if (descriptor < 0 || !any_opened.load(std::memory_order_relaxed)) return std::nullopt;
  char link[32];
  char name[512];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const long length = syscall(SYS_readlink, link, name, sizeof name);
  if (length <= 0) return std::nullopt;
  std::string_view text(name, static_cast<size_t>(length));
  if (!text.starts_with(kLinkBegin) || !text.ends_with(kLinkEnd)) return std::nullopt;
  text.remove_prefix(kLinkBegin.size());
  text.remove_suffix(kLinkEnd.size());
  return std::string(text);
}

AtPath::AtPath(int directory, const char* path) : directory_(directory), path_(path) {
  if (path == nullptr || path[0] == '/' || path[0] == '\0') return;
  const auto base = directory_of(directory);
  if (!base) return;
  joined_ = *base + '/' + path;
  directory_ = AT_FDCWD;
  path_ = joined_.c_str();
}

}  // namespace uptempo::vgpu::interpose
