#include "device/inject/rules.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>

namespace uptempo::vgpu {
namespace {

using Place = InjectRule::Place;
using Effect = InjectRule::Effect;

template <typename Value>
struct Named {
  std::string_view name;
  Value value;
};

// include/uapi/linux/kfd_ioctl.h without _DEPRECATED; from 0x80 on those of AMD's out-of-tree
// driver.
constexpr auto kIoctlNames = std::to_array<Named<uint32_t>>({
    {"any", InjectRule::kAnyIoctl},
    {"GET_VERSION", 0x01},
    {"CREATE_QUEUE", 0x02},
    {"DESTROY_QUEUE", 0x03},
    {"SET_MEMORY_POLICY", 0x04},
    {"GET_CLOCK_COUNTERS", 0x05},
    {"GET_PROCESS_APERTURES", 0x06},
    {"UPDATE_QUEUE", 0x07},
    {"CREATE_EVENT", 0x08},
    {"DESTROY_EVENT", 0x09},
    {"SET_EVENT", 0x0a},
    {"RESET_EVENT", 0x0b},
    {"WAIT_EVENTS", 0x0c},
    {"DBG_REGISTER", 0x0d},
    {"DBG_UNREGISTER", 0x0e},
    {"DBG_ADDRESS_WATCH", 0x0f},
    {"DBG_WAVE_CONTROL", 0x10},
    {"SET_SCRATCH_BACKING_VA", 0x11},
    {"GET_TILE_CONFIG", 0x12},
    {"SET_TRAP_HANDLER", 0x13},
    {"GET_PROCESS_APERTURES_NEW", 0x14},
    {"ACQUIRE_VM", 0x15},
    {"ALLOC_MEMORY_OF_GPU", 0x16},
    {"FREE_MEMORY_OF_GPU", 0x17},
    {"MAP_MEMORY_TO_GPU", 0x18},
    {"UNMAP_MEMORY_FROM_GPU", 0x19},
    {"SET_CU_MASK", 0x1a},
    {"GET_QUEUE_WAVE_STATE", 0x1b},
    {"GET_DMABUF_INFO", 0x1c},
    {"IMPORT_DMABUF", 0x1d},
    {"ALLOC_QUEUE_GWS", 0x1e},
    {"SMI_EVENTS", 0x1f},
    {"SVM", 0x20},
    {"SET_XNACK_MODE", 0x21},
    {"CRIU_OP", 0x22},
    {"AVAILABLE_MEMORY", 0x23},
    {"EXPORT_DMABUF", 0x24},
    {"RUNTIME_ENABLE", 0x25},
    {"DBG_TRAP", 0x26},
    {"IPC_IMPORT_HANDLE", 0x80},
    {"IPC_EXPORT_HANDLE", 0x81},
    {"DBG_TRAP_OUT_OF_TREE", 0x82},
    {"CROSS_MEMORY_COPY", 0x83},
    {"RLC_SPM", 0x84},
});

constexpr auto kErrnoNames = std::to_array<Named<int>>({
    {"EPERM", EPERM},   {"ENOENT", ENOENT}, {"EINTR", EINTR},           {"EIO", EIO},
    {"EBADF", EBADF},   {"EAGAIN", EAGAIN}, {"ENOMEM", ENOMEM},         {"EACCES", EACCES},
    {"EFAULT", EFAULT}, {"EBUSY", EBUSY},   {"ENODEV", ENODEV},         {"EINVAL", EINVAL},
    {"ENFILE", ENFILE}, {"EMFILE", EMFILE}, {"ENOSPC", ENOSPC},         {"ENOTTY", ENOTTY},
    {"ETIME", ETIME},   {"ENOSYS", ENOSYS}, {"EOPNOTSUPP", EOPNOTSUPP},
});

// enum kfd_dbg_trap_exception_code of kfd_ioctl.h. Math errors and memory violations had no bit of
// their own; the trap handler of that age sent those of a trap and of an aperture violation.
constexpr auto kExceptions = std::to_array<QueueException>({
    {"WAVE_ABORT", 1, QueueError::trap},
    {"WAVE_TRAP", 2, QueueError::trap},
    {"WAVE_MATH_ERROR", 3, QueueError::trap},
    {"WAVE_ILLEGAL_INSTRUCTION", 4, QueueError::illegal_instruction},
    {"WAVE_MEMORY_VIOLATION", 5, QueueError::aperture_violation},
    {"WAVE_APERTURE_VIOLATION", 6, QueueError::aperture_violation},
    {"PACKET_DISPATCH_DIM_INVALID", 16, QueueError::invalid_dimensions},
    {"PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID", 17, QueueError::group_memory},
    {"PACKET_DISPATCH_CODE_INVALID", 18, QueueError::invalid_code_object},
    {"PACKET_RESERVED", 19, QueueError::packet_format},
    {"PACKET_UNSUPPORTED", 20, QueueError::packet_format},
    {"PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID", 21, QueueError::workgroup_too_large},
    {"PACKET_DISPATCH_REGISTER_INVALID", 22, QueueError::too_many_registers},
    {"PACKET_VENDOR_UNSUPPORTED", 23, QueueError::invalid_vendor_packet},
});

constexpr auto kFaults = std::to_array<Named<InjectRule::Fault>>({
    {"not_present", InjectRule::Fault::not_present},
    {"read_only", InjectRule::Fault::read_only},
    {"poison", InjectRule::Fault::poison},
});

constexpr auto kPacketTypes = std::to_array<Named<InjectRule::Packets>>({
    {"dispatch", InjectRule::Packets::dispatch},
    {"barrier", InjectRule::Packets::barrier},
    {"vendor", InjectRule::Packets::vendor},
});

// The effects and filters of a place.
struct PlaceRules {
  std::string_view name;
  unsigned effects;  // a bit each
  const char* effect_names;
  size_t filters;  // so many of kFilters, from the first
};

template <typename... Effects>
constexpr unsigned any_of(Effects... effects) {
  return ((1u << static_cast<unsigned>(effects)) | ...);
}

constexpr auto kFilters = std::to_array<std::string_view>({"queue", "gpu", "index", "type"});
constexpr auto kPlaces = std::to_array<PlaceRules>({
    // by Place
    {"ioctl", any_of(Effect::error_number), "errno=", 0},
    {"mmap", any_of(Effect::error_number), "errno=", 0},
    {"open", any_of(Effect::error_number), "errno=", 0},
    {"packet",
     any_of(Effect::exception, Effect::memory_fault, Effect::torn, Effect::late, Effect::untimed,
            Effect::stale, Effect::reset, Effect::gone),
     "error=, fault=, torn, late=, untimed, stale, reset or gone", 4},
    {"interrupt", any_of(Effect::lost, Effect::doubled), "lost or doubled", 2},
    {"hdp", any_of(Effect::lost), "lost", 0},
    {"copy", any_of(Effect::lost), "lost", 2},
});
constexpr auto kPlainEffects = std::to_array<Named<Effect>>({
    {"torn", Effect::torn},
    {"untimed", Effect::untimed},
    {"stale", Effect::stale},
    {"reset", Effect::reset},
    {"gone", Effect::gone},
    {"lost", Effect::lost},
    {"doubled", Effect::doubled},
});
// Every word, and whether it has a value.
constexpr auto kKeys = std::to_array<Named<bool>>(
    {{"ioctl", true}, {"mmap", false}, {"open", false},    {"packet", false}, {"interrupt", false},
     {"hdp", false},  {"copy", false}, {"errno", true},    {"error", true},   {"fault", true},
     {"torn", false}, {"late", true},  {"untimed", false}, {"stale", false},  {"reset", false},
     {"gone", false}, {"lost", false}, {"doubled", false}, {"queue", true},   {"gpu", true},
     {"index", true}, {"type", true},  {"nth", true},      {"every", true},   {"chance", true},
     {"seed", true},  {"count", true}});

// Levenshtein's distance.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

template <typename Table, typename NameOf>
std::string_view nearest(const Table& table, std::string_view word, NameOf name_of) {
  return name_of(*std::ranges::min_element(
      table, {}, [&](const auto& each) { return distance(name_of(each), word); }));
}

constexpr auto kOwnName = [](const auto& each) { return each.name; };

struct Word {
  std::string_view key{}, value{};
  bool has_value = false;
  size_t column = 0, value_column = 0;  // from 1
};

[[noreturn]] void refuse(size_t column, const std::string& sentence) {
  throw std::invalid_argument("column " + std::to_string(column) + ": " + sentence);
}

std::string quoted(std::string_view word) { return std::string("'").append(word).append("'"); }

template <typename Table>
const auto& look_up(const Table& table, const Word& word, const char* kind) {
  const auto found = std::ranges::find(table, word.value, kOwnName);
  if (found == table.end())
    refuse(word.value_column, quoted(word.value) + " is no " + kind + "; the nearest is " +
                                  std::string(nearest(table, word.value, kOwnName)));
  return *found;
}

template <typename Number>
Number number_of(const Word& word, Number least, const char* range) {
  Number result{};
  const char* const last = word.value.data() + word.value.size();
  const auto [end, error] = std::from_chars(word.value.data(), last, result);
  if (error != std::errc{} || end != last || result < least)
    refuse(word.value_column,
           std::string(word.key) + " needs " + range + ", not " + quoted(word.value));
  return result;
}

double chance_of(const Word& word) {
  double result = -1;
  const char* const last = word.value.data() + word.value.size();
  const auto [end, error] = std::from_chars(word.value.data(), last, result);
  if (error != std::errc{} || end != last || !(result >= 0 && result <= 1))
    refuse(word.value_column, "chance needs a number from 0 to 1, not " + quoted(word.value));
  return result;
}

class RuleParser {
 public:
  RuleParser(std::string_view text, size_t column) : text_(text), column_(column) {}

