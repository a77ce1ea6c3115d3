// The environment that a saved recording is loaded into: a queue over the packet processor double,
// kernels and memory. Two worlds hold the same kernels and memory at different addresses, like two
// processes.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <uptempo/program/metadata.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/recording/recording_file.hpp>
#include <uptempo/recording/recording_payload.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/engine/double_device.hpp"
#include "test/engine/recording/file_content.hpp"
#include "test/support/errors.hpp"

namespace uptempo::test {

struct Vec3 {
  float x, y, z;
};

// As the loader would describe it, with segments that a recording must retain.
template <class... Args>
Kernel<Args...> saved_kernel(const std::string& name, uint64_t object, uint32_t kernarg_bytes,
                             std::vector<ArgumentMetadata> arguments, const CodeIdentity& code) {
  return kernel_of<Args...>({.name = name,
                             .object = object,
                             .kernarg_bytes = kernarg_bytes,
                             .arguments = std::move(arguments),
                             .group_segment_bytes = 100,
                             .private_segment_bytes = 16,
                             .code = code});
}

struct World {
  using Scale = Kernel<uint32_t, const float*, float*, uint16_t>;
  using Reduce = Kernel<LocalBytes, float*, LocalBytes, Vec3>;

  explicit World(uint64_t object, size_t before = 0, const CodeIdentity& code = the_code())
      : positions(before + 1000),
        forces(before + 1000),
        device({.device = {.ring_size = 256}}),
        scale(saved_kernel<uint32_t, const float*, float*, uint16_t>(
            "scale", object, 40,
            {argument(ArgumentKind::by_value, 0, 4), argument(ArgumentKind::global_buffer, 8, 8),
             argument(ArgumentKind::global_buffer, 16, 8), argument(ArgumentKind::by_value, 24, 2),
             argument(ArgumentKind::hidden_block_count_x, 32, 4)},
            code)),
        reduce(saved_kernel<LocalBytes, float*, LocalBytes, Vec3>(
            "reduce", object + 64, 40,
            {argument(ArgumentKind::dynamic_shared_pointer, 0, 4),
             argument(ArgumentKind::global_buffer, 8, 8),
             argument(ArgumentKind::dynamic_shared_pointer, 16, 4),
             argument(ArgumentKind::by_value, 20, 12)},
            code)),
        empty(saved_kernel<>("empty", object + 128, 0, {}, code)),
        x(positions.data() + before),
        f(forces.data() + before) {
    memory.add("positions", x, 4000).add("forces", f, 4000);
  }

  static CodeIdentity the_code() { return {"gfx90a", 4711, 0x0123456789abcdef}; }
  std::vector<KernelSource> kernels() const {
    return {reduce.shared_info(), empty.shared_info(), scale.shared_info()};
  }

  // Each new World reuses the memory of the previous one, which is destroyed.
  std::unique_ptr<Recording> recording() { return device.recording(kernargs(), options); }
  std::unique_ptr<Recording> load(const std::string& file) { return load(file, kernels(), memory); }
  std::unique_ptr<Recording> load(const std::string& file, const std::vector<KernelSource>& sources,
                                  const Bindings& named) {
    std::istringstream in(file);
    return detail::load_recording(in, sources, named, [this] { return recording(); });
  }
  std::string save(const Recording& recording) const {
    std::ostringstream out;
    save_recording(recording, out, memory);
    return out.str();
  }

  // A recording that uses every feature a file can hold.
  std::unique_ptr<Recording> full_recording() {
    auto made = recording();
    Recording& r = *made;
    r.dispatch(scale, Grid{512, 4}.by(64, 2), 42u, x, f, uint16_t{7}).reads(x, 100).writes(f, 100);
    r.dispatch(scale, Grid{100}.by(64), 43u, x + 500, f + 100, uint16_t{8})
        .reads(x + 500, 100)
        .writes(f + 100, 100);
    r.dispatch(reduce, Grid{64, 2, 3}.by(32, 1, 1).lds(48), LocalBytes{40}, f, LocalBytes{24},
               Vec3{1, 2.5f, -3})
        .observed_by(Observer::agent);
    r.raw(aql::to_packet(aql::BarrierAnd{
        .flags = {aql::Barrier::off, aql::FenceScope::none, aql::FenceScope::agent}}));
    r.dispatch(empty, Grid{1}).touches_nothing();
    r.dispatch(scale, Grid{64}, 44u, nullptr, f + 999, uint16_t{9})
        .fences(aql::FenceScope::none, aql::FenceScope::system)
        .without_barrier();
    r.dispatch(empty, Grid{256}).observed_by(Observer::system);
    r.dispatch(empty, Grid{128}).after_packets({0, 4});
    r.raw(aql::to_packet(aql::BarrierAnd{
        .flags = {aql::Barrier::on, aql::FenceScope::system, aql::FenceScope::none}}));
    return made;
  }

