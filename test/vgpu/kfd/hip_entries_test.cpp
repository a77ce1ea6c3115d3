// Instructions as objdump prints them for libamdhip64 6.4.3 of Debian testing. The findings of HIP
// programs (test/vgpu/memory_check, vgpu_hip_unordered_checked) need the names in whole stacks.
#include <string_view>

#include "kfd/report/hip_entries.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu::kfd {
namespace {

using namespace std::literals;

TEST_CASE("an exported function of HIP has its place in the table", "[hip]") {
  CHECK(place_in_table("\xf3\x0f\x1e\xfa"              // endbr64
                       "\x48\x83\xec\x18"              // sub $0x18,%rsp
                       "\x48\x89\x7c\x24\x08"          // mov %rdi,0x8(%rsp)
                       "\xe8\xba\xb4\xff\xff"          // call 3a32a0
                       "\x48\x8b\x7c\x24\x08"          // mov 0x8(%rsp),%rdi
                       "\x48\x8b\x80\xc0\x06\x00\x00"  // mov 0x6c0(%rax),%rax
                       "\x48\x83\xc4\x18"              // add $0x18,%rsp
                       "\xff\xe0"sv) == 0x6c0);        // jmp *%rax
  CHECK(place_in_table("\xe8\xba\xb4\xff\xff"          // call
                       "\x48\x8b\x40\x78"              // mov 0x78(%rax),%rax
                       "\x48\x83\xc4\x08"              // add $0x8,%rsp
                       "\xff\xe0"sv) == 0x78);         // jmp *%rax
}

TEST_CASE("other functions have no place in the table of HIP", "[hip]") {
  CHECK(place_in_table(""sv) == 0);
  CHECK(place_in_table("\xff\xe0"sv) == 0);                      // without a call
  CHECK(place_in_table("\xe8\xba\xb4\xff\xff\xff\xe0"sv) == 0);  // jumps to what the call returns
  CHECK(place_in_table("\xe8\xba\xb4\xff\xff"
                       "\x48\x8b\x80\xc0\x06\x00\x00"
                       "\xc3"sv) == 0);  // returns
}

}  // namespace
}  // namespace uptempo::vgpu::kfd
