#include "kfd/report/host_frames.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "device/demangled.hpp"

namespace uptempo::vgpu::kfd {
namespace {

std::string file_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

bool is_hip_library(std::string_view file) { return file.starts_with("libamdhip64."); }

bool is_of_runtime(std::string_view file) {
  // libstdc++, libc and libpthread call the program's functions: in threads and at the start.
  // Sanitizers come between ROCr and the system's calls.
  constexpr std::array<std::string_view, 12> kNames{
      "libhsa-runtime64.", "libamdhip64.", "libhsakmt.", "libc.so.",  "libstdc++.", "libpthread.",
      "ld-linux",          "libhiprtc.",   "libasan.",   "libubsan.", "libtsan.",   "libclang_rt."};
  return std::ranges::any_of(kNames, [&](std::string_view name) { return file.starts_with(name); });
}

constexpr std::string_view kUptempo = "uptempo::";

// A function of engine/: not of the virtual GPU, its tests, tools, and the packet language, which
// have namespaces of their own.
bool is_of_engine(std::string_view function) {
  function.remove_prefix(kUptempo.size());
  const size_t end = function.find("::");
  if (end == std::string_view::npos) return true;
  const std::string_view scope = function.substr(0, end);
  return scope == "detail" || scope == "hip" || scope.starts_with('(') ||
         (!scope.empty() && scope.front() >= 'A' && scope.front() <= 'Z');
}

}  // namespace

// An ELF file of the host, mapped. Every offset in it is checked.
struct HostFrames::Image {
  Image(const std::string& path, const DwarfLibrary& the_library) : library(the_library) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat status {};
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
      size = static_cast<size_t>(status.st_size);
      // Private and writable, because libelf takes a pointer to bytes that it may change.
      void* const at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
      if (at != MAP_FAILED) bytes = static_cast<char*>(at);
    }
    close(file);
    const auto header = read<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr) ||
        header->e_phentsize != sizeof(Elf64_Phdr))
      return;
    elf_header = *header;
    if (!library.complete()) return;
    elf = library.elf_memory(bytes, size);
    if (elf != nullptr) dwarf = library.begin(elf, DwarfLibrary::kRead, nullptr);
  }
  ~Image() {
    if (dwarf != nullptr) library.end(dwarf);
    if (elf != nullptr) library.elf_end(elf);
    if (bytes != nullptr) munmap(bytes, size);
  }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  template <typename T>
  std::optional<T> read(uint64_t offset) const {
    if (bytes == nullptr || offset > size || size - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes + offset, sizeof value);
    return value;
  }

  // The address, as symbols and debug information have it, of a byte of the file.
  std::optional<uint64_t> address_of(uint64_t offset) const {
    for (unsigned i = 0; i < elf_header.e_phnum; ++i) {
      const auto segment = read<Elf64_Phdr>(elf_header.e_phoff + i * sizeof(Elf64_Phdr));
      if (!segment) break;
      if (segment->p_type == PT_LOAD && offset >= segment->p_offset &&
          offset - segment->p_offset < segment->p_filesz)
        return segment->p_vaddr + (offset - segment->p_offset);
    }
    return std::nullopt;
  }

  // The function that contains the address: from .symtab, or else from .dynsym, where functions
  // that are not exported are missing.
  std::string function_at(uint64_t address) const {
    for (const uint32_t type : {SHT_SYMTAB, SHT_DYNSYM})
      for (unsigned i = 0; i < elf_header.e_shnum; ++i) {
        const auto section = read<Elf64_Shdr>(elf_header.e_shoff + i * sizeof(Elf64_Shdr));
        if (!section || section->sh_type != type) continue;
        if (std::string name = function_in(*section, address); !name.empty()) return name;
      }
    return {};
  }

  std::string function_in(const Elf64_Shdr& table, uint64_t address) const {
    const auto strings =
        read<Elf64_Shdr>(elf_header.e_shoff + uint64_t{table.sh_link} * sizeof(Elf64_Shdr));
    if (!strings) return {};
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read<Elf64_Sym>(table.sh_offset + at);
      if (!symbol) break;
      if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF ||
          address < symbol->st_value || address - symbol->st_value >= symbol->st_size)
        continue;
      const uint64_t name = strings->sh_offset + symbol->st_name;
      if (name >= size || memchr(bytes + name, 0, size - name) == nullptr) break;
      return demangled(bytes + name);
    }
    return {};
  }

  const DwarfLibrary& library;
  char* bytes = nullptr;
  size_t size = 0;
  Elf64_Ehdr elf_header{};  // without sections: no ELF file
  void* elf = nullptr;
  void* dwarf = nullptr;
};

HostFrames::HostFrames(const DwarfLibrary& library) : library_(library) {}
HostFrames::~HostFrames() = default;