  std::string place(const void* address) const {
    const detail::MemoryRange* const range = memory.find(reinterpret_cast<uintptr_t>(address));
    return range == nullptr ? "nowhere"
                            : fmt::format("{}+{}", range->name,
                                          reinterpret_cast<uintptr_t>(address) - range->begin);
  }

  // The effect of a replay: its packets with their kernarg blocks, addresses replaced by names, and
  // the plan.
  std::string replay(Recording& recording) {
    const size_t before = device.processor().completed().size();
    if (!recording.replay(device.queue(), soon()).wait(soon(), kActiveWait)) return "not in time";
    std::vector<Completed> ran = device.processor().completed();
    ran.erase(ran.begin(), ran.begin() + static_cast<ptrdiff_t>(before));
    std::sort(ran.begin(), ran.end(),
              [](const Completed& a, const Completed& b) { return a.index < b.index; });
    std::string text;
    for (const Completed& completed : ran) text += describe(completed.packet) + '\n';
    return text + recording.explain();
  }

  std::vector<float> positions, forces;
  DoubleDevice device;
  Scale scale;
  Reduce reduce;
  Kernel<> empty;
  float *x, *f;
  Bindings memory;
  RecordingOptions options{.spare_kernarg_bytes = 4 << 10};

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::span<std::byte> kernargs() { return {lines_.front().bytes, lines_.size() * 64}; }

  std::string describe(const aql::Packet64& packet) const {
    std::string text = fmt::format("{:04x}", packet.header());
    if (aql::packet_type(packet.header()) != aql::PacketType::kernel_dispatch) {
      for (size_t i = 1; i < 14; ++i) text += fmt::format(" {:x}", packet.word[i]);
      return text;
    }
    const auto p = aql::packet_as<hsa_kernel_dispatch_packet_t>(packet);
    const std::array<const KernelInfo*, 3> known{&scale.info(), &reduce.info(), &empty.info()};
    const auto kernel = std::find_if(known.begin(), known.end(), [&](const KernelInfo* one) {
      return one->object == p.kernel_object;
    });
    if (kernel == known.end()) return text + " of an unknown kernel";
    text += fmt::format(
        " {} setup {} grid {} {} {} by {} {} {}, group {} private {} signal {}:", (*kernel)->name,
        p.setup, p.grid_size_x, p.grid_size_y, p.grid_size_z, p.workgroup_size_x,
        p.workgroup_size_y, p.workgroup_size_z, p.group_segment_size, p.private_segment_size,
        p.completion_signal.handle != 0);
    const ArgumentLayout& layout = (*kernel)->arguments;
    if (layout.size_bytes() == 0)
      return text + (p.kernarg_address == nullptr ? " none" : " a block");
    std::vector<std::byte> block(layout.size_bytes());
    std::memcpy(block.data(), p.kernarg_address, block.size());
    for (size_t i = 0; i < layout.explicit_count(); ++i) {
      if (layout.kind(i) != ArgumentType::Kind::address) continue;
      void* address = nullptr;
      std::memcpy(&address, block.data() + layout.offset(i), sizeof address);
      std::memset(block.data() + layout.offset(i), 0, sizeof address);
      text += fmt::format(" {}", address == nullptr ? "null" : place(address));
    }
    for (const std::byte byte : block)
      text += fmt::format(" {:02x}", std::to_integer<unsigned>(byte));
    return text;
  }

  std::vector<Line> lines_{1024};
};

}  // namespace uptempo::test
