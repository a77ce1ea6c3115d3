#include "interpose/tree.hpp"

#include <sys/sysmacros.h>
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>

#include "interpose/topology.hpp"
#include "kfd/process.hpp"

namespace uptempo::vgpu::interpose {
namespace {

bool is_below(std::string_view path, std::string_view root) {
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

// Resolves ".", ".." and repeated slashes textually, since the virtual tree has no symbolic links.
std::string normalise(std::string_view path) {
  std::string result;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      result.erase(std::min(result.rfind('/'), result.size()));
      continue;
    }
    result += '/';
    result += part;
  }
  return result.empty() ? "/" : result;
}

}  // namespace

const std::string* Tree::root_of(std::string_view path) const {
  const auto found = std::find_if(roots_.begin(), roots_.end(),
                                  [path](const std::string& root) { return is_below(path, root); });
  return found == roots_.end() ? nullptr : &*found;
}

void Tree::insert(const std::string& path, Entry entry) {
  const std::string* root = root_of(path);
  if (root == nullptr) throw std::logic_error("no root of the virtual tree contains " + path);
  entries_.insert_or_assign(path, std::move(entry));
  for (std::string at = path; at != *root;) {
    const size_t slash = at.rfind('/');
    const std::string name = at.substr(slash + 1);
    at.erase(slash);
    auto& children = entries_[at].children;
    if (std::find(children.begin(), children.end(), name) == children.end())
      children.push_back(name);
  }
}

void Tree::add_root(std::string path) { roots_.push_back(std::move(path)); }
void Tree::add_file(const std::string& path, std::string content) {
  insert(path, {.kind = Entry::Kind::file, .content = std::move(content), .children = {}});
}
void Tree::add_device(const std::string& path, Entry::Kind kind, uint32_t gpu_index) {
  insert(path, {.kind = kind, .content = {}, .children = {}, .gpu_index = gpu_index});
}
void Tree::add_directory(const std::string& path) { insert(path, {}); }
void Tree::add_alias(std::string alias, std::string target) {
  aliases_.emplace_back(std::move(alias), std::move(target));
}

std::optional<Tree::Lookup> Tree::find(const char* path) const {
  Lookup result{.path = normalise(path), .entry = nullptr};
  for (const auto& [alias, target] : aliases_)
    if (is_below(result.path, alias)) {
      result.path.replace(0, alias.size(), target);
      break;
    }
  if (root_of(result.path) == nullptr) return std::nullopt;
  const auto found = entries_.find(result.path);
  if (found != entries_.end()) result.entry = &found->second;
  return result;
}

std::vector<std::string> Tree::names_in(const char* directory) const {
  const std::string folder = normalise(directory);
  std::vector<std::string> names;
  const auto add = [&](const std::string& path) {
    const size_t slash = path.rfind('/');
    if (slash != folder.size() || !path.starts_with(folder)) return;
    const auto found = find(path.c_str());
    if (found && found->entry != nullptr) names.push_back(path.substr(slash + 1));
  };
  for (const std::string& root : roots_) add(root);
  for (const auto& [alias, target] : aliases_) add(alias);
  return names;
}

void Tree::describe(const Lookup& found, struct stat& status) {
  status = {};
  status.st_nlink = 1;
  status.st_blksize = 4096;
  // The entries have a device and inodes of their own, so two names of one entry compare equal and
  // different entries differ.
  status.st_dev = makedev(0, 0xffe);
  status.st_ino = std::hash<std::string>{}(found.path) | 1;
  switch (found.entry->kind) {
    case Entry::Kind::file:
      status.st_mode = S_IFREG | 0444;
      status.st_size = static_cast<off_t>(found.entry->content.size());
      break;
    case Entry::Kind::directory:
      status.st_mode = S_IFDIR | 0755;
      status.st_nlink = 2;
      break;
    case Entry::Kind::kfd_device:
      status.st_mode = S_IFCHR | 0666;
      status.st_rdev = makedev(kKfdMajor, kKfdMinor);
      break;
    case Entry::Kind::render_device:
      status.st_mode = S_IFCHR | 0666;
      status.st_rdev = makedev(kRenderMajor, render_minor_of(found.entry->gpu_index));
      break;
  }
}

const Tree* tree_for(const char* path) noexcept {
  // Fast path: nearly every path that a program opens leaves here after two comparisons.
  if (path == nullptr || path[0] != '/' ||
      (std::strncmp(path, "/dev/", 5) != 0 && std::strncmp(path, "/sys/", 5) != 0))
    return nullptr;
  static const Tree* const tree = []() noexcept -> const Tree* {
    try {
      // Never destroyed, because exit handlers may open paths.
      return std::make_unique<const Tree>(device_tree()).release();
    } catch (const std::exception&) {
      return nullptr;  // invalid options: the first open of /dev/kfd reports them
    }
  }();
  return tree;
}

}  // namespace uptempo::vgpu::interpose
