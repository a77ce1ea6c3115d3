#include "kfd/process.hpp"

#include <pthread.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>

#include "kfd/drm.hpp"
#include "kfd/machine/log.hpp"
#include "kfd/program_memory.hpp"
#include "kfd/requests.hpp"

namespace uptempo::vgpu::kfd {
namespace {

std::atomic<Process*> instance{nullptr};
std::mutex& creation_mutex() {
  static std::mutex& mutex = *new std::mutex;  // fork handlers use it, possibly during exit
  return mutex;
}

void before_fork() { creation_mutex().lock(); }
void after_fork_in_parent() { creation_mutex().unlock(); }
void after_fork_in_child() {
  // The child abandons the parent's object, because threads that do not exist here may hold its
  // locks.
  instance.store(nullptr, std::memory_order_relaxed);  // the child has one thread
  creation_mutex().unlock();
}

// Converts exceptions to errno values, because C programs call ioctl(): -ENOMEM if memory is
// exhausted.
template <class Request>
int answered(Request&& request) {
  try {
    return request();
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
}

// Copies arguments to a zeroed block that is large enough for every request, and back, like
// kfd_ioctl() and drm_ioctl() of the kernel. The size in the caller's headers may differ.
template <class Answer>
int with_copy(uint64_t request, void* argument, Answer&& answer) {
  alignas(8) std::array<std::byte, 512> block{};
  const size_t size = std::min<size_t>(_IOC_SIZE(request), block.size());
  const auto address = reinterpret_cast<uint64_t>(argument);
  if ((_IOC_DIR(request) & _IOC_WRITE) != 0 && !copy_from_program(block.data(), address, size))
    return -EFAULT;
  const int result = answered([&] { return answer(block.data()); });
  if ((_IOC_DIR(request) & _IOC_READ) != 0 && !copy_to_program(address, block.data(), size))
    return -EFAULT;
  return result;
}

}  // namespace

Process::Process(std::unique_ptr<Requests> requests)
    : requests_(std::move(requests)), pid_(getpid()) {}
Process::~Process() = default;

Process* Process::existing() noexcept {
  return instance.load(std::memory_order_acquire);  // pairs with the release in get()
}

Process* Process::get() noexcept {
  if (Process* process = existing(); process != nullptr) return process;
  const std::lock_guard lock(creation_mutex());
  if (Process* process = existing(); process != nullptr) return process;
  try {
    static const int handlers =
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    if (handlers != 0) throw std::runtime_error("pthread_atfork was refused");
    const Options options = Options::from_environment();
    set_verbose(options.verbose);
    // never deleted, see the header
    auto* process = new Process(std::make_unique<Requests>(options));
    instance.store(process, std::memory_order_release);  // publishes the complete object
    return process;
  } catch (const std::exception& error) {
    report(std::string("the device cannot be opened: ") + error.what());
    return nullptr;
  }
}

std::span<const std::unique_ptr<Gpu>> Process::gpus() const noexcept { return requests_->gpus; }
Holdings Process::holdings() const {
  return {.queues = requests_->queues.held(),
          .events = requests_->events.held(),
          .memory = requests_->buffers.held()};
}
std::optional<uint32_t> Process::queue_with_ring(uint64_t ring_address) const {
  return requests_->queues.with_ring(ring_address);
}
bool Process::write_hang_report(int descriptor, std::string_view reason) const noexcept {
  return requests_->queues.hang_reports().write(descriptor, reason);
}
const fences::Checker* Process::checker() const noexcept {
  return requests_->check_report.checker();
}
memory_check::Checker* Process::memory_checker() const noexcept {
  return requests_->check_report.memory_checker();
}
HostStackId Process::capture_stack() const noexcept {
  FindingDetailer* const details = requests_->check_report.details();
  return details == nullptr ? 0 : details->stacks.capture();
}
void Process::initialises_rocr() const { requests_->check_report.initialises_rocr(); }
bool Process::is_by_program(HostStackId allocated) const {
  return requests_->check_report.is_by_program(allocated);
}
std::optional<int> Process::finish_checks() {
  if (requests_->host_pages != nullptr) requests_->host_pages->catch_up();
  uint64_t dispatches = 0;
  for (const auto& gpu : requests_->gpus) dispatches += gpu->counts.dispatches();
  requests_->check_report.finish(requests_->host_pages.get(), dispatches);
  return requests_->check_report.exit_status();
}
std::optional<int> Process::exit_status() noexcept {
  const Process* const process = existing();
  if (process == nullptr || process->pid_ != getpid()) return std::nullopt;
  if (HostPages* const pages = process->requests_->host_pages.get()) pages->catch_up();
  return process->requests_->check_report.exit_status();
}

bool Process::reset_gpu(uint32_t gpu_index) { return requests_->reset_gpu(gpu_index); }
void Process::leave_machine() noexcept { requests_->machine->leave(); }

Injector* Process::injector() const noexcept { return requests_->injector.get(); }

void Process::report_injections() const {
  const Injector* const injector = requests_->injector.get();
  if (injector == nullptr) return;
  for (size_t i = 0; i < injector->rules().size(); ++i) {
    const Injector::Counts counts = injector->counts(i);
    const std::string rule = "--inject '" + injector->rules()[i].text + "' ";
    if (counts.injected == 0)
      report(rule + "never applied; " + std::to_string(counts.matched) +
             " events matched its place and filters");
    else
      note(rule + "applied to " + std::to_string(counts.injected) + " of " +
           std::to_string(counts.matched) + " matching events");
  }
}

int Process::open_kfd(bool close_on_exec) {
  if (Injector* const injector = requests_->injector.get())
    if (const int error = injector->open(); error != 0) return -error;
  return requests_->kfd_file.open(close_on_exec);
}
int Process::open_render(uint32_t gpu_index, bool close_on_exec) {
  if (Injector* const injector = requests_->injector.get())
    if (const int error = injector->open(); error != 0) return -error;
  if (requests_->is_gone(gpu_index)) return -ENODEV;  // drm_minor_acquire()
  return requests_->gpus.at(gpu_index)->render_file.open(close_on_exec);
}

Process::Node Process::node_of(dev_t device, ino_t inode) const noexcept {
  if (requests_->kfd_file.is(device, inode)) return {Node::Kind::kfd};
  for (const auto& gpu : requests_->gpus)
    if (gpu->render_file.is(device, inode)) return {Node::Kind::render, gpu->index};
  return {};
}

bool Process::is_gone(uint32_t gpu_index) const noexcept { return requests_->is_gone(gpu_index); }

int Process::drm_ioctl(uint32_t gpu_index, uint64_t request, void* argument) {
  // As drm_ioctl() of Linux after drm_dev_unplug(), before it looks at the request.
  if (requests_->is_gone(gpu_index)) return -ENODEV;
  return with_copy(request, argument, [&](void* block) {
    return kfd::drm_ioctl(*requests_->gpus.at(gpu_index), requests_->buffers,
                          requests_->drm_objects, request, block);
  });
}

int Process::kfd_ioctl(uint64_t request, void* argument) {
  if (Injector* const injector = requests_->injector.get(); injector != nullptr) [[unlikely]]
    if (const int error = injector->ioctl(static_cast<uint32_t>(_IOC_NR(request))); error != 0)
      return -error;
  return with_copy(request, argument, [&](void* block) {
    return requests_->kfd(static_cast<uint32_t>(_IOC_NR(request)), block);
  });
}

}  // namespace uptempo::vgpu::kfd