  InjectRule parse() {
    for (size_t at = 0; at < text_.size();) {
      if (text_[at] == ' ') {
        ++at;
        continue;
      }
      const size_t end = std::min(text_.find(' ', at), text_.size());
      take(word_at(at, end));
      at = end;
    }
    finish();
    return std::move(rule_);
  }

 private:
  Word word_at(size_t begin, size_t end) const {
    const std::string_view word = text_.substr(begin, end - begin);
    const size_t equals = word.find('=');
    Word result{.key = word.substr(0, equals), .column = column_ + begin};
    if (equals != std::string_view::npos) {
      result.has_value = true;
      result.value = word.substr(equals + 1);
      result.value_column = result.column + equals + 1;
    }
    return result;
  }

  void take(const Word& word) {
    const auto key = std::ranges::find(kKeys, word.key, kOwnName);
    if (key == kKeys.end())
      refuse(word.column, quoted(word.key) + " is unknown; the nearest word is " +
                              std::string(nearest(kKeys, word.key, kOwnName)));
    if (key->value != word.has_value)
      refuse(word.column,
             std::string(word.key) + (key->value ? " needs a value" : " takes no value"));
    if (std::ranges::find(seen_, word.key, &Word::key) != seen_.end())
      refuse(word.column, std::string(word.key) + " occurs twice in this rule");
    seen_.push_back(word);
    if (take_place(word) || take_effect(word) || take_filter(word)) return;
    take_time(word);
  }

