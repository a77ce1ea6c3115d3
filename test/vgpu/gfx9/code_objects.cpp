#include "test/vgpu/gfx9/code_objects.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>

#include "test/vgpu/gfx9/llvm/llvm_mc.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

// e_flags, low byte: EF_AMDGPU_MACH (llvm/BinaryFormat/ELF.h).
std::optional<Target> target_of(uint32_t flags) {
  switch (flags & 0xff) {
    case 0x2c:
      return Target::gfx900;
    case 0x2f:
      return Target::gfx906;
    case 0x30:
      return Target::gfx908;
    case 0x3f:
      return Target::gfx90a;
    case 0x4c:
      return Target::gfx942;
    default:
      return std::nullopt;
  }
}

class Mapped {
 public:
  explicit Mapped(const std::string& file) {
    const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) throw std::system_error(errno, std::generic_category(), file);
    struct stat status {};
    if (fstat(descriptor, &status) == 0) size_ = static_cast<size_t>(status.st_size);
    data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
    if (data_ == MAP_FAILED) throw std::system_error(errno, std::generic_category(), file);
  }
  ~Mapped() { munmap(data_, size_); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

template <typename T>
std::optional<T> read(std::string_view bytes, size_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::vector<uint32_t> text(std::string_view elf, const Elf64_Ehdr& header) {
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section = read<Elf64_Shdr>(elf, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (!section || section->sh_type != SHT_PROGBITS || !(section->sh_flags & SHF_EXECINSTR))
      continue;
    if (section->sh_offset + section->sh_size > elf.size()) continue;
    std::vector<uint32_t> words(section->sh_size / 4);
    std::memcpy(words.data(), elf.data() + section->sh_offset, words.size() * 4);
    return words;
  }
  return {};
}

}  // namespace

void for_each_code(const std::string& file, const std::function<void(const Code&)>& visit) {
  const Mapped content(file);
  const std::string_view bytes = content.bytes();
  const std::string_view magic = ELFMAG;
  const std::boyer_moore_horspool_searcher searcher(magic.begin(), magic.end());
  size_t count = 0;
  for (auto at = bytes.begin();; ++at) {
    at = std::search(at, bytes.end(), searcher);
    if (at == bytes.end()) return;
    const std::string_view elf = bytes.substr(static_cast<size_t>(at - bytes.begin()));
    const auto header = read<Elf64_Ehdr>(elf, 0);
    if (!header || header->e_machine != EM_AMDGPU || header->e_ident[EI_CLASS] != ELFCLASS64)
      continue;
    const auto target = target_of(header->e_flags);
    if (!target) continue;
    auto words = text(elf, *header);
    if (words.empty()) continue;
    visit({*target,
           std::filesystem::path(file).filename().string() + " #" + std::to_string(count++) + " " +
               cpu_name(*target),
           std::move(words)});
  }
}

std::vector<std::string> rocm_libraries(const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const std::filesystem::path folder : {"/usr/lib/x86_64-linux-gnu", "/opt/rocm/lib"})
    for (const std::string& name : names)
      if (std::filesystem::exists(folder / name)) found.push_back(folder / name);
  return found;
}

}  // namespace uptempo::vgpu::gfx9::test
