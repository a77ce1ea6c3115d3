#include <uptempo/runtime/error.hpp>

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <cstdio>
#include <iterator>
#include <new>
#include <utility>

#include <uptempo/aql/printable.hpp>
#include <uptempo/runtime/session.hpp>
#include <uptempo/runtime/tried.hpp>

namespace uptempo {
namespace {

struct StatusName {
  int status;
  const char* name;
};

// hsa.h and hsa_ext_amd.h. hsa_status_string works only while the runtime is initialised, but
// errors of hsa_init occur before.
constexpr StatusName kStatusNames[] = {
    {HSA_STATUS_SUCCESS, "HSA_STATUS_SUCCESS"},
    {HSA_STATUS_INFO_BREAK, "HSA_STATUS_INFO_BREAK"},
    {HSA_STATUS_ERROR, "HSA_STATUS_ERROR"},
    {HSA_STATUS_ERROR_INVALID_ARGUMENT, "HSA_STATUS_ERROR_INVALID_ARGUMENT"},
    {HSA_STATUS_ERROR_INVALID_QUEUE_CREATION, "HSA_STATUS_ERROR_INVALID_QUEUE_CREATION"},
    {HSA_STATUS_ERROR_INVALID_ALLOCATION, "HSA_STATUS_ERROR_INVALID_ALLOCATION"},
    {HSA_STATUS_ERROR_INVALID_AGENT, "HSA_STATUS_ERROR_INVALID_AGENT"},
    {HSA_STATUS_ERROR_INVALID_REGION, "HSA_STATUS_ERROR_INVALID_REGION"},
    {HSA_STATUS_ERROR_INVALID_SIGNAL, "HSA_STATUS_ERROR_INVALID_SIGNAL"},
    {HSA_STATUS_ERROR_INVALID_QUEUE, "HSA_STATUS_ERROR_INVALID_QUEUE"},
    {HSA_STATUS_ERROR_OUT_OF_RESOURCES, "HSA_STATUS_ERROR_OUT_OF_RESOURCES"},
    {HSA_STATUS_ERROR_INVALID_PACKET_FORMAT, "HSA_STATUS_ERROR_INVALID_PACKET_FORMAT"},
    {HSA_STATUS_ERROR_RESOURCE_FREE, "HSA_STATUS_ERROR_RESOURCE_FREE"},
    {HSA_STATUS_ERROR_NOT_INITIALIZED, "HSA_STATUS_ERROR_NOT_INITIALIZED"},
    {HSA_STATUS_ERROR_REFCOUNT_OVERFLOW, "HSA_STATUS_ERROR_REFCOUNT_OVERFLOW"},
    {HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS, "HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS"},
    {HSA_STATUS_ERROR_INVALID_INDEX, "HSA_STATUS_ERROR_INVALID_INDEX"},
    {HSA_STATUS_ERROR_INVALID_ISA, "HSA_STATUS_ERROR_INVALID_ISA"},
    {HSA_STATUS_ERROR_INVALID_ISA_NAME, "HSA_STATUS_ERROR_INVALID_ISA_NAME"},
    {HSA_STATUS_ERROR_INVALID_CODE_OBJECT, "HSA_STATUS_ERROR_INVALID_CODE_OBJECT"},
    {HSA_STATUS_ERROR_INVALID_EXECUTABLE, "HSA_STATUS_ERROR_INVALID_EXECUTABLE"},
    {HSA_STATUS_ERROR_FROZEN_EXECUTABLE, "HSA_STATUS_ERROR_FROZEN_EXECUTABLE"},
    {HSA_STATUS_ERROR_INVALID_SYMBOL_NAME, "HSA_STATUS_ERROR_INVALID_SYMBOL_NAME"},
    {HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED, "HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED"},
    {HSA_STATUS_ERROR_VARIABLE_UNDEFINED, "HSA_STATUS_ERROR_VARIABLE_UNDEFINED"},
    {HSA_STATUS_ERROR_EXCEPTION, "HSA_STATUS_ERROR_EXCEPTION"},
    {HSA_STATUS_ERROR_INVALID_CODE_SYMBOL, "HSA_STATUS_ERROR_INVALID_CODE_SYMBOL"},
    {HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL, "HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL"},
    {HSA_STATUS_ERROR_INVALID_FILE, "HSA_STATUS_ERROR_INVALID_FILE"},
    {HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER, "HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER"},
    {HSA_STATUS_ERROR_INVALID_CACHE, "HSA_STATUS_ERROR_INVALID_CACHE"},
    {HSA_STATUS_ERROR_INVALID_WAVEFRONT, "HSA_STATUS_ERROR_INVALID_WAVEFRONT"},
    {HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP, "HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP"},
    {HSA_STATUS_ERROR_INVALID_RUNTIME_STATE, "HSA_STATUS_ERROR_INVALID_RUNTIME_STATE"},
    {HSA_STATUS_ERROR_FATAL, "HSA_STATUS_ERROR_FATAL"},
    {HSA_STATUS_ERROR_INVALID_MEMORY_POOL, "HSA_STATUS_ERROR_INVALID_MEMORY_POOL"},
    {HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION, "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION"},
    {HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION, "HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION"},
    {HSA_STATUS_ERROR_MEMORY_FAULT, "HSA_STATUS_ERROR_MEMORY_FAULT"},
    {HSA_STATUS_CU_MASK_REDUCED, "HSA_STATUS_CU_MASK_REDUCED"},
};

constexpr const char* kCodeNames[] = {"argument", "misuse",  "unavailable", "program",
                                      "file",     "memory",  "ring",        "kernargs",
                                      "timeline", "signals", "limit",       "deadline",
                                      "too_long", "failed",  "device_lost", "hsa"};
static_assert(std::size(kCodeNames) == static_cast<size_t>(ErrorCode::hsa));

// For calls whose caller has no better advice.
std::string_view remedy_for(hsa_status_t status) {
  switch (status) {
    case HSA_STATUS_ERROR_OUT_OF_RESOURCES:
      return "the driver or the host has no more memory, queues or events for this process: free "
             "some, or end other users of the GPU; the kernel's log (dmesg) may name the refusal";
    case HSA_STATUS_ERROR_NOT_INITIALIZED:
      return "keep a Runtime while its objects are in use";
    default:
      return "HSA's documentation of the call lists its statuses; the kernel's log (dmesg) may "
             "name "
             "the cause";
  }
}

std::string sentence(const ErrorFacts& facts) {
  std::string text = facts.call;
  if (!facts.asked.empty()) text += fmt::format("{}{}", text.empty() ? "" : ": ", facts.asked);
  if (!facts.found.empty()) text += fmt::format("{}{}", text.empty() ? "" : ": ", facts.found);
  if (!facts.remedy.empty()) text += fmt::format("; {}", facts.remedy);
  return aql::printable(fmt::format("{} ({})", text, status_name(facts.status)), aql::Lines::kept);
}

}  // namespace

Error::Error(ErrorFacts facts)
    : std::runtime_error(sentence(facts)),
      facts_(std::make_shared<const ErrorFacts>(std::move(facts))) {}

Error Refusal::error() const {
  if (facts_) return Error(*facts_);
  if (code_ == ErrorCode::deadline)
    return Error({.code = code_,
                  .status = HSA_STATUS_ERROR,
                  .call = call_,
                  .asked = "completion within the deadline",
                  .found = "unfinished work",
                  .remedy = "wait longer, or look at Queue::report()"});
  return Error({.code = code_,
                .status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
                .call = call_,
                .asked = fmt::format("room at once ({})", to_string(code_)),
                .found = "earlier work and unsubmitted batches use all of it",
                .remedy = "try again when earlier work is complete, call the form that waits, or "
                          "make the queue with more of it (QueueOptions)"});
}

std::string status_name(hsa_status_t status) {
  for (const StatusName& entry : kStatusNames) {
    if (entry.status == static_cast<int>(status)) return entry.name;
  }
  return fmt::format("status 0x{:x}", static_cast<unsigned>(status));
}

std::string to_string(ErrorCode code) {
  const auto number = static_cast<uint32_t>(code);
  if (number == 0 || number > std::size(kCodeNames)) return fmt::format("code {}", number);
  return kCodeNames[number - 1];
}

ErrorCode code_of(hsa_status_t status) noexcept {
  switch (static_cast<int>(status)) {
    case HSA_STATUS_ERROR_INVALID_ARGUMENT:
    case HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS:
    case HSA_STATUS_ERROR_INVALID_INDEX:
    case HSA_STATUS_ERROR_INVALID_AGENT:
    case HSA_STATUS_ERROR_INVALID_REGION:
    case HSA_STATUS_ERROR_INVALID_MEMORY_POOL:
    case HSA_STATUS_ERROR_INVALID_SIGNAL:
    case HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP:
    case HSA_STATUS_ERROR_INVALID_QUEUE:
    case HSA_STATUS_ERROR_INVALID_PACKET_FORMAT:
      return ErrorCode::argument;
    case HSA_STATUS_ERROR_NOT_INITIALIZED:
    case HSA_STATUS_ERROR_INVALID_RUNTIME_STATE:
    case HSA_STATUS_ERROR_RESOURCE_FREE:
      return ErrorCode::misuse;
    case HSA_STATUS_ERROR_INVALID_QUEUE_CREATION:
      return ErrorCode::unavailable;
    case HSA_STATUS_ERROR_INVALID_ISA:
    case HSA_STATUS_ERROR_INVALID_ISA_NAME:
    case HSA_STATUS_ERROR_INVALID_CODE_OBJECT:
    case HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER:
    case HSA_STATUS_ERROR_INVALID_CODE_SYMBOL:
    case HSA_STATUS_ERROR_INVALID_EXECUTABLE:
    case HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL:
    case HSA_STATUS_ERROR_FROZEN_EXECUTABLE:
    case HSA_STATUS_ERROR_INVALID_SYMBOL_NAME:
    case HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED:
    case HSA_STATUS_ERROR_VARIABLE_UNDEFINED:
      return ErrorCode::program;
    case HSA_STATUS_ERROR_INVALID_FILE:
      return ErrorCode::file;
    case HSA_STATUS_ERROR_OUT_OF_RESOURCES:
    case HSA_STATUS_ERROR_INVALID_ALLOCATION:
      return ErrorCode::memory;
    case HSA_STATUS_ERROR_MEMORY_FAULT:
      return ErrorCode::device_lost;
    default:
      return ErrorCode::hsa;
  }
}

namespace detail {

void throw_status(hsa_status_t status, std::string_view call, std::string_view asked,
                  std::string_view remedy) {
  std::string found = "HSA refused", advice(remedy.empty() ? remedy_for(status) : remedy);
  ErrorCode code = code_of(status);
  if (Session::has_lost_gpu()) {
    code = ErrorCode::device_lost;
    found += " after the loss of a GPU of this process";
    // ROCr maps code and host memory for the lost GPU, too (6.1.2 and 6.4.3).
    advice += "; ROCr may now refuse memory and code for every agent: continue in a new process";
  }
  throw Error({.code = code,
               .status = status,
               .call = std::string(call),
               .asked = std::string(asked),
               .found = std::move(found),
               .remedy = std::move(advice)});
}

void refuse_moved(std::string_view call, std::string_view type) {
  throw Error({.code = ErrorCode::misuse,
               .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = std::string(call),
               .asked = fmt::format("the use of a {}", type),
               .found = "this one was moved from",
               .remedy = fmt::format(
                   "use the {} that it was moved to, or assign another one to it first", type)});
}

void say(const std::string& sentence) noexcept {
  try {
    std::fprintf(stderr, "uptempo: %s\n", aql::printable(sentence, aql::Lines::kept).c_str());
  } catch (const std::bad_alloc&) {
    std::fputs("uptempo: a message is lost, because memory is exhausted\n", stderr);
  }
}

}  // namespace detail
}  // namespace uptempo