void HostFrames::read_maps() {
  mapped_.clear();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0, offset = 0;
    std::array<char, 8> permissions{};
    int path = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx %7s %llx %*s %*s %n", &begin, &end, permissions.data(),
                    &offset, &path) != 4 ||
        permissions[2] != 'x' || path == 0 || static_cast<size_t>(path) >= line.size() ||
        line[static_cast<size_t>(path)] != '/')
      continue;
    mapped_.push_back({begin, end, offset, line.substr(static_cast<size_t>(path))});
    is_hip_ = is_hip_ || is_hip_library(file_name(mapped_.back().path));
  }
}

const HostFrames::Mapped* HostFrames::mapping_of(uintptr_t address) {
  const auto search = [&]() -> const Mapped* {
    for (const Mapped& mapped : mapped_)
      if (address >= mapped.begin && address < mapped.end) return &mapped;
    return nullptr;
  };
  if (const Mapped* const mapped = search(); mapped != nullptr) return mapped;
  read_maps();
  return search();
}

HostFrames::Image& HostFrames::image(const std::string& path) {
  std::unique_ptr<Image>& image = images_[path];
  if (image == nullptr) image = std::make_unique<Image>(path, library_);
  return *image;
}

const HostFrames::Frame& HostFrames::frame(uintptr_t address) {
  const auto [found, is_new] = known_.try_emplace(address);
  Frame& frame = found->second;
  if (!is_new) return frame;
  fences::HostFrame& names = frame.calls.front();
  const Mapped* const mapped = mapping_of(address);
  if (mapped == nullptr) {
    names.offset = address;
    return frame;
  }
  names.module = file_name(mapped->path);
  names.offset = address - mapped->begin + mapped->offset;
  if (names.module.starts_with("libuptempo-vgpu."))
    frame.owner = Owner::device;
  else if (is_of_runtime(names.module))
    frame.owner = Owner::runtime;
  if (frame.owner == Owner::device) return frame;
  const Image& file = image(mapped->path);
  const auto at = file.address_of(names.offset);
  if (!at) return frame;
  names.function = file.function_at(*at);
  if (frame.owner != Owner::program || file.dwarf == nullptr) return frame;
  const auto places = library_.places_at(file.dwarf, *at);
  if (places.empty()) return frame;
  const fences::HostFrame outermost = names;
  frame.calls.assign(places.size(), outermost);
  for (size_t i = 0; i < places.size(); ++i) {
    frame.calls[i].source = places[i].line;
    if (i + 1 < places.size()) frame.calls[i].function = places[i].function;
  }
  return frame;
}

std::vector<fences::HostFrame> HostFrames::place(uintptr_t instruction) {
  return frame(instruction).calls;
}

std::vector<fences::HostFrame> HostFrames::frames(std::span<const uintptr_t> stack) {
  std::vector<fences::HostFrame> told;
  const fences::HostFrame* entry = nullptr;  // the runtime's outermost function so far
  size_t of_program = 0;
  const auto is_complete = [&] {
    return of_program == kMostOfProgram || (of_program != 0 && told.back().function == "main");
  };
  for (const uintptr_t address : stack) {
    const Frame& one = frame(address);
    if (one.owner == Owner::device) continue;
    if (one.owner == Owner::runtime) {
      if (of_program != 0) break;  // the program's caller: libc's start, or a callback
      entry = &one.calls.back();
      continue;
    }
    if (entry != nullptr && of_program == 0) told.push_back(*entry);
    for (const fences::HostFrame& call : one.calls) {
      told.push_back(call);
      ++of_program;
      if (is_complete()) return told;
    }
  }
  // A thread of the runtime's own.
  if (told.empty() && entry != nullptr) told.push_back(*entry);
  return told;
}

std::vector<HostFrames::RuntimeCall> HostFrames::runtime_calls(std::span<const uintptr_t> stack) {
  std::vector<RuntimeCall> calls;
  for (const uintptr_t address : stack) {
    const Frame& one = frame(address);
    if (one.owner == Owner::program) break;
    if (one.owner == Owner::runtime)
      calls.push_back({.address = address,
                       .function = one.calls.back().function,
                       .hip = is_hip_library(one.calls.back().module)});
  }
  std::ranges::reverse(calls);
  return calls;
}

std::optional<fences::Library> HostFrames::library(std::span<const uintptr_t> stack) {
  for (const uintptr_t address : stack) {
    const Frame& one = frame(address);
    if (one.owner == Owner::runtime && is_hip_library(one.calls.back().module))
      return fences::Library::hip;
    if (one.owner != Owner::program) continue;
    bool of_uptempo = false;
    for (const fences::HostFrame& call : one.calls) {
      const std::string function = fences::short_function(call.function);
      if (!function.starts_with(kUptempo)) continue;
      if (is_of_engine(function)) return fences::Library::uptempo;
      of_uptempo = true;
    }
    if (!of_uptempo) return fences::Library::hsa;
  }
  return std::nullopt;
}

bool HostFrames::is_hip() {
  if (mapped_.empty()) read_maps();
  return is_hip_;
}

}  // namespace uptempo::vgpu::kfd
