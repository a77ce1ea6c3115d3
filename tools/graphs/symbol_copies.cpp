#include "tools/graphs/symbol_copies.hpp"

#include "tools/graphs/copy_ledger.hpp"
#include "tools/graphs/copy_params.hpp"
#include "tools/graphs/original.hpp"

namespace uptempo::graphs {
namespace {

std::byte* address_of(const void* symbol) {
  const KeepLastError keep;
  void* address = nullptr;
  if (hipGetSymbolAddress(&address, symbol) != hipSuccess) return nullptr;
  return static_cast<std::byte*>(address);
}

}  // namespace

std::optional<hipMemcpy3DParms> copy_to_symbol(const void* symbol, const void* from, size_t bytes,
                                               size_t offset, hipMemcpyKind kind) {
  std::byte* const address = address_of(symbol);
  if (address == nullptr) return std::nullopt;
  return line(address + offset, from, bytes, kind);
}

std::optional<hipMemcpy3DParms> copy_from_symbol(void* to, const void* symbol, size_t bytes,
                                                 size_t offset, hipMemcpyKind kind) {
  const std::byte* const address = address_of(symbol);
  if (address == nullptr) return std::nullopt;
  return line(to, address + offset, bytes, kind);
}

void enter(hipGraphNode_t node, const std::optional<hipMemcpy3DParms>& copy) {
  if (copy) {
    CopyLedger::instance().record(node, *copy);
  } else {
    CopyLedger::instance().record_unknown(node,
                                          "HIP did not return the address of a device variable");
  }
}

}  // namespace uptempo::graphs
