#include "gfx9/code_cache.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>

#include "device/caches/incoherent.hpp"
#include "gfx9/stop.hpp"

namespace uptempo::vgpu::gfx9 {
namespace {

// The entry is shared between workers. Its handler is the only member that changes once other
// workers can see the page.
Handler load_handler(const Op& op) noexcept {
  return std::atomic_ref(const_cast<Handler&>(op.handler)).load(std::memory_order_acquire);
}

const Op* illegal_instruction(const Op& op, Wave& wave) {
  return stop_error(op, wave, QueueError::illegal_instruction,
                    op.in.opcode == Opcode::invalid ? "is not an instruction of this target"
                                                    : "is not supported");
}

Handler translate(Instruction& in, Target target, MemoryPolicy policy) noexcept {
  switch (in.format) {
    case Format::sop1:
    case Format::sop2:
    case Format::sopk:
    case Format::sopc:
    case Format::sopp:
    case Format::smem:
      return translate_scalar(in, policy);
    case Format::vop1:
    case Format::vop2:
    case Format::vopc:
    case Format::vop3:
    case Format::vop3p:
      return translate_vector(in);
    case Format::ds:
    case Format::flat:
    case Format::mubuf:
    case Format::mtbuf:
      return translate_memory(in, target, policy);
    case Format::other:
      break;
  }
  return nullptr;
}

const Op* decode_entry(const Op& op, Wave& wave);

// Decodes an entry that no worker has reached yet. Returns false if there is no code: the wave has
// stopped.
bool decode_into(const Op& op, Wave& wave) {
  CodePage& page = CodePage::of(op);
  const std::lock_guard lock(page.decoding);
  Op& entry = page.ops[op.index];
  if (entry.handler != &decode_entry) return true;
  const GpuAddress address = address_of(op);
  uint32_t words[2] = {};
  size_t available = 0;
  for (; available < 2; ++available) {
    const std::byte* host =
        wave.executor->memory.translate(address + 4 * available, 4, Access::execute);
    if (host == nullptr) break;
    std::memcpy(&words[available], host, 4);
    if (const Caches* caches = wave.executor->caches)
      caches->peek(*wave.executor->memory.find(address + 4 * available), address + 4 * available,
                   std::as_writable_bytes(std::span(&words[available], 1)));
  }
  if (available == 0) {
    stop_memory_fault(op, wave, address, Access::execute);
    return false;
  }
  entry.in = decode({words, available}, page.target);
  const Handler handler = translate(entry.in, page.target, page.policy);
  // release: publishes entry.in with it.
  std::atomic_ref(entry.handler)
      .store(handler != nullptr ? handler : &illegal_instruction, std::memory_order_release);
  return true;
}

const Op* decode_entry(const Op& op, Wave& wave) {
  return decode_into(op, wave) ? load_handler(op)(op, wave) : nullptr;
}

// Handler of the two entries after a page's last dword.
const Op* next_page(const Op& op, Wave& wave) {
  const Op* target = wave.executor->code_at(address_of(op));
  return load_handler(*target)(*target, wave);
}

constexpr Mapping kNoMapping{};

bool same_place(const Mapping& was, const Mapping* now) noexcept {
  if (now == nullptr) return was.host == nullptr;
  return was.begin == now->begin && was.end == now->end && was.host == now->host &&
         was.executable == now->executable;
}

}  // namespace

CodePage::CodePage(GpuAddress page_base, const Mapping* where, Target code_target,
                   MemoryPolicy code_policy) noexcept
    : base(page_base),
      mapping(where != nullptr ? *where : kNoMapping),
      target(code_target),
      policy(code_policy) {
  for (uint32_t i = 0; i < kDwords + 2; ++i) {
    ops[i].handler = i < kDwords ? &decode_entry : &next_page;
    ops[i].index = i;
  }
}

CodePage& CodePage::of(const Op& op) noexcept {
  auto* first = reinterpret_cast<std::byte*>(const_cast<Op*>(&op - op.index));
  return *reinterpret_cast<CodePage*>(first - offsetof(CodePage, ops));
}

const Op* decoded(const Op& op, Wave& wave) {
  const Op* entry = op.index < CodePage::kDwords ? &op : wave.executor->code_at(address_of(op));
  if (load_handler(*entry) == &decode_entry && !decode_into(*entry, wave)) return nullptr;
  return entry;
}

CodeCache::CodeCache(AddressSpace& memory, Target target, MemoryPolicy policy)
    : impl_(std::make_unique<Impl>(memory, target, policy)) {}
CodeCache::~CodeCache() = default;

void CodeCache::invalidate() noexcept {
  // seq_cst: pairs with Impl::enter(). Either that worker sees the new generation, or this thread
  // sees its inside_generation_.
  impl_->generation.fetch_add(1, std::memory_order_seq_cst);
}

void CodeCache::Impl::add(Executor& executor) {
  const std::lock_guard lock(mutex_);
  executors_.push_back(&executor);
}

void CodeCache::Impl::remove(Executor& executor) {
  const std::lock_guard lock(mutex_);
  std::erase(executors_, &executor);
}

void CodeCache::Impl::enter(Executor& executor) noexcept {
  // acquire, and before this worker takes its snapshot: the snapshot is at least as new as this
  // number.
  const uint64_t memory_generation = memory.generation();
  executor.memory.enter();
  if (memory_generation != validated.load(std::memory_order_acquire))
    validate(executor, memory_generation);
  uint64_t now = generation.load(std::memory_order_seq_cst);
  for (;;) {
    executor.inside_generation_.store(now, std::memory_order_seq_cst);
    const uint64_t again = generation.load(std::memory_order_seq_cst);
    if (again == now) break;
    now = again;
  }
  if (executor.pages_generation_ != now) {
    executor.forget_pages();
    executor.pages_generation_ = now;
  }
}

void CodeCache::Impl::validate(Executor& executor, uint64_t memory_generation) {
  const std::lock_guard lock(mutex_);
  if (validated.load(std::memory_order_relaxed) >= memory_generation)
    return;  // another worker did it; mutex_ orders
  const bool moved = std::any_of(pages_.begin(), pages_.end(), [&](const auto& entry) {
    return !same_place(entry.second->mapping, executor.memory.find(entry.first));
  });
  if (moved) generation.fetch_add(1, std::memory_order_seq_cst);
  validated.store(memory_generation, std::memory_order_release);
}

const Op* CodeCache::Impl::page(Executor& executor, GpuAddress base) {
  const std::lock_guard lock(mutex_);
  const uint64_t now = generation.load(std::memory_order_seq_cst);
  if (pages_generation_ != now) {
    for (auto& [address, page] : pages_) retired_.push_back({now, std::move(page)});
    pages_.clear();
    pages_generation_ = now;
  }
  if (!retired_.empty()) {
    uint64_t oldest = std::numeric_limits<uint64_t>::max();
    for (const Executor* each : executors_) {
      const uint64_t inside = each->inside_generation_.load(std::memory_order_seq_cst);
      if (inside != 0) oldest = std::min(oldest, inside);
    }
    std::erase_if(retired_, [oldest](const Retired& page) { return page.since <= oldest; });
  }
  std::unique_ptr<CodePage>& page = pages_[base];
  if (page == nullptr) {
    page = std::make_unique<CodePage>(base, executor.memory.find(base), target, policy);
    // This worker's view of memory may be older than the view for which the other pages were
    // validated.
    validated.store(0, std::memory_order_release);
  }
  return page->ops;
}

Executor::Executor(AddressSpace& space, CodeCache& cache, Target wanted)
    : memory(space), code(cache), target(wanted) {
  hints_.fill(&kNoMapping);
  code.impl().add(*this);
}

Executor::Executor(Device& device, CodeCache& cache, Target wanted)
    : Executor(device.memory, cache, wanted) {
  caches = device.caches;
  ignored_atomics = device.ignored_atomics;
}

Executor::~Executor() { code.impl().remove(*this); }

void Executor::enter() noexcept {
  code.impl().enter(*this);
  hints_.fill(&kNoMapping);
}

void Executor::leave() noexcept {
  // release: this worker's use of decoded pages ends before another worker frees them.
  inside_generation_.store(0, std::memory_order_release);
  memory.leave();
}

const Op* Executor::find_page(GpuAddress base) noexcept { return code.impl().page(*this, base); }

CodePage& Executor::copies(const CodePage& page) {
  if (copies_ == nullptr)
    copies_ = std::make_unique<CodePage>(page.base, nullptr, page.target, page.policy);
  copies_->base = page.base;
  return *copies_;
}

void Executor::forget_pages() noexcept { pages_.fill({}); }

}  // namespace uptempo::vgpu::gfx9