  bool take_place(const Word& word) {
    const auto found = std::ranges::find(kPlaces, word.key, kOwnName);
    if (found == kPlaces.end()) return false;
    if (place_ != nullptr)
      refuse(word.column,
             "a rule has one place; this one already has " + std::string(place_->name));
    place_ = &*found;
    rule_.place = static_cast<Place>(found - kPlaces.begin());
    if (rule_.place == Place::ioctl) rule_.ioctl = look_up(kIoctlNames, word, "KFD request").value;
    return true;
  }

  bool take_effect(const Word& word) {
    Effect effect{};
    if (word.key == "errno") {
      effect = Effect::error_number;
      rule_.error_number = look_up(kErrnoNames, word, "error number").value;
    } else if (word.key == "error") {
      effect = Effect::exception;
      rule_.exception = &look_up(kExceptions, word, "queue exception");
    } else if (word.key == "fault") {
      effect = Effect::memory_fault;
      rule_.fault = look_up(kFaults, word, "memory fault").value;
    } else if (word.key == "late") {
      effect = Effect::late;
      rule_.late_ms = number_of<uint32_t>(word, 1, "milliseconds from 1 on");
    } else {
      const auto found = std::ranges::find(kPlainEffects, word.key, kOwnName);
      if (found == kPlainEffects.end()) return false;
      effect = found->value;
    }
    if (has_effect_) refuse(word.column, "a rule has one effect; this is its second one");
    has_effect_ = true;
    effect_column_ = word.column;
    rule_.effect = effect;
    return true;
  }

