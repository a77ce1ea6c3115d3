// Source lines in a process without ROCr. test/vgpu/findings has those with it.
#include "kfd/report/source_lines.hpp"

#include "test/support/catch.hpp"
#include "test/support/text.hpp"

namespace uptempo::vgpu::kfd {
namespace {

TEST_CASE("without ROCr's list of code objects there are no lines, and a reason") {
  AddressSpace memory;
  const DwarfLibrary library;
  SourceLines lines({&memory}, &library);
  CHECK_FALSE(lines.has_none());
  lines.open_now();
  CHECK(lines.line(0, 0x1000).empty());
  CHECK(lines.has_none());
  CHECK(uptempo::test::contains(
      lines.missing(),
      library.complete() ? "no source lines: no loaded library exports ROCr's list of code objects"
                         : "no source lines: libdw.so.1"));
}

}  // namespace
}  // namespace uptempo::vgpu::kfd
