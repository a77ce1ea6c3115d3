#include "cp/kernel/kernel_arguments.hpp"

#include <algorithm>

namespace uptempo::vgpu {
namespace {

constexpr uint64_t kWordBytes = 8;
// More than a compiler lets a kernel have. Damaged sizes cost no more memory than this.
constexpr uint64_t kMostBytes = uint64_t{1} << 20;

// Reads MessagePack (its specification, "Formats"). After bytes that end too early, or are no
// format, is_bad() holds and no item has contents. It does not recurse.
class PackReader {
 public:
  enum class Kind : uint8_t { bad, map, list, text, number, other };
  struct Item {
    Kind kind = Kind::bad;
    uint64_t number = 0;  // of entries in a map or list; the value of a number
    std::string_view text = {};
  };

  explicit PackReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  // The next item. Those in a map or list follow it.
  Item next() {
    const uint64_t format = take(1);
    if (bad_) return {};
    if (format <= 0x7f) return {Kind::number, format};
    if (format <= 0x8f) return {Kind::map, format & 0xf};
    if (format <= 0x9f) return {Kind::list, format & 0xf};
    if (format <= 0xbf) return text(format & 0x1f);
    switch (format) {
      case 0xc0:  // nil
      case 0xc2:  // false
      case 0xc3:  // true
        return {Kind::other};
      case 0xc4:  // bin 8, 16, 32
      case 0xc5:
      case 0xc6:
        return other(take(uint64_t{1} << (format - 0xc4)));
      case 0xc7:  // ext 8, 16, 32, with a byte for the type
      case 0xc8:
      case 0xc9:
        return other(1 + take(uint64_t{1} << (format - 0xc7)));
      case 0xca:  // float 32, 64
      case 0xcb:
        return other(uint64_t{4} << (format - 0xca));
      case 0xcc:  // uint 8, 16, 32, 64
      case 0xcd:
      case 0xce:
      case 0xcf:
        return {Kind::number, take(uint64_t{1} << (format - 0xcc))};
      case 0xd0:  // int 8, 16, 32, 64; metadata has no negative numbers
      case 0xd1:
      case 0xd2:
      case 0xd3:
        return {Kind::number, take(uint64_t{1} << (format - 0xd0))};
      case 0xd4:  // fixext 1, 2, 4, 8, 16
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:
        return other(1 + (uint64_t{1} << (format - 0xd4)));
      case 0xd9:  // str 8, 16, 32
      case 0xda:
      case 0xdb:
        return text(take(uint64_t{1} << (format - 0xd9)));
      case 0xdc:  // array 16, 32
      case 0xdd:
        return {Kind::list, take(uint64_t{2} << (format - 0xdc))};
      case 0xde:  // map 16, 32
      case 0xdf:
        return {Kind::map, take(uint64_t{2} << (format - 0xde))};
      case 0xc1:  // never used
        bad_ = true;
        return {};
      default:  // negative fixint
        return {Kind::other};
    }
  }

  // Passes one item and all that is in it.
  void skip() {
    for (uint64_t items = 1; items != 0 && !bad_; --items) {
      const Item item = next();
      if (item.kind == Kind::list) items += item.number;
      if (item.kind == Kind::map) items += 2 * item.number;
      bad_ = bad_ || items > rest_.size() + 1;
    }
  }

  // Reads nothing more.
  void stop() noexcept { bad_ = true; }
  bool is_bad() const noexcept { return bad_; }

 private:
  uint64_t take(uint64_t bytes) {  // the most significant byte first
    if (bad_ || bytes > rest_.size()) {
      bad_ = true;
      return 0;
    }
    uint64_t value = 0;
    for (uint64_t i = 0; i < bytes; ++i) value = value << 8 | std::to_integer<uint64_t>(rest_[i]);
    rest_ = rest_.subspan(bytes);
    return value;
  }
  bool pass(uint64_t bytes) {
    bad_ = bad_ || bytes > rest_.size();
    if (!bad_) rest_ = rest_.subspan(bytes);
    return !bad_;
  }
  Item text(uint64_t bytes) {
    const auto* const begin = reinterpret_cast<const char*>(rest_.data());
    return pass(bytes) ? Item{Kind::text, 0, {begin, bytes}} : Item{};
  }
  Item other(uint64_t bytes) { return pass(bytes) ? Item{Kind::other} : Item{}; }

  std::span<const std::byte> rest_;
  bool bad_ = false;
};

using PackKind = PackReader::Kind;

// Calls visit(key) at each value of the map that is next. The visitor passes the value.
template <typename Visit>
void for_members(PackReader& pack, Visit visit) {
  const PackReader::Item map = pack.next();
  if (map.kind != PackKind::map) return pack.stop();
  for (uint64_t entry = 0; entry < map.number && !pack.is_bad(); ++entry) visit(pack.next().text);
}

// Adds the words of the argument that is next. Returns whether it is one.
bool add_argument(PackReader& pack, std::vector<ArgumentWord>& words) {
  std::optional<uint64_t> offset, size;
  std::string_view kind;
  for_members(pack, [&](std::string_view key) {
    if (key == ".offset")
      offset = pack.next().number;
    else if (key == ".size")
      size = pack.next().number;
    else if (key == ".value_kind")
      kind = pack.next().text;
    else
      pack.skip();
  });
  if (pack.is_bad() || !offset || !size || kind.empty() || *offset > kMostBytes ||
      *size > kMostBytes - *offset)
    return false;
  const bool is_pointer = kind == "global_buffer";
  if (!is_pointer && kind != "by_value") return true;
  for (uint64_t at = (*offset + kWordBytes - 1) / kWordBytes * kWordBytes;
       at + kWordBytes <= *offset + *size; at += kWordBytes)
    words.push_back({static_cast<uint32_t>(at), is_pointer});
  return words.size() <= kMostBytes / kWordBytes;  // arguments do not overlap
}

std::optional<std::vector<ArgumentWord>> arguments_of(PackReader pack) {
  const PackReader::Item list = pack.next();
  if (list.kind != PackKind::list) return std::nullopt;
  std::vector<ArgumentWord> words;
  for (uint64_t argument = 0; argument < list.number; ++argument)
    if (!add_argument(pack, words)) return std::nullopt;
  return words;
}

}  // namespace

std::optional<std::vector<ArgumentWord>> kernel_arguments(std::span<const std::byte> metadata,
                                                          std::string_view symbol) {
  std::optional<std::vector<ArgumentWord>> words;
  PackReader pack(metadata);
  for_members(pack, [&](std::string_view key) {
    if (key != "amdhsa.kernels") return pack.skip();
    const PackReader::Item kernels = pack.next();
    if (kernels.kind != PackKind::list) return pack.stop();
    for (uint64_t kernel = 0; kernel < kernels.number && !pack.is_bad(); ++kernel) {
      bool is_it = false;
      std::optional<PackReader> arguments;
      for_members(pack, [&](std::string_view name) {
        if (name == ".symbol") {
          is_it = pack.next().text == symbol;
          return;
        }
        if (name == ".args") arguments = pack;
        pack.skip();
      });
      if (!is_it || pack.is_bad()) continue;
      words = arguments ? arguments_of(*arguments) : std::vector<ArgumentWord>();
      return pack.stop();
    }
  });
  return words;
}

}  // namespace uptempo::vgpu