  bool take_filter(const Word& word) {
    if (word.key == "queue") {
      rule_.queue = number_of<uint32_t>(word, 0, "a queue's number");
    } else if (word.key == "gpu") {
      rule_.gpu = number_of<uint32_t>(word, 0, "a GPU's index");
    } else if (word.key == "index") {
      rule_.index = number_of<uint64_t>(word, 0, "a packet's index");
    } else if (word.key == "type") {
      rule_.packets = look_up(kPacketTypes, word, "type of packet").value;
    } else {
      return false;
    }
    return true;
  }

  void take_time(const Word& word) {
    if (word.key == "nth") {
      rule_.nth = number_of<uint64_t>(word, 1, "a number from 1 on");
    } else if (word.key == "every") {
      rule_.every = number_of<uint64_t>(word, 1, "a number from 1 on");
    } else if (word.key == "chance") {
      rule_.chance = chance_of(word);
    } else if (word.key == "seed") {
      rule_.seed = number_of<uint64_t>(word, 0, "a number");
    } else {  // count
      rule_.count = word.value == "all"
                        ? InjectRule::kUnlimited
                        : number_of<uint64_t>(word, 1, "a number from 1 on, or all");
    }
  }

  const Word* given(std::string_view key) const {
    const auto found = std::ranges::find(seen_, key, &Word::key);
    return found == seen_.end() ? nullptr : &*found;
  }

  void finish() {
    if (seen_.empty()) refuse(column_, "a rule is empty");
    if (place_ == nullptr)
      refuse(column_,
             "the rule has no place: use ioctl=NAME, mmap, open, packet, interrupt, hdp or copy");
    const std::string place(place_->name);
    if (!has_effect_)
      refuse(column_, "the rule has no effect: " + place + " needs " + place_->effect_names);
    if ((place_->effects & any_of(rule_.effect)) == 0)
      refuse(effect_column_,
             place + " does not have that effect: it needs " + place_->effect_names);
    for (const std::string_view key : std::span(kFilters).subspan(place_->filters))
      if (const Word* const word = given(key))
        refuse(word->column, std::string(key) + " is no filter of " + place);
    const bool draws = given("chance") != nullptr, repeats = given("every") != nullptr;
    if (draws + repeats + (given("nth") != nullptr) > 1)
      refuse(column_, "nth, every and chance exclude each other");
    if (const Word* const seed = given("seed"); seed != nullptr && !draws)
      refuse(seed->column, "seed needs chance");
    if (given("count") == nullptr) rule_.count = draws || repeats ? InjectRule::kUnlimited : 1;
    const size_t begin = text_.find_first_not_of(' ');
    rule_.text = text_.substr(begin, text_.find_last_not_of(' ') + 1 - begin);
  }

  const std::string_view text_;
  const size_t column_;
  InjectRule rule_;
  std::vector<Word> seen_;
  const PlaceRules* place_ = nullptr;
  bool has_effect_ = false;
  size_t effect_column_ = 0;
};

}  // namespace

std::vector<InjectRule> parse_inject_rules(std::string_view text) {
  std::vector<InjectRule> rules;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size());
    rules.push_back(RuleParser(text.substr(begin, end - begin), begin + 1).parse());
    begin = end + 1;
  }
  return rules;
}

std::string_view kfd_ioctl_name(uint32_t number) noexcept {
  const auto found = std::ranges::find(kIoctlNames, number, &Named<uint32_t>::value);
  return found == kIoctlNames.end() ? "unknown" : found->name;
}

}  // namespace uptempo::vgpu
