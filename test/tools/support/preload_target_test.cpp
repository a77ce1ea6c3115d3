#include "tools/support/preload_target.hpp"

#include <elf.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/support/temporary_directory.hpp"

using namespace uptempo::support;
using uptempo::test::contains;

namespace {

// Writes a program's header and its table of segments, whose only entry names the dynamic linker.
std::string write_elf(const std::string& file, unsigned char elf_class, Elf64_Half machine,
                      bool dynamic) {
  Elf64_Ehdr header{};
  std::copy_n(ELFMAG, SELFMAG, header.e_ident);
  header.e_ident[EI_CLASS] = elf_class;
  header.e_machine = machine;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = dynamic ? 1 : 0;
  Elf64_Phdr segment{};
  segment.p_type = PT_INTERP;
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&header), sizeof header);
  out.write(reinterpret_cast<const char*>(&segment), sizeof segment);
  return file;
}

std::string write_script(const std::string& file, const std::string& first_line) {
  std::ofstream(file) << first_line << "\nexit 0\n";
  return file;
}

std::string obstacle_of(const std::string& file, const Caller& caller = Caller::this_process()) {
  return inspect_preload_target(file, caller).obstacle;
}

}  // namespace

TEST_CASE("LD_PRELOAD has an effect on dynamic programs for this machine only") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("program");
  CHECK(obstacle_of(write_elf(file, ELFCLASS64, EM_X86_64, true)).empty());
  CHECK(contains(obstacle_of(write_elf(file, ELFCLASS64, EM_X86_64, false)), "statically linked"));
  CHECK(contains(obstacle_of(write_elf(file, ELFCLASS32, EM_386, true)), "32-bit"));
  CHECK(contains(obstacle_of(write_elf(file, ELFCLASS32, EM_X86_64, true)), "32-bit"));  // x32
  CHECK(contains(obstacle_of(write_elf(file, ELFCLASS64, EM_AARCH64, true)), "architecture"));
  CHECK(contains(obstacle_of(write_elf(file, ELFCLASS64, EM_RISCV, true)), "architecture"));
  const PreloadTarget own = inspect_preload_target("/proc/self/exe");
  CHECK(own.obstacle.empty());
  CHECK(std::ranges::find(own.needed, "libc.so.6") != own.needed.end());
}

TEST_CASE("a script is as its interpreter is, through all scripts of the chain") {
  const TemporaryDirectory directory;
  const std::string program = write_elf(directory.file("program"), ELFCLASS64, EM_X86_64, false),
                    script = directory.file("script"), outer = directory.file("outer");
  for (const std::string& line :
       {"#!" + program, "#! \t" + program + " -e", "#!" + program + "\t-e"}) {
    CAPTURE(line);
    write_script(script, line);
    CHECK(contains(obstacle_of(script), "is a script for '" + program + "', which is statically"));
  }
  write_script(outer, "#!" + script);
  CHECK(contains(obstacle_of(outer), program));
  write_elf(program, ELFCLASS64, EM_X86_64, true);
  CHECK(obstacle_of(outer).empty());
  // The kernel refuses these itself.
  CHECK(obstacle_of(write_script(script, "#!" + script)).empty());
  CHECK(obstacle_of(write_script(script, "#!/no/such/interpreter")).empty());
  CHECK(obstacle_of(write_script(script, "no script")).empty());
}

TEST_CASE("a program that gains rights by its file is not preloaded") {
  const TemporaryDirectory directory;
  const std::string file = write_elf(directory.file("program"), ELFCLASS64, EM_X86_64, true);
  const Caller self = Caller::this_process();
  Caller other_user = self, other_group = self, restricted = self;
  other_user.user = other_user.effective_user = self.user + 1;
  other_group.group = other_group.effective_group = self.group + 1;
  restricted.user = restricted.effective_user = self.user + 1;
  restricted.gains_rights = false;

  REQUIRE(chmod(file.c_str(), 04755) == 0);
  CHECK(obstacle_of(file, self).empty());  // the owner's rights are the caller's
  CHECK(contains(obstacle_of(file, other_user), "set-uid"));
  CHECK(obstacle_of(file, restricted).empty());
  CHECK(contains(obstacle_of(write_script(directory.file("script"), "#!" + file), other_user),
                 "set-uid"));
  // The bit of a script itself has no effect.
  const std::string script = write_script(directory.file("owned"), "#!/bin/sh");
  REQUIRE(chmod(script.c_str(), 06755) == 0);
  CHECK(obstacle_of(script, other_user).empty());

  REQUIRE(chmod(file.c_str(), 02755) == 0);
  CHECK(obstacle_of(file, self).empty());
  CHECK(contains(obstacle_of(file, other_group), "set-gid"));
  REQUIRE(chmod(file.c_str(), 02745) == 0);  // mandatory locking
  CHECK(obstacle_of(file, other_group).empty());

  REQUIRE(chmod(file.c_str(), 0755) == 0);
  CHECK(obstacle_of(file, other_user).empty());
  Caller in_between = self;  // the launcher itself gained rights
  in_between.user = self.user + 1;
  CHECK(contains(obstacle_of(file, in_between), "another user's rights"));
}
