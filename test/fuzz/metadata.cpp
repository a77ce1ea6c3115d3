// Kernel metadata and the layout of arguments, compared with LLVM's MessagePack reader.
#include <uptempo/program/metadata.hpp>

#include <llvm/BinaryFormat/MsgPackDocument.h>

#include <optional>
#include <vector>

#include <uptempo/program/argument_layout.hpp>
#include "test/fuzz/fuzz.hpp"

namespace uptempo::fuzz {
namespace {

using llvm::msgpack::DocNode;

std::string_view text_in(DocNode node) {
  return {node.getString().data(), node.getString().size()};
}
bool is(DocNode node, uint64_t number) {
  return node.getKind() == llvm::msgpack::Type::UInt
             ? node.getUInt() == number
             : node.getInt() == static_cast<int64_t>(number);
}

void compare(DocNode theirs, const KernelMetadata& ours) {
  auto& map = theirs.getMap();
  require(text_in(map[".name"]) == ours.name, "the kernel's name");
  require(text_in(map[".symbol"]) == ours.symbol, "the kernel's symbol");
  require(is(map[".kernarg_segment_size"], ours.kernarg_size), "the size of the kernarg segment");
  require(is(map[".max_flat_workgroup_size"], ours.max_workgroup_size), "the size of workgroups");
  if (map.find(".reqd_workgroup_size") != map.end())
    for (size_t d = 0; d < 3; ++d)
      require(is(map[".reqd_workgroup_size"].getArray()[d], ours.required_workgroup_size[d]),
              "the required size of workgroups");
  for (size_t i = 0; i < ours.arguments.size(); ++i) {
    auto& argument = map[".args"].getArray()[i].getMap();
    require(is(argument[".offset"], ours.arguments[i].offset), "an argument's offset");
    require(is(argument[".size"], ours.arguments[i].size), "an argument's size");
    require(text_in(argument[".value_kind"]) == ours.arguments[i].kind_name, "an argument's kind");
  }
}

void fill(const KernelMetadata& kernel) {
  std::optional<ArgumentLayout> layout;
  if (!accepts([&] { layout.emplace(kernel, /*program_has_printf=*/true); })) return;
  if (layout->block_bytes() > 1 << 20) return;
  std::vector<std::byte> block(layout->block_bytes());
  layout->fill_hidden(block.data(), Grid{640, 6, 2}.by(64, 2, 1), {.queue_address = ~0ull});
}

}  // namespace

void metadata(Bytes input) {
  ProgramMetadata program;
  if (!accepts([&] { program = read_metadata(std::as_bytes(input)); })) return;
  llvm::msgpack::Document document;
  require(document.readFromBlob({text_of(input).data(), input.size()}, /*Multi=*/false),
          "LLVM reads it, too");
  auto kernels = document.getRoot().getMap()["amdhsa.kernels"].getArray();
  require(kernels.size() == program.kernels.size(), "the number of kernels");
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    compare(kernels[i], program.kernels[i]);
    fill(program.kernels[i]);
  }
}

}  // namespace uptempo::fuzz
