#include "tools/support/preload_target.hpp"

#include <elf.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>

namespace uptempo::support {
namespace {

template <typename Record>
std::optional<Record> read_at(std::ifstream& file, uint64_t offset) {
  Record record;
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  if (!file.read(reinterpret_cast<char*>(&record), sizeof record)) return std::nullopt;
  return record;
}

std::string string_at(std::ifstream& file, uint64_t offset) {
  std::string text;
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  std::getline(file, text, '\0');
  return text;
}

std::optional<uint64_t> file_offset(const std::vector<Elf64_Phdr>& segments, uint64_t address) {
  for (const Elf64_Phdr& segment : segments)
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address < segment.p_vaddr + segment.p_filesz)
      return address - segment.p_vaddr + segment.p_offset;
  return std::nullopt;
}

// The word after "#!", or "" if the file does not begin so. The kernel reads 256 bytes
// (BINPRM_BUF_SIZE in linux/binfmts.h, load_script() in fs/binfmt_script.c).
std::string interpreter_of(std::ifstream& file) {
  std::string head(256, '\0');
  file.clear();
  file.seekg(0);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  if (!head.starts_with("#!")) return {};
  const std::string line = head.substr(2, head.find('\n') - 2);
  const size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string::npos) return {};
  return line.substr(begin, line.find_first_of(" \t", begin) - begin);
}

// Whether the file's capabilities add any (vfs_cap_data in linux/capability.h).
bool has_capabilities(const std::string& path) {
  vfs_ns_cap_data found{};
  const ssize_t size = getxattr(path.c_str(), "security.capability", &found, sizeof found);
  if (size < static_cast<ssize_t>(sizeof found.magic_etc)) return false;
  uint32_t all = 0;
  for (const auto& half : found.data) all |= half.permitted | half.inheritable;
  return all != 0;
}

// The kernel starts a program in secure-execution mode if its effective ids differ from the real
// ids of its caller, or if its file grants capabilities to a user other than root
// (cap_bprm_creds_from_file() in security/commoncap.c). A file on a "nosuid" mount grants nothing.
std::string gained_rights(const std::string& path, const Caller& caller) {
  struct stat status {};
  struct statvfs mount {};
  if (stat(path.c_str(), &status) != 0 || statvfs(path.c_str(), &mount) != 0) return {};
  const bool gains = caller.gains_rights && (mount.f_flag & ST_NOSUID) == 0;
  // Without S_IXGRP the bit means mandatory locking (bprm_fill_uid() in fs/exec.c).
  constexpr mode_t kSetGroup = S_ISGID | S_IXGRP;
  const bool sets_user = gains && (status.st_mode & S_ISUID) != 0;
  const bool sets_group = gains && (status.st_mode & kSetGroup) == kSetGroup;
  if ((sets_user ? status.st_uid : caller.effective_user) != caller.user)
    return sets_user ? "is a set-uid program" : "runs with another user's rights";
  if ((sets_group ? status.st_gid : caller.effective_group) != caller.group)
    return sets_group ? "is a set-gid program" : "runs with another group's rights";
  if (gains && caller.user != 0 && has_capabilities(path)) return "has file capabilities";
  return {};
}

PreloadTarget inspect_elf(std::ifstream& file, const Elf64_Ehdr& header) {
  PreloadTarget target;
  std::vector<Elf64_Phdr> segments;
  for (unsigned i = 0; i < header.e_phnum; ++i)
    if (const auto segment =
            read_at<Elf64_Phdr>(file, header.e_phoff + uint64_t{i} * header.e_phentsize))
      segments.push_back(*segment);
  uint64_t names = 0;
  bool dynamic = false;
  std::vector<uint64_t> needed;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_INTERP) dynamic = true;
    if (segment.p_type != PT_DYNAMIC) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz; at += sizeof(Elf64_Dyn)) {
      const auto entry = read_at<Elf64_Dyn>(file, segment.p_offset + at);
      if (!entry || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_NEEDED) needed.push_back(entry->d_un.d_val);
      if (entry->d_tag == DT_STRTAB) names = entry->d_un.d_ptr;
    }
  }
  if (!dynamic) target.obstacle = "is statically linked: link it dynamically";
  const auto table = file_offset(segments, names);
  if (table)
    for (const uint64_t offset : needed) target.needed.push_back(string_at(file, *table + offset));
  return target;
}

PreloadTarget inspect(const std::string& path, const Caller& caller, int depth) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file && errno == EACCES)
    return {.obstacle = "cannot be read, so nothing shows that a library can be preloaded",
            .needed = {}};
  if (const std::string interpreter = interpreter_of(file); !interpreter.empty()) {
    // fs/exec.c ends the chain with ELOOP. A script's own set-uid bit has no effect (execve(2)).
    constexpr int kMostInterpreters = 5;
    if (depth == kMostInterpreters) return {};
    PreloadTarget target = inspect(interpreter, caller, depth + 1);
    if (!target.obstacle.empty())
      target.obstacle = "is a script for '" + interpreter + "', which " + target.obstacle;
    target.needed.clear();
    return target;
  }
  const auto identity = read_at<Elf32_Ehdr>(file, 0);  // the same first fields as Elf64_Ehdr
  if (!identity || std::memcmp(identity->e_ident, ELFMAG, SELFMAG) != 0) return {};
  if (const std::string rights = gained_rights(path, caller); !rights.empty())
    return {.obstacle = rights +
                        ", into which the dynamic linker preloads nothing: run a "
                        "copy without these rights",
            .needed = {}};
  if (identity->e_ident[EI_CLASS] != ELFCLASS64)
    return {.obstacle = "is a 32-bit program; ROCr supports 64-bit programs only", .needed = {}};
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header) return {};
  PreloadTarget target = inspect_elf(file, *header);
  if (target.obstacle.empty() && header->e_machine != EM_X86_64)
    target.obstacle = "is a program for another architecture than x86-64";
  return target;
}

}  // namespace

Caller Caller::this_process() {
  return {.user = getuid(),
          .effective_user = geteuid(),
          .group = getgid(),
          .effective_group = getegid(),
          .gains_rights = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1};
}

PreloadTarget inspect_preload_target(const std::string& path, const Caller& caller) {
  return inspect(path, caller, 0);
}

}  // namespace uptempo::support
